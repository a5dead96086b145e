import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
	createMac,
	type Keyring,
	keyringOf,
	publicLinks,
	signClickTokens,
	signToken,
	tokenPurposes,
	trackingKey,
	verifyClickToken,
	verifyToken,
} from '../../../src/delivery/tracking/tokens.js';

const message = '0b7f9d4e-6c1a-4f3e-9a55-2f6f1c9b8d10';
const old = trackingKey(1, Buffer.from('old secret'));
const young = trackingKey(4_294_967_295, Buffer.from('young secret'));
const ring: Keyring = [old];
const purposes = fc.constantFrom(...tokenPurposes);

describe('a token', () => {
	it('has 50 characters, and identifies a message for only one purpose', () => {
		fc.assert(
			fc.property(fc.uuid(), purposes, purposes, (id, purpose, other) => {
				const token = signToken(ring, purpose, id);
				expect(token).toMatch(/^[\w-]{50}$/);
				expect(verifyToken(ring, other, token)).toBe(purpose === other ? id : null);
			}),
		);
	});
	it('is rejected if any bit is flipped', () => {
		const token = Buffer.from(signToken(ring, 'u', message), 'base64url');
		for (let bit = 0; bit < token.length * 8; bit += 1) {
			const bent = Buffer.from(token);
			bent.writeUInt8(bent.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
			expect(verifyToken(ring, 'u', bent.toString('base64url'))).toBeNull();
		}
	});
	it('has exactly one valid spelling', () => {
		const token = signToken(ring, 'u', message);
		const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
		const accepted = [...last].filter(
			(letter) => verifyToken(ring, 'u', token.slice(0, -1) + letter) !== null,
		);
		expect(accepted).toEqual([token.slice(-1)]);
	});
	it('is valid only while its key is in the keyring', () => {
		const token = signToken(ring, 'o', message);
		expect(verifyToken([young, old], 'o', token)).toBe(message);
		expect(verifyToken([young], 'o', token)).toBeNull();
		expect(signToken([young, old], 'o', message)).not.toBe(token);
	});
	it('is rejected without an exception if it is random text', () => {
		fc.assert(fc.property(fc.string({ maxLength: 60 }), (text) => verifyToken(ring, 'u', text) === null));
		expect(verifyToken(ring, 'u', 'é'.repeat(50))).toBeNull();
	});
});

function clickTokens(keys: Keyring, id: string, links: number): string[] {
	const { begin, ends } = signClickTokens(keys, id, links);
	return ends.map((end) => begin + end);
}

describe('a click token', () => {
	const tokens = clickTokens(ring, message, 41);
	const token = tokens[7] ?? '';

	it('has 58 characters, begins with a token of its message, and identifies its link', () => {
		expect(tokens).toHaveLength(41);
		expect(new Set(tokens).size).toBe(41);
		for (const [link, one] of tokens.entries()) {
			expect(one).toMatch(/^[\w-]{58}$/);
			expect(one.slice(0, 50)).toBe(signToken(ring, 'c', message));
			expect(verifyClickToken(ring, one)).toEqual({ message, link });
		}
		fc.assert(
			fc.property(fc.uuid(), fc.integer({ min: 1, max: 300 }), (id, links) => {
				const last = clickTokens(ring, id, links).at(-1) ?? '';
				expect(verifyClickToken(ring, last)).toEqual({ message: id, link: links - 1 });
			}),
		);
		expect(clickTokens(ring, message, 0)).toEqual([]);
	});
	it('can be made for each of 65,536 links', () => {
		const last = clickTokens(ring, message, 65_536).at(-1) ?? '';
		expect(verifyClickToken(ring, last)).toEqual({ message, link: 65_535 });
	});
	it('is rejected if any bit is flipped', () => {
		const parts = [Buffer.from(token.slice(0, 50), 'base64url'), Buffer.from(token.slice(50), 'base64url')];
		for (const [index, part] of parts.entries()) {
			for (let bit = 0; bit < part.length * 8; bit += 1) {
				const bent = Buffer.from(part);
				bent.writeUInt8(bent.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
				const text = parts.map((whole, at) => (at === index ? bent : whole).toString('base64url')).join('');
				expect(verifyClickToken(ring, text)).toBeNull();
			}
		}
	});
	it('is not valid for another message, purpose or key', () => {
		const other = clickTokens(ring, '0b7f9d4e-6c1a-4f3e-9a55-2f6f1c9b8d11', 8)[7] ?? '';
		expect(verifyClickToken(ring, token.slice(0, 50) + other.slice(50))).toBeNull();
		for (const purpose of tokenPurposes) {
			const whole = signToken(ring, purpose, message) + token.slice(50);
			expect(verifyClickToken(ring, whole)).toEqual(purpose === 'c' ? { message, link: 7 } : null);
			expect(verifyToken(ring, purpose, token)).toBeNull();
		}
		const younger = clickTokens([young, old], message, 8)[7] ?? '';
		expect(verifyClickToken([young, old], token.slice(0, 50) + younger.slice(50))).toBeNull();
	});
	it('is valid only while its key is in the keyring', () => {
		expect(verifyClickToken([young, old], token)).toEqual({ message, link: 7 });
		expect(verifyClickToken([young], token)).toBeNull();
	});
	it('is rejected without an exception if it is random or altered text', () => {
		fc.assert(fc.property(fc.string({ maxLength: 70 }), (text) => verifyClickToken(ring, text) === null));
		for (const text of ['', token.slice(0, 50), `${token}A`, `${token} `, `${token.slice(0, 57)}=`]) {
			expect(verifyClickToken(ring, text)).toBeNull();
		}
	});
});

describe('links', () => {
	it('of a message begin with the public URL', () => {
		const links = publicLinks({ publicUrl: 'https://m.test/news/', keyring: ring, message });
		expect(links.unsubscribe_url).toBe(`https://m.test/news/u/${signToken(ring, 'u', message)}`);
		expect(links.view_url).toBe(`https://m.test/news/v/${signToken(ring, 'v', message)}`);
	});
	it('cannot be made without a key', () => {
		expect(keyringOf([])).toBeNull();
		const token = signToken([trackingKey(7, Buffer.from([1, 2]))], 'u', message);
		expect(verifyToken(keyringOf([{ id: 7, secret: 'AQI' }]) ?? ring, 'u', token)).toBe(message);
	});
});

describe('the HMAC over a message id', () => {
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

	it('equals the results of RFC 4231, test cases 2 and 6', () => {
		const jefe = createMac(Buffer.from('Jefe'), { label: '', length: 28 });
		expect(jefe(Buffer.from('what do ya want for nothing?')).toString('hex')).toBe(
			'5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
		);
		const long = createMac(Buffer.alloc(131, 0xaa), { label: '', length: 54 });
		expect(long(Buffer.from('Test Using Larger Than Block-Size Key - Hash Key First')).toString('hex')).toBe(
			'60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
		);
	});

	it('rejects a message id of another length', () => {
		expect(() => createMac(Buffer.from('k'), { label: '', length: 3 })(Buffer.from('four'))).toThrow(
			RangeError,
		);
	});
});
