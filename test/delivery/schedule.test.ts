import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { retryAt } from '../../src/delivery/smtp/courier.js';

const minute = 60_000_000;
const day = 86_400_000_000;
const middle = () => 0.5;

describe('the schedule of retries', () => {
	it('waits 5 minutes after the first failure, then doubles the wait up to 4 hours', () => {
		const delays = [1, 2, 3, 4, 5, 6, 7, 8, 60].map((attempts) => {
			const next = retryAt({ attempts, createdAt: 0, now: 0, random: middle });
			return next === null ? null : next / minute;
		});
		expect(delays).toEqual([5, 10, 20, 40, 80, 160, 240, 240, 240]);
	});
	it('gives up after 4 days', () => {
		expect(retryAt({ attempts: 9, createdAt: 0, now: 4 * day, random: middle })).toBeNull();
	});
	it('makes a last attempt when the 4 days end', () => {
		const next = retryAt({ attempts: 20, createdAt: 0, now: 4 * day - minute, random: middle });
		expect(next).toBe(4 * day);
	});
	it('makes three attempts for a message that was delayed beyond the 4 days', () => {
		const isTried = [1, 2, 3].map(
			(attempts) => retryAt({ attempts, createdAt: 0, now: 9 * day, random: middle }) !== null,
		);
		expect(isTried).toEqual([true, true, false]);
	});
	it('varies each wait by at most 10 %, and ends after 4 days', () => {
		fc.assert(
			fc.property(
				fc.nat(1_000_000_000),
				fc.array(fc.double({ min: 0, max: 0.999, noNaN: true }), { minLength: 1 }),
				(createdAt, rolls) => {
					let now = createdAt;
					for (let attempts = 1; attempts <= 60; attempts += 1) {
						const next = retryAt({
							attempts,
							createdAt,
							now,
							random: () => rolls[attempts % rolls.length] ?? 0,
						});
						if (next === null) return now - createdAt >= 4 * day && attempts < 60;
						const plan = Math.min(5 * minute * 2 ** (attempts - 1), 240 * minute);
						const isLast = next === createdAt + 4 * day;
						if (next <= now || next > now + plan * 1.1 + 1) return false;
						if (!isLast && next < now + plan * 0.9 - 1) return false;
						now = next;
					}
					return false;
				},
			),
		);
	});
});
