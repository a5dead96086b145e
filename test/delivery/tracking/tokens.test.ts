import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { publicLinks } from '../../../src/delivery/tracking/links.js';
import {
	type Keyring,
	keyringOf,
	signToken,
	tokenPurposes,
	verifyToken,
} from '../../../src/delivery/tracking/tokens.js';

const message = '0b7f9d4e-6c1a-4f3e-9a55-2f6f1c9b8d10';
const old = { id: 1, secret: Buffer.from('old secret') };
const young = { id: 4_294_967_295, secret: Buffer.from('young secret') };
const ring: Keyring = [old];
const purposes = fc.constantFrom(...tokenPurposes);

describe('a token', () => {
	it('gives back its message for its purpose, and is 50 characters', () => {
		fc.assert(
			fc.property(fc.uuid(), purposes, purposes, (id, purpose, other) => {
				const token = signToken(ring, purpose, id);
				expect(token).toMatch(/^[\w-]{50}$/);
				expect(verifyToken(ring, other, token)).toBe(purpose === other ? id : null);
			}),
		);
	});
	it('is refused when any single bit is flipped', () => {
		const token = Buffer.from(signToken(ring, 'u', message), 'base64url');
		for (let bit = 0; bit < token.length * 8; bit += 1) {
			const bent = Buffer.from(token);
			bent.writeUInt8(bent.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
			expect(verifyToken(ring, 'u', bent.toString('base64url'))).toBeNull();
		}
	});
	it('has one spelling', () => {
		const token = signToken(ring, 'u', message);
		const last = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
		const accepted = [...last].filter(
			(letter) => verifyToken(ring, 'u', token.slice(0, -1) + letter) !== null,
		);
		expect(accepted).toEqual([token.slice(-1)]);
	});
	it('does not carry the signature of another message', () => {
		const mine = Buffer.from(signToken(ring, 'u', message), 'base64url');
		const other = Buffer.from(signToken(ring, 'u', '0b7f9d4e-6c1a-4f3e-9a55-2f6f1c9b8d11'), 'base64url');
		mine.copy(other, 21, 21);
		expect(verifyToken(ring, 'u', other.toString('base64url'))).toBeNull();
	});
	it('lives as long as its key is in the ring', () => {
		const token = signToken(ring, 'o', message);
		expect(verifyToken([young, old], 'o', token)).toBe(message);
		expect(verifyToken([young], 'o', token)).toBeNull();
		expect(signToken([young, old], 'o', message)).not.toBe(token);
	});
	it('is refused quietly whatever it is', () => {
		fc.assert(fc.property(fc.string({ maxLength: 60 }), (text) => verifyToken(ring, 'u', text) === null));
		expect(verifyToken(ring, 'u', 'é'.repeat(50))).toBeNull();
	});
});

describe('links', () => {
	it('stand below the public URL', () => {
		const links = publicLinks({ publicUrl: 'https://m.test/news/', keyring: ring, message });
		expect(links.unsubscribe_url).toBe(`https://m.test/news/u/${signToken(ring, 'u', message)}`);
		expect(links.view_url).toBe(`https://m.test/news/v/${signToken(ring, 'v', message)}`);
	});
	it('need a key', () => {
		expect(keyringOf([])).toBeNull();
		expect(keyringOf([{ id: 7, secret: 'AQI' }])).toEqual([{ id: 7, secret: Buffer.from([1, 2]) }]);
	});
});
