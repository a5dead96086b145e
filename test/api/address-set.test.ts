import { describe, expect, it } from 'vitest';
import { AddressSet } from '../../src/api/address-set.js';

describe('a set of addresses', () => {
	it('recognizes each stored address and uses 22 bytes per address', () => {
		const set = new AddressSet();
		const addresses = Array.from({ length: 50_000 }, (_, index) => `p${index}@example.com`);
		expect(addresses.filter((address) => !set.add(address))).toEqual([]);
		expect(addresses.filter((address) => set.add(address))).toEqual([]);
		expect([set.has('p7@example.com'), set.has('q7@example.com')]).toEqual([true, false]);
		expect(set.size).toBe(50_000);
		expect(set.bytes / set.size).toBeLessThanOrEqual(22);
	});
});
