import { expect, it } from 'vitest';
import { createContentCache } from '../../src/content/cache.js';
import { contentSha256 } from '../../src/content/hash.js';
import { type AskHtml, readHtml } from '../../src/content/read-html.js';
import { content } from './support.js';

const styled = content({ html: '<style>p{color:red}</style><p>x</p>', disable_inline: false });

function counted(maxBytes: number): { get: (name: string) => Promise<unknown>; runs: () => number } {
	let runs = 0;
	const askHtml: AskHtml = async (question) => {
		runs += 1;
		return readHtml(question, (html) => html);
	};
	const cache = createContentCache({ askHtml, maxBytes });
	return { get: (name) => cache.get(name, styled), runs: () => runs };
}

it('the cache compiles the same content only once for simultaneous and later requests', async () => {
	const { get, runs } = counted(1e6);
	const [first, second] = await Promise.all([get('a'), get('a')]);
	expect(second).toBe(first);
	expect(await get('a')).toBe(first);
	expect(runs()).toBe(1);
});

it('the cache evicts the least recently used content', async () => {
	const { get, runs } = counted(15_000);
	await get('a');
	await get('b');
	await get('a');
	await get('c');
	expect(runs()).toBe(3);
	await get('a');
	expect(runs()).toBe(3);
	await get('b');
	expect(runs()).toBe(4);
});

it('the cache counts the size of the HTML after CSS is inlined', async () => {
	let runs = 0;
	const cache = createContentCache({
		askHtml: async (question) => {
			runs += 1;
			return readHtml(question, (html) => `${html}${' '.repeat(50_000)}`);
		},
		maxBytes: 80_000,
	});
	await cache.get('a', styled);
	await cache.get('b', styled);
	expect(runs).toBe(2);
	await cache.get('a', styled);
	expect(runs).toBe(3);
});

it('the content hash depends on each part of the content', () => {
	const hashes = [
		content({}),
		content({ text: '' }),
		content({ html: '' }),
		content({ disable_inline: false }),
		content({ subject: 'x' }),
	].map(contentSha256);
	expect(new Set(hashes).size).toBe(5);
	expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
});
