/**
 * Tokens in links: which message, what for, signed. One token carries 37 bytes as 50 characters of base64url:
 * purpose (1), key id (4), message uuid (16), HMAC-SHA256 of these cut to 128 bits (16). No address is in it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Uuid } from '../../api/records.js';

/** o = opened (pixel), c = clicked, u = unsubscribe, v = view in a browser. */
export const tokenPurposes = ['o', 'c', 'u', 'v'] as const;
export type TokenPurpose = (typeof tokenPurposes)[number];

/** `id` is 0 to 2³²−1 and never reused. */
export interface TrackingKey {
	id: number;
	secret: Buffer;
}

/** Newest first: the first signs, all verify. Removing a key ends the life of its tokens. */
export type Keyring = readonly [TrackingKey, ...TrackingKey[]];

/** From stored keys (secrets in base64url), newest first. `null` when there are none. */
export function keyringOf(keys: readonly { id: number; secret: string }[]): Keyring | null {
	const decoded = keys.map(({ id, secret }) => ({ id, secret: Buffer.from(secret, 'base64url') }));
	const [first, ...rest] = decoded;
	return first === undefined ? null : [first, ...rest];
}

/** 50 characters of `A-Za-z0-9_-`. The same message, purpose and key give the same token. */
export function signToken(keyring: Keyring, purpose: TokenPurpose, message: Uuid): string {
	const key = keyring[0];
	const token = Buffer.alloc(tokenBytes);
	token.write(purpose, 0, 'latin1');
	token.writeUInt32BE(key.id, 1);
	token.write(message.replaceAll('-', ''), 5, 'hex');
	macOf(key, token).copy(token, signedBytes);
	return token.toString('base64url');
}

/** The message, or `null` for anything that no key of the ring signed for this purpose. Constant time. */
export function verifyToken(keyring: Keyring, purpose: TokenPurpose, text: string): Uuid | null {
	if (text.length !== tokenCharacters) return null;
	const token = Buffer.from(text, 'base64url');
	// Two bits of the last character carry nothing, and a decoder skips what is not its alphabet: one spelling only.
	if (token.length !== tokenBytes || token.toString('base64url') !== text) return null;
	const key = keyring.find(({ id }) => id === token.readUInt32BE(1));
	if (key === undefined || !timingSafeEqual(macOf(key, token), token.subarray(signedBytes))) return null;
	return token[0] === purpose.charCodeAt(0) ? uuidOf(token) : null;
}

const signedBytes = 21;
const tokenBytes = 37;
const tokenCharacters = 50;

function macOf(key: TrackingKey, token: Buffer): Buffer {
	const mac = createHmac('sha256', key.secret)
		.update('mailctl tracking 1\0')
		.update(token.subarray(0, signedBytes));
	return mac.digest().subarray(0, tokenBytes - signedBytes);
}

function uuidOf(token: Buffer): Uuid {
	const hex = token.toString('hex', 5, signedBytes);
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
