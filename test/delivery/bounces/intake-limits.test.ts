import { describe, expect, it } from 'vitest';
import { createIntakeLimits } from '../../../src/delivery/bounces/intake-limits.js';

describe('what one address may bring', () => {
	it('has an end for connections at once, each of which frees its place', () => {
		const limits = createIntakeLimits({ maxConnections: 2 });
		expect([limits.connect('a'), limits.connect('a'), limits.connect('a')]).toEqual([true, true, false]);
		expect(limits.connect('b')).toBe(true);
		limits.disconnect('a');
		limits.disconnect('a');
		expect(limits.connect('a')).toBe(true);
	});

	it('has an end for mails within a minute', () => {
		let now = 0;
		const limits = createIntakeLimits({ maxMails: 2, now: () => now });
		expect([limits.mail('a'), limits.mail('a'), limits.mail('a')]).toEqual([true, true, false]);
		expect(limits.mail('b')).toBe(true);
		now = 60_000;
		expect(limits.mail('a')).toBe(true);
	});
});
