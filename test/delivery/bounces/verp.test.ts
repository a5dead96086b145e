import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createVerp, type Verp } from '../../../src/delivery/bounces/verp.js';

const secret = (octet: number) => Buffer.alloc(32, octet).toString('base64url');
const oldKey = { id: 7, secret: secret(1) };
const newKey = { id: 4_294_967_295, secret: secret(2) };
const message = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
const another = '5f0c1c55-9a0e-4c5b-8d3e-2f8f0d1c9b7a';

function verp(address = 'bounces@example.com', keys = [newKey, oldKey]): Verp {
	const made = createVerp(address, keys);
	if (made === null) throw new Error('no keys');
	return made;
}

describe('a return path', () => {
	it('identifies its message, and is deterministic', () => {
		const address = verp().addressFor(message);
		expect(address).toMatch(/^bounces\+[a-z2-7]{48}@example\.com$/);
		expect(verp().addressFor(message)).toBe(address);
		expect(verp().messageOf(address)).toBe(message);
	});

	it('has a local part of at most 64 characters, even with the longest prefix', () => {
		const address = verp('fifteen.letters@example.com').addressFor(message);
		expect(address.indexOf('@')).toBe(64);
	});

	it('is valid in lower and upper case', () => {
		const address = verp('Bounces@Example.com').addressFor(message);
		expect(verp('Bounces@Example.com').messageOf(address.toLowerCase())).toBe(message);
		expect(verp('Bounces@Example.com').messageOf(address.toUpperCase())).toBe(message);
		// The setting may have had another case when the mail was sent.
		for (const prefix of ['bounces', 'BOUNCES', 'bOUNCES'])
			for (const written of [address, address.toLowerCase(), address.toUpperCase()])
				expect(verp(`${prefix}@example.com`).findIn(`To: <${written}>`)).toBe(message);
	});

	it('is accepted until its key is removed', () => {
		const address = verp('bounces@example.com', [oldKey]).addressFor(message);
		expect(verp().messageOf(address)).toBe(message);
		expect(verp('bounces@example.com', [newKey]).messageOf(address)).toBeNull();
	});

	it('with a signature of another key is rejected', () => {
		const forged = verp('bounces@example.com', [{ id: newKey.id, secret: secret(3) }]).addressFor(message);
		expect(verp().messageOf(forged)).toBeNull();
	});

	it.each([
		['unsigned', 'bounces@example.com'],
		['with a uuid and no signature', `bounces+${message}@example.com`],
		['with an empty token', 'bounces+@example.com'],
		['with characters outside base32', `bounces+${'1'.repeat(48)}@example.com`],
		['empty', ''],
	])('is rejected: %s', (_, address) => {
		expect(verp().messageOf(address)).toBeNull();
	});

	it('of another domain or prefix is rejected', () => {
		const address = verp().addressFor(message);
		expect(verp().messageOf(address.replace('example.com', 'example.org'))).toBeNull();
		expect(verp().messageOf(address.replace('bounces+', 'returns+'))).toBeNull();
		expect(verp().messageOf(`x${address}`)).toBeNull();
	});

	it('with any changed character is rejected', () => {
		const address = verp().addressFor(message);
		fc.assert(
			fc.property(fc.nat(47), fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz234567'), (at, character) => {
				const place = 'bounces+'.length + at;
				fc.pre(address[place] !== character);
				const changed = `${address.slice(0, place)}${character}${address.slice(place + 1)}`;
				expect(verp().messageOf(changed)).toBeNull();
			}),
		);
	});

	it('is found in header fields after a forged return path', () => {
		const forged = verp('bounces@example.com', [{ id: newKey.id, secret: secret(3) }]).addressFor(another);
		const text = `Delivered-To: ${forged}\nTo: <${verp().addressFor(message)}>\n`;
		expect(verp().findIn(text)).toBe(message);
		expect(verp().findIn('To: <bounces@example.com>')).toBeNull();
	});

	it('cannot be created without a key', () => {
		expect(createVerp('bounces@example.com', [])).toBeNull();
	});

	it('is not found in a text of 50,000 forged return paths, and the search ends quickly', () => {
		const forged = verp('bounces@example.com', [{ id: newKey.id, secret: secret(3) }]).addressFor(message);
		expect(verp().findIn(`${forged} `.repeat(50_000))).toBeNull();
	});
});
