import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { createContentCache } from '../../../src/content/cache.js';
import { contentSha256 } from '../../../src/content/hash.js';
import { Composer, type ComposerOptions } from '../../../src/delivery/composer.js';
import { trackedEvent } from '../../../src/delivery/tracking/events.js';
import { trackingKey } from '../../../src/delivery/tracking/tokens.js';
import type { StoredSubmission } from '../../../src/store/campaigns.js';
import type { Leased } from '../../../src/store/queue.js';
import { readHere } from '../../support/read-here.js';

const message: Leased = {
	message: '0b7f9d4e-6c1a-4f3e-9a55-2f6f1c9b8d10',
	fence: 1,
	submission: 's',
	to: 'ada@example.org',
	list_id: null,
	variables: { name: 'Ada' },
	attempts: 0,
	created_at: 1_000_000,
};
const keyring: ComposerOptions['keyring'] = [trackingKey(1, Buffer.alloc(32, 1))];
const html = '<p>Hi #name#</p><a href="https://x.y/">x</a>';

async function composed(
	submission: Partial<Pick<StoredSubmission, 'type' | 'tracking'>> & { html: string | null },
	options: Partial<ComposerOptions> = {},
) {
	const content = { subject: 's', text: 'Hi, see https://x.y/', html: submission.html, disable_inline: true };
	const stored: StoredSubmission = {
		id: 's',
		type: 'TRANSACTIONAL',
		envelope: { from: 'news@example.com', reply_to: [], cc: [], bcc: [], headers: {} },
		tag: null,
		campaign: null,
		content,
		content_sha256: contentSha256(content),
		...(submission.type !== undefined && { type: submission.type }),
		...(submission.tracking !== undefined && { tracking: submission.tracking }),
	};
	const composer = new Composer({
		reads: { getSubmission: async () => stored, getAttachment: async () => null },
		contents: createContentCache({ askHtml: readHere, maxBytes: 1e6 }),
		publicUrl: 'https://m.test/news/',
		keyring,
		...options,
	});
	const result = await composer.compose(message);
	if (result.kind !== 'mail') throw new Error(result.conversation.reply.text);
	return { raw: result.mail.bytes.toString('latin1'), ...(await PostalMime.parse(result.mail.bytes)) };
}

describe('a mail', () => {
	it.each([
		'TRANSACTIONAL',
		'BULK',
	] as const)('with HTML gets tracked links and a pixel: %s', async (type) => {
		const mail = await composed({ type, html });
		expect(mail.html).toMatch(
			/^<p>Hi Ada<\/p><a href="https:\/\/m\.test\/news\/c\/[\w-]{58}">x<\/a><img src="https:\/\/m\.test\/news\/o\/[\w-]{50}\.gif" width="1" height="1" alt="" style="[^"]*">\n?$/,
		);
		expect(mail.text?.trim()).toBe('Hi, see https://x.y/');
		expect(/^List-Unsubscribe: <https:\/\/m\.test\/news\/u\/[\w-]{50}>\r$/m.test(mail.raw)).toBe(
			type === 'BULK',
		);
	});

	it.each<[string, Partial<ComposerOptions>]>([
		['a public URL', { publicUrl: null }],
		['a key', { keyring: null }],
	])('is sent unchanged if mailctl has no %s', async (_what, options) => {
		const mail = await composed({ html, type: 'BULK' }, options);
		expect(mail.html?.trim()).toBe('<p>Hi Ada</p><a href="https://x.y/">x</a>');
		expect(mail.raw).not.toContain('List-Unsubscribe');
	});

	it('contains the unsubscribe and view links, unless the recipient has variables of these names', async () => {
		const mail = await composed({ html: '<a href="#unsubscribe_url#">u</a><a href="#view_url#">v</a>' });
		expect(mail.html).toMatch(
			/<a href="https:\/\/m\.test\/news\/u\/[\w-]{50}">u<\/a><a href="https:\/\/m\.test\/news\/v\/[\w-]{50}">v<\/a>/,
		);
		message.variables['view_url'] = 'https://own.example/';
		const own = await composed({ html: '<a href="#view_url#">v</a>' });
		delete message.variables['view_url'];
		expect(own.html).toContain('<a href="https://own.example/">v</a>');
	});

	it('without tracking keeps its links, and has the unsubscribe and view links', async () => {
		const page = '<a href="https://x.y/">x</a><a href="#unsubscribe_url#">u</a><a href="#view_url#">v</a>';
		const mail = await composed({ html: page, type: 'BULK', tracking: 'off' });
		expect(mail.html?.trim()).toMatch(
			/^<a href="https:\/\/x\.y\/">x<\/a><a href="https:\/\/m\.test\/news\/u\/[\w-]{50}">u<\/a><a href="https:\/\/m\.test\/news\/v\/[\w-]{50}">v<\/a>$/,
		);
		expect(mail.raw).toMatch(/^List-Unsubscribe: <https:\/\/m\.test\/news\/u\/[\w-]{50}>\r$/m);
	});
});

describe('an event', () => {
	const seen = (userAgent: string | null, url = 'https://x.y/') =>
		trackedEvent({
			message: 'm',
			type: 'REDIRECTED',
			at: 5,
			link: { position: 3, url },
			machine: false,
			visitor: { ip: '::1', userAgent },
		});

	it('contains the link, the IP address and the user agent', () => {
		expect(seen('Mail/1')).toEqual({
			message: 'm',
			type: 'REDIRECTED',
			at: 5,
			link: 3,
			machine: false,
			too_soon: 2_000_000,
			ip: '::1',
			user_agent: 'Mail/1',
			url: 'https://x.y/',
			smtp_code: null,
			diagnostic: null,
		});
	});

	it('contains no control characters, no text over its limit, and no half of a surrogate pair', () => {
		expect(seen('a\u0000b\r\nc\u001b[1m\u2028d').user_agent).toBe('a b c [1m d');
		expect(seen('x'.repeat(501)).user_agent).toBe('x'.repeat(500));
		expect(seen(`${'x'.repeat(499)}😀`).user_agent).toBe('x'.repeat(499));
		expect(seen(' \t ').user_agent).toBeNull();
		expect(seen(null).user_agent).toBeNull();
		expect(seen('x', `https://x.y/${'a'.repeat(9000)}`).url).toHaveLength(2048);
	});
});
