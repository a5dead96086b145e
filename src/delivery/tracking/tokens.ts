/**
 * Tokens in links: which message, what for, signed. One token carries 37 bytes as 50 characters of base64url:
 * purpose (1), key id (4), message uuid (16), HMAC-SHA256 of these cut to 128 bits (16). No address is in it.
 *
 * A click also says which link of the message. Its token is the message's c-token and 8 characters more: the link's
 * position (2 bytes) and a check of it (4). The HMAC has 32 bytes and the token shows 16: the other half is a secret
 * that belongs to this one message, and the check is the position encrypted with it (AES-128, cut to 32 bits). So a
 * message costs one HMAC and one AES key, not an HMAC a link, and who changes a position has to guess 32 bits on the
 * server. What there is to win is a redirect to another link of the same mail, which its reader has before his eyes.
 */
import { createCipheriv, timingSafeEqual } from 'node:crypto';
import type { Uuid } from '../../api/records.js';
import { createMac, type Mac } from './mac.js';

/** o = opened (pixel), c = clicked, u = unsubscribe, v = view in a browser. */
export const tokenPurposes = ['o', 'c', 'u', 'v'] as const;
export type TokenPurpose = (typeof tokenPurposes)[number];

/** `id` is 0 to 2³²−1 and never reused. */
export interface TrackingKey {
	id: number;
	/** Of what a token signs. */
	mac: Mac;
}

/** A key from its secret octets. */
export function trackingKey(id: number, secret: Uint8Array): TrackingKey {
	return { id, mac: createMac(secret, { label: 'mailctl tracking 1\0', length: signedBytes }) };
}

/** Newest first: the first signs, all verify. Removing a key ends the life of its tokens. */
export type Keyring = readonly [TrackingKey, ...TrackingKey[]];

/** From stored keys (secrets in base64url), newest first. `null` when there are none. */
export function keyringOf(keys: readonly { id: number; secret: string }[]): Keyring | null {
	const decoded = keys.map(({ id, secret }) => trackingKey(id, Buffer.from(secret, 'base64url')));
	const [first, ...rest] = decoded;
	return first === undefined ? null : [first, ...rest];
}

/** 50 characters of `A-Za-z0-9_-`. The same message, purpose and key give the same token. */
export function signToken(keyring: Keyring, purpose: TokenPurpose, message: Uuid): string {
	return sign(keyring, purpose, message).text;
}

/** The message, or `null` for anything that no key of the ring signed for this purpose. Constant time. */
export function verifyToken(keyring: Keyring, purpose: TokenPurpose, text: string): Uuid | null {
	return verify(keyring, purpose, text)?.message ?? null;
}

/** The click tokens of a message, in the parts that a mail is joined from: 50 characters and, for each link, 8 more. */
export interface ClickTokens {
	begin: string;
	ends: readonly string[];
}

/** For the links 0 to `links` − 1 of a message, at most 65,536. */
export function signClickTokens(keyring: Keyring, message: Uuid, links: number): ClickTokens {
	const { text, linkKey } = sign(keyring, 'c', message);
	const checks = linkChecks(linkKey, 0, links);
	const suffixes = Buffer.alloc(links * linkBytes);
	for (let position = 0; position < links; position++) {
		suffixes.writeUInt16BE(position, position * linkBytes);
		checks.copy(
			suffixes,
			position * linkBytes + 2,
			position * blockBytes,
			position * blockBytes + checkBytes,
		);
	}
	const encoded = suffixes.toString('base64url');
	const ends: string[] = [];
	for (let at = 0; at < encoded.length; at += linkCharacters)
		ends.push(encoded.slice(at, at + linkCharacters));
	return { begin: text, ends };
}

/** The message and the link's position, or `null` for anything that no key of the ring signed. Constant time. */
export function verifyClickToken(keyring: Keyring, text: string): { message: Uuid; link: number } | null {
	if (text.length !== tokenCharacters + linkCharacters) return null;
	const verified = verify(keyring, 'c', text.slice(0, tokenCharacters));
	const suffix = decodeExactly(text.slice(tokenCharacters), linkBytes);
	if (verified === null || suffix === null) return null;
	const link = suffix.readUInt16BE(0);
	const check = linkChecks(verified.linkKey, link, 1).subarray(0, checkBytes);
	return timingSafeEqual(check, suffix.subarray(2)) ? { message: verified.message, link } : null;
}

const signedBytes = 21;
const macBytes = 16;
const tokenBytes = signedBytes + macBytes;
const tokenCharacters = 50;
const checkBytes = 4;
const linkBytes = 2 + checkBytes;
const linkCharacters = 8;
/** Of AES. */
const blockBytes = 16;

function sign(keyring: Keyring, purpose: TokenPurpose, message: Uuid): { text: string; linkKey: Buffer } {
	const key = keyring[0];
	const token = Buffer.alloc(tokenBytes);
	token.write(purpose, 0, 'latin1');
	token.writeUInt32BE(key.id, 1);
	token.write(message.replaceAll('-', ''), 5, 'hex');
	const { mac, linkKey } = macOf(key, token);
	mac.copy(token, signedBytes);
	return { text: token.toString('base64url'), linkKey };
}

function verify(
	keyring: Keyring,
	purpose: TokenPurpose,
	text: string,
): { message: Uuid; linkKey: Buffer } | null {
	const token = text.length === tokenCharacters ? decodeExactly(text, tokenBytes) : null;
	if (token === null) return null;
	const key = keyring.find(({ id }) => id === token.readUInt32BE(1));
	if (key === undefined) return null;
	const { mac, linkKey } = macOf(key, token);
	if (!timingSafeEqual(mac, token.subarray(signedBytes))) return null;
	return token[0] === purpose.charCodeAt(0) ? { message: uuidOf(token), linkKey } : null;
}

/** Bits at the end may carry nothing, and a decoder skips what is not its alphabet: one spelling only. */
function decodeExactly(text: string, bytes: number): Buffer | null {
	const decoded = Buffer.from(text, 'base64url');
	return decoded.length === bytes && decoded.toString('base64url') === text ? decoded : null;
}

function macOf(key: TrackingKey, token: Buffer): { mac: Buffer; linkKey: Buffer } {
	const digest = key.mac(token.subarray(0, signedBytes));
	return { mac: digest.subarray(0, macBytes), linkKey: digest.subarray(macBytes) };
}

/** A block for each position, of which the first bytes count. One block a position: ECB hides nothing and need not. */
function linkChecks(linkKey: Buffer, first: number, count: number): Buffer {
	const blocks = Buffer.alloc(count * blockBytes);
	for (let index = 0; index < count; index++) {
		blocks[index * blockBytes] = (first + index) >> 8;
		blocks[index * blockBytes + 1] = first + index;
	}
	return createCipheriv('aes-128-ecb', linkKey, null).update(blocks);
}

function uuidOf(token: Buffer): Uuid {
	const hex = token.toString('hex', 5, signedBytes);
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
