// Answers of one turn: written together, in their order, and never too many at once.
import { expect, it } from 'vitest';
import { createWriteQueue } from '../../../src/http/server/respond.js';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

it('writes what one turn hands over after it, in order', async () => {
	const enqueue = createWriteQueue();
	const written: number[] = [];
	for (const number of [1, 2, 3]) enqueue(() => written.push(number));
	expect(written).toEqual([]);
	await turn();
	expect(written).toEqual([1, 2, 3]);
});

it('does not let more than 32 wait, and goes on with the rest', async () => {
	const enqueue = createWriteQueue();
	const written: number[] = [];
	for (let number = 0; number < 40; number += 1) enqueue(() => written.push(number));
	expect(written).toHaveLength(32);
	await turn();
	expect(written).toEqual(Array.from({ length: 40 }, (_, at) => at));
});

it('writes what a write hands over in the turn after', async () => {
	const enqueue = createWriteQueue();
	const written: string[] = [];
	enqueue(() => {
		written.push('first');
		enqueue(() => written.push('second'));
	});
	await turn();
	await turn();
	expect(written).toEqual(['first', 'second']);
});
