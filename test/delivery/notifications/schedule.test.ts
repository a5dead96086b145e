import { describe, expect, it } from 'vitest';
import { resultOf } from '../../../src/delivery/notifications/schedule.js';

const answerOf = (status: number | null, retryAfterMs: number | null = null) => ({
	...{ status, error: status === null ? 'ECONNREFUSED' : null, text: 'said', retryAfterMs, durationMs: 3 },
});
const judge = (status: number | null, more: { before?: number; random?: number; wait?: number } = {}) => {
	const { before = 0, random = 0.5, wait } = more;
	const url = 'https://hooks.example.com/in';
	return resultOf({ before, url, random, now: 1_000_000, answer: answerOf(status, wait ?? null) });
};

describe('the schedule of notifications (32)', () => {
	it.each([200, 201, 202, 204, 299])('ends with %i', (status) => {
		expect(judge(status).kind).toBe('delivered');
	});

	it.each([
		null,
		100,
		300,
		301,
		302,
		307,
		308,
		400,
		401,
		404,
		409,
		429,
		500,
		503,
	])('goes on after %s', (status) => {
		expect(judge(status).kind).toBe('again');
	});

	it('ends for good with 410, at the first attempt and at the last', () => {
		expect(judge(410).kind).toBe('gone');
		expect(judge(410, { before: 9 }).kind).toBe('gone');
	});

	it('waits as decided, ten per cent more or less, and fails after the tenth attempt', () => {
		const seconds = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
		const waited = (before: number, random: number) => {
			const result = judge(500, { before, random });
			return result.kind === 'again' ? (result.due_at - 1_000_000) / 1_000_000 : null;
		};
		expect(seconds.map((_, before) => waited(before, 0.5))).toEqual(seconds);
		expect(seconds.map((_, before) => waited(before, 0))).toEqual(seconds.map((wait) => wait * 0.9));
		expect(seconds.map((wait, before) => (waited(before, 0.999) ?? 0) / wait < 1.1)).not.toContain(false);
		expect(judge(500, { before: 9 }).kind).toBe('failed');
	});

	it('waits longer where the target asks for it, a day at most, and never shorter', () => {
		const dueAfter = (wait: number, before = 0) => {
			const result = judge(503, { before, wait });
			return result.kind === 'again' ? (result.due_at - 1_000_000) / 1_000_000 : null;
		};
		expect(dueAfter(60_000)).toBe(60);
		expect(dueAfter(1)).toBe(5);
		expect(dueAfter(1_000_000_000_000)).toBe(86_400);
	});
});
