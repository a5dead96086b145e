import { describe, expect, it } from 'vitest';
import { createThrottle } from '../../../src/http/server/throttle.js';

describe('a token that asks too often', () => {
	it('is let in now and then however low the rate, and whatever the clock does', () => {
		let now = 10_000_000;
		const throttle = createThrottle({ perSecond: 0.1, burst: 0.2, clock: { now: () => now } });
		expect([throttle('a'), throttle('a')]).toEqual([0, 10]);
		now -= 5_000_000;
		expect(throttle('a')).toBe(10);
		now += 10_000_000;
		expect(throttle('a')).toBe(0);
	});
});
