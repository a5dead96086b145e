import fc from 'fast-check';
import { expect, it } from 'vitest';
import { chunksByRank, rankOf } from '../../../src/store/core/imports/batch-rows.js';

const rank = (key: string) => rankOf((place) => (place < key.length ? key.charCodeAt(place) : 0));

function rankOfOctets(key: string): number {
	const octets = Buffer.from(key);
	return rankOf((place) => octets[place] ?? 0);
}

it('orders what is printable ASCII as it is ordered, by its first characters', () => {
	const keys = ['', ' ', '+a@x', '-', '0@x', '12345', '2@', 'a', 'a@x', 'ab', 'b', 'z@x', '~', '~~~~~'];
	const ranks = keys.map(rank);
	expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
	expect(rank('alexander@x')).toBe(rank('alexandra@x'));
});

it('gives a key one rank, whether it is looked at as a text or as its octets', () => {
	fc.assert(
		fc.property(fc.string({ unit: 'binary' }), (key) => {
			expect(rankOfOctets(key)).toBe(rank(key));
		}),
	);
});

it('keeps rows of one rank in their order and in one chunk, and forgets none', () => {
	fc.assert(
		fc.property(
			fc.array(fc.constantFrom('a', 'b', 'é', '', '~~~~~', 'abcdef'), { maxLength: 200 }),
			fc.integer({ min: 1, max: 50 }),
			(keys, size) => {
				const rankAt = (index: number) => rank(keys[index] ?? '');
				const wanted = keys.map((_, index) => index).sort((a, b) => rankAt(a) - rankAt(b) || a - b);
				const chunks = chunksByRank(keys.length, rankAt, size).map((chunk) => [...chunk]);
				expect(chunks.flat()).toEqual(wanted);
				expect(chunks.slice(0, -1).every((chunk) => chunk.length >= size)).toBe(true);
				const ranks = chunks.flatMap((chunk) => [...new Set(chunk.map(rankAt))]);
				expect(new Set(ranks).size).toBe(ranks.length);
			},
		),
	);
});
