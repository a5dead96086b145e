import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMac } from '../../../src/delivery/tracking/tokens.js';

describe('the HMAC of a message', () => {
	it('equals HMAC-SHA256 over label and message, for keys of any length', () => {
		fc.assert(
			fc.property(
				fc.uint8Array({ maxLength: 200 }),
				fc.string({ maxLength: 30 }),
				fc.uint8Array({ maxLength: 100 }),
				(secret, label, message) => {
					const mac = createMac(secret, { label, length: message.length });
					const expected = createHmac('sha256', secret).update(label).update(message).digest();
					expect(mac(message)).toEqual(expected);
					expect(mac(message)).toEqual(expected);
				},
			),
		);
	});

	it('equals RFC 4231, test cases 2 and 6', () => {
		const jefe = createMac(Buffer.from('Jefe'), { label: '', length: 28 });
		expect(jefe(Buffer.from('what do ya want for nothing?')).toString('hex')).toBe(
			'5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
		);
		const long = createMac(Buffer.alloc(131, 0xaa), { label: '', length: 54 });
		expect(long(Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First')).toString('hex')).toBe(
			'60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
		);
	});

	it('rejects a message of another length', () => {
		expect(() => createMac(Buffer.from('k'), { label: '', length: 3 })(Buffer.from('four'))).toThrow(
			RangeError,
		);
	});
});
