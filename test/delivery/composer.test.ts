import { expect, it } from 'vitest';
import { createContentCache } from '../../src/content/cache.js';
import { Composer } from '../../src/delivery/composer.js';
import type { StoredSubmission } from '../../src/store/campaigns.js';
import type { Fence, Leased } from '../../src/store/queue.js';
import { readHere } from '../support/read-here.js';

const submission: StoredSubmission = {
	id: 's',
	type: 'TRANSACTIONAL',
	envelope: { from: 'news@example.com', reply_to: [], cc: [], bcc: [], headers: {} },
	tag: null,
	campaign: null,
	content: { subject: 's', text: '#k# '.repeat(400), html: null, disable_inline: true },
	content_sha256: 'x',
};
const messageOf = (message: string, k: string, more: Partial<Leased> = {}): Leased => ({
	message,
	fence: 1,
	submission: 's',
	to: 'ada@example.org',
	list_id: null,
	variables: { k },
	attempts: 0,
	created_at: 1_000_000,
	...more,
});

async function told(messages: readonly Leased[]): Promise<string[]> {
	const said: string[] = [];
	const composer = new Composer({
		reads: { getSubmission: async () => submission, getAttachment: async () => null },
		contents: createContentCache({ askHtml: readHere, maxBytes: 1e6 }),
		publicUrl: null,
		keyring: null,
		queue: {
			beginComposing: async ({ message, fence }: Fence) => void said.push(`begin ${message} ${fence}`),
			endComposing: async ({ message, fence }: Fence) => void said.push(`end ${message} ${fence}`),
		},
	});
	await Promise.all(messages.map((message) => composer.compose(message)));
	return said;
}

it('the composer makes no queue calls for ordinary messages', async () => {
	expect(await told([messageOf('a', 'Ada'), messageOf('b', 'x'.repeat(500))])).toEqual([]);
});

it('the composer tells the queue when it begins and ends a large or suspect message', async () => {
	const large = messageOf('large', 'x'.repeat(10_000));
	const endless = messageOf('endless', 'x'.repeat(100_000));
	const suspect = messageOf('suspect', 'Ada', { is_suspect: true, fence: 7 });
	expect(await told([large, messageOf('a', 'Ada'), endless, suspect])).toEqual([
		'begin large 1',
		'end large 1',
		'begin endless 1',
		'end endless 1',
		'begin suspect 7',
		'end suspect 7',
	]);
});

it('the composer gives threads no message for which compose was already called', async () => {
	const given: string[][] = [];
	const html = { ...submission.content, text: null, html: '<p>Hi #k#</p>', disable_inline: true };
	const composer = new Composer({
		reads: { getSubmission: async () => ({ ...submission, content: html }), getAttachment: async () => null },
		contents: createContentCache({ askHtml: readHere, maxBytes: 1e6 }),
		publicUrl: null,
		keyring: null,
		ahead: {
			expect: (_, messages) => void given.push(messages.map(({ message }) => message)),
			take: () => null,
			keysFor: async () => [],
		},
	});
	const messages = (word: string, count: number) =>
		Array.from({ length: count }, (_, at) => messageOf(`${word}${at}`, 'Ada'));
	// The test requests all ten messages before the composer has read their submission, so no thread gets one.
	const ten = messages('a', 10);
	composer.expect(ten);
	await Promise.all(ten.map((message) => composer.compose(message)));
	const many = messages('b', 40);
	composer.expect(many);
	await Promise.all(many.slice(0, 5).map((message) => composer.compose(message)));
	await expect.poll(() => given).toEqual([many.slice(5).map(({ message }) => message)]);
});
