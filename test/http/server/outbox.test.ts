// Answers of one turn: written together, in their order, and never too many at once.
import { expect, it } from 'vitest';
import { createOutbox } from '../../../src/http/server/outbox.js';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

it('writes what one turn hands over after it, in order', async () => {
	const outbox = createOutbox();
	const written: number[] = [];
	for (const number of [1, 2, 3]) outbox(() => written.push(number));
	expect(written).toEqual([]);
	await turn();
	expect(written).toEqual([1, 2, 3]);
});

it('does not let more than 32 wait, and goes on with the rest', async () => {
	const outbox = createOutbox();
	const written: number[] = [];
	for (let number = 0; number < 40; number += 1) outbox(() => written.push(number));
	expect(written).toHaveLength(32);
	await turn();
	expect(written).toEqual(Array.from({ length: 40 }, (_, at) => at));
});

it('writes what a write hands over in the turn after', async () => {
	const outbox = createOutbox();
	const written: string[] = [];
	outbox(() => {
		written.push('first');
		outbox(() => written.push('second'));
	});
	await turn();
	await turn();
	expect(written).toEqual(['first', 'second']);
});
