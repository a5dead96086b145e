// Which calls meet a proxy: as the agent that carries them out decides it.
import { describe, expect, it } from 'vitest';
import { isProxied } from '../../../src/http/client/proxy.js';

const proxy = 'http://proxy.example.com:3128';
const meets = (url: string, env: Record<string, string>, flag: string | null = null) =>
	isProxied({ baseUrl: new URL(url), proxy: flag, env });

describe('a call', () => {
	it.each([
		['https://mail.example.com', { HTTPS_PROXY: proxy }, true],
		['https://mail.example.com', { https_proxy: proxy }, true],
		['https://mail.example.com', { HTTP_PROXY: proxy }, true],
		['http://mail.example.com', { HTTP_PROXY: proxy }, true],
		['http://mail.example.com', { HTTPS_PROXY: proxy }, false],
		['https://mail.example.com', {}, false],
		['http://127.0.0.1:8080', { HTTP_PROXY: proxy }, false],
		['http://news.localhost', { HTTP_PROXY: proxy }, false],
	])('to %s with %o: %s', (url, env, expected) => {
		expect(meets(url, env)).toBe(expected);
	});

	it.each([
		['*', false],
		['mail.example.com', false],
		['MAIL.example.com', false],
		['example.com', false],
		['.example.com', false],
		['*.example.com', false],
		['other.org, example.com', false],
		['other.org example.com', false],
		['mail.example.com:443', false],
		['mail.example.com:8443', true],
		['ample.com', true],
		['.', true],
		['', true],
	])('to https://mail.example.com with NO_PROXY "%s": %s', (NO_PROXY, expected) => {
		expect(meets('https://mail.example.com', { HTTPS_PROXY: proxy, NO_PROXY })).toBe(expected);
	});

	it('goes through the proxy of --proxy, whatever NO_PROXY says', () => {
		expect(meets('https://mail.example.com', { NO_PROXY: '*' }, proxy)).toBe(true);
		expect(meets('http://localhost:8080', {}, proxy)).toBe(false);
	});

	it('to an address in brackets is told apart from its port', () => {
		const env = { HTTP_PROXY: proxy, NO_PROXY: '[2001:db8::1]:8080' };
		expect([meets('http://[2001:db8::1]:8080', env), meets('http://[2001:db8::1]', env)]).toEqual([
			false,
			true,
		]);
	});
});
