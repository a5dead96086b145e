import { describe, expect, it } from 'vitest';
import { backoff, parseRetryAfter, sleep } from '../../src/api/backoff.js';

it('a backoff doubles with each failure up to its maximum', () => {
	expect([1, 2, 3, 4, 100].map((failures) => backoff({ first: 5, longest: 30 }, failures))).toEqual([
		5, 10, 20, 30, 30,
	]);
	expect(backoff({ first: 200 }, 10)).toBe(102_400);
});

describe('Retry-After', () => {
	it.each([
		['5', 5_000],
		[' 0 ', 0],
		['120', 120_000],
		['Sat, 21 Nov 2026 08:00:30 GMT', 30_000],
		['Sat, 21 Nov 2026 07:00:00 GMT', 0],
		['Saturday, 21-Nov-26 08:00:30 GMT', 30_000],
		['-5', null],
		['1.5', null],
		['1e3', null],
		['1e9', null],
		['9'.repeat(40), null],
		['soon', null],
		['', null],
		[undefined, null],
	])('%j is parsed as %j ms', (header, ms) => {
		expect(parseRetryAfter(header, Date.UTC(2026, 10, 21, 8))).toBe(ms);
	});

	it('is ignored if it is a date and the current time is unknown', () => {
		expect(parseRetryAfter('Tue, 10 Mar 2026 12:01:00 GMT', Date.parse(''))).toBeNull();
	});
});

it('a sleep rejects with the reason of its abort signal', async () => {
	await sleep(0, new AbortController().signal);
	await expect(sleep(3_600_000, AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
	const controller = new AbortController();
	const sleeping = sleep(3_600_000, controller.signal);
	controller.abort(new Error('enough'));
	await expect(sleeping).rejects.toThrow('enough');
});
