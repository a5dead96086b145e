import { describe, expect, it } from 'vitest';
import { normalSmtpUrl, parseSmtpUrl } from '../../../src/delivery/smtp/settings.js';

const parsed = (text: string) => {
	const result = parseSmtpUrl(text);
	return result.kind === 'settings' ? result.settings : result.message;
};

describe('an SMTP URL', () => {
	it.each([
		['smtp://localhost', { host: 'localhost', port: 25, security: 'opportunistic', user: null }],
		['smtp://mail.test:2525', { host: 'mail.test', port: 2525, security: 'opportunistic', user: null }],
		['smtp://me@mail.test', { host: 'mail.test', port: 587, security: 'required', user: 'me' }],
		[
			'smtp://me%40x.test@mail.test',
			{ host: 'mail.test', port: 587, security: 'required', user: 'me@x.test' },
		],
		['smtp://me@mail.test?tls=never', { host: 'mail.test', port: 587, security: 'never', user: 'me' }],
		['smtp://mail.test/?tls=required', { host: 'mail.test', port: 25, security: 'required', user: null }],
		['smtps://me@mail.test', { host: 'mail.test', port: 465, security: 'implicit', user: 'me' }],
		['SMTP://[::1]:1025', { host: '::1', port: 1025, security: 'opportunistic', user: null }],
		['smtp://bücher.test', { host: 'xn--bcher-kva.test', port: 25, security: 'opportunistic', user: null }],
	])('is parsed: %s', (text, settings) => {
		expect(parsed(text)).toEqual({ ...settings, password: null, name: null, ca: null });
	});

	it.each([
		['http://mail.test', /starts with smtp:\/\/ or smtps:\/\//],
		['mail.test:25', /starts with smtp:/],
		['smtp://', /^not a valid SMTP URL, such as/],
		['smtp://mail.test:0', /^not a valid SMTP URL, such as/],
		['smtp://mail.test:65536', /^not a valid SMTP URL, such as/],
		['smtp://mail.test/inbox', /^not a valid SMTP URL, such as/],
		['smtp://mail.test?tls=maybe', /only parameter is tls/],
		['smtp://mail.test?x=1', /only parameter is tls/],
		['smtp://me@mail.test?tls=opportunistic', /with a user, tls is required or never/],
		['smtp://me%0d%0aRSET@mail.test', /^not a valid SMTP URL, such as/],
	])('is rejected: %s', (text, message) => {
		expect(parsed(text)).toMatch(message);
	});

	it('is rejected without being printed if it has a password', () => {
		const message = parsed('smtp://me:s3cret@mail.test');
		expect(message).toMatch(/--smtp-password-file/);
		expect(message).not.toContain('s3cret');
	});
});

describe('the normal form of an SMTP URL', () => {
	it.each([
		['127.0.0.1:2525', 'smtp://127.0.0.1:2525'],
		[' Mail.Test:587 ', 'smtp://mail.test:587'],
		['me@mail.test:465', 'smtps://me@mail.test:465'],
		['[::1]:25', 'smtp://[::1]:25'],
		['SMTP://Mail.Test/', 'smtp://mail.test'],
		['mail.test', 'mail.test'],
		['me:pass@mail.test:25', 'smtp://me:pass@mail.test:25'],
	])('given as "%s" is "%s"', (text, url) => expect(normalSmtpUrl(text)).toBe(url));
});
