import { describe, expect, it } from 'vitest';
import { createThrottle } from '../../../src/http/server/throttle.js';

describe('a token that asks too often', () => {
	it('waits until its bucket holds one request again; others do not', () => {
		let now = 0;
		const throttle = createThrottle({ perSecond: 2, burst: 2, clock: { now: () => now } });
		expect([throttle('a'), throttle('a'), throttle('a'), throttle('b')]).toEqual([0, 0, 0.5, 0]);
		now += 250_000;
		expect(throttle('a')).toBe(0.25);
		now += 250_000;
		expect(throttle('a')).toBe(0);
	});

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
