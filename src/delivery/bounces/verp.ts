/**
 * The return path of a message, `bounces+TOKEN@example.com`, identifies the message in a bounce (VERP). The token is
 * signed, so nobody can invent a valid token for a forged bounce. The 30 bytes of a token are the key id (4), the
 * message's UUID (16) and the HMAC-SHA256 of both, cut to 80 bits (10). Base32 survives servers that change the case of
 * local parts.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Uuid } from '../../api/records.js';
import { createMac, type Mac, uuidOf } from '../tracking/tokens.js';

export interface Verp {
	addressFor(message: Uuid): string;
	messageOf(address: string): Uuid | null;
	findIn(text: string): Uuid | null;
	isOurDomain(address: string): boolean;
}

const signedBytes = 20;
const macBytes = 10;
const tokenCharacters = 48;
const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
const anyToken = /\+([a-z2-7]{48})@/gi;
/** Limits the tokens to verify. A text may have many that look valid, and each costs a hash. */
const mostTokens = 100;

/** `keys`: newest first, with secrets in base64url. */
export function createVerp(
	bounceAddress: string,
	keys: readonly { id: number; secret: string }[],
): Verp | null {
	const ring = keys.map(({ id, secret }) => ({ id, mac: macFor(secret) }));
	const [newest] = ring;
	if (newest === undefined) return null;
	const at = bounceAddress.lastIndexOf('@');
	const begin = `${bounceAddress.slice(0, at)}+`;
	const end = bounceAddress.slice(at);
	const isOurDomain = (address: string) => address.toLowerCase().endsWith(end.toLowerCase());
	const messageOf = (address: string) => {
		const isOurs = address.length === begin.length + tokenCharacters + end.length && isOurDomain(address);
		if (!isOurs || !address.toLowerCase().startsWith(begin.toLowerCase())) return null;
		return verify(ring, address.slice(begin.length, -end.length));
	};
	return {
		addressFor: (message) => `${begin}${sign(newest, message)}${end}`,
		messageOf,
		findIn: (text) => {
			let tried = 0;
			for (const { index } of text.matchAll(anyToken)) {
				tried += 1;
				if (tried > mostTokens) return null;
				const from = index + 1 - begin.length;
				const found = messageOf(
					text.slice(Math.max(0, from), from + begin.length + tokenCharacters + end.length),
				);
				if (found !== null) return found;
			}
			return null;
		},
		isOurDomain,
	};
}

interface VerpKey {
	id: number;
	mac: Mac;
}

function macFor(secret: string): Mac {
	return createMac(Buffer.from(secret, 'base64url'), {
		label: 'mailctl return path 1\0',
		length: signedBytes,
	});
}

function sign(key: VerpKey, message: Uuid): string {
	const token = Buffer.alloc(signedBytes + macBytes);
	token.writeUInt32BE(key.id, 0);
	token.write(message.replaceAll('-', ''), 4, 'hex');
	key.mac(token.subarray(0, signedBytes)).copy(token, signedBytes, 0, macBytes);
	return encodeBase32(token);
}

function verify(ring: readonly VerpKey[], text: string): Uuid | null {
	const token = decodeBase32(text);
	if (token === null) return null;
	const key = ring.find(({ id }) => id === token.readUInt32BE(0));
	if (key === undefined) return null;
	const expected = key.mac(token.subarray(0, signedBytes)).subarray(0, macBytes);
	return timingSafeEqual(expected, token.subarray(signedBytes))
		? uuidOf(token.subarray(4, signedBytes))
		: null;
}

/** RFC 4648 s.6 in lower case. The length of a token is a multiple of 5 bytes, so it needs no padding. */
function encodeBase32(bytes: Buffer): string {
	return regrouped(bytes, 8, 5)
		.map((five) => alphabet[five])
		.join('');
}

function decodeBase32(text: string): Buffer | null {
	const fives = [...text.toLowerCase()].map((character) => alphabet.indexOf(character));
	if (fives.includes(-1)) return null;
	const bytes = Buffer.from(regrouped(fives, 5, 8));
	return bytes.length === signedBytes + macBytes ? bytes : null;
}

function regrouped(values: Iterable<number>, from: number, to: number): number[] {
	const groups: number[] = [];
	let bits = 0;
	let rest = 0;
	for (const value of values) {
		rest = ((rest << from) | value) & 0xfff;
		for (bits += from; bits >= to; bits -= to) groups.push((rest >> (bits - to)) & (2 ** to - 1));
	}
	return groups;
}
