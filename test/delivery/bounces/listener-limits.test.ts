import { describe, expect, it } from 'vitest';
import { IntakeLimits } from '../../../src/delivery/bounces/listener.js';

describe('the limits of one network', () => {
	it('allow a number of connections at once', () => {
		const limits = new IntakeLimits({ maxConnections: 2 });
		expect([limits.connect('a'), limits.connect('a'), limits.connect('a')]).toEqual([true, true, false]);
		expect(limits.connect('b')).toBe(true);
		limits.disconnect('a');
		limits.disconnect('a');
		expect(limits.connect('a')).toBe(true);
	});

	it('count an IPv6 network as one, and an IPv4 address in any form', () => {
		const limits = new IntakeLimits({ maxConnections: 1 });
		const ofOne = ['2001:db8:0:1::1', '2001:0db8::1:ffff:0:0:2', '2001:db8:0:1:a:b:c:d'];
		expect(ofOne.map((ip) => limits.connect(ip))).toEqual([true, false, false]);
		expect(limits.connect('2001:db8:0:2::1')).toBe(true);
		expect(['192.0.2.1', '::ffff:192.0.2.1', '192.0.2.2'].map((ip) => limits.connect(ip))).toEqual([
			true,
			false,
			true,
		]);
		for (const ip of ofOne) limits.disconnect(ip);
		expect(limits.connect('2001:db8:0:1::9')).toBe(true);
	});

	it('reject a network for the rest of a minute after too many refusals', () => {
		let now = 0;
		const limits = new IntakeLimits({ maxRefused: 2, now: () => now });
		limits.refused('a');
		expect(limits.connect('a')).toBe(true);
		limits.refused('a');
		expect([limits.connect('a'), limits.connect('b')]).toEqual([false, true]);
		now = 60_000;
		expect(limits.connect('a')).toBe(true);
	});
});
