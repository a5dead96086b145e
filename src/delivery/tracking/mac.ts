/**
 * HMAC-SHA256 (RFC 2104) of short messages, by two hashes over blocks made ready once a key: 1.2 µs where node's Hmac
 * takes 2.5, and no stream is left to the garbage collector. A mail has four of them, an open one.
 */
import { createHash, hash } from 'node:crypto';

/** The 32 octets of the message's code. The caller's to keep. */
export type Mac = (message: Uint8Array) => Buffer;

/** For messages of exactly so many octets, which are signed behind the label: what it is for. */
export function createMac(secret: Uint8Array, { label, length }: { label: string; length: number }): Mac {
	const key = secret.length > blockBytes ? createHash('sha256').update(secret).digest() : secret;
	const begin = blockBytes + Buffer.byteLength(label);
	const inner = padded(key, 0x36, begin - blockBytes + length);
	inner.write(label, blockBytes);
	const outer = padded(key, 0x5c, hashBytes);
	return (message) => {
		if (message.length !== length) throw new RangeError(`not ${length} octets`);
		inner.set(message, begin);
		// By way of hex: node makes a short text faster than a buffer.
		outer.write(hash('sha256', inner, 'hex'), blockBytes, 'hex');
		return Buffer.from(hash('sha256', outer, 'hex'), 'hex');
	};
}

const blockBytes = 64;
const hashBytes = 32;

/** The key's block as RFC 2104 s.2 wants it, and room for what follows. */
function padded(key: Uint8Array, pad: number, room: number): Buffer {
	const block = Buffer.alloc(blockBytes + room);
	block.fill(pad, 0, blockBytes);
	for (const [at, octet] of key.entries()) block[at] = octet ^ pad;
	return block;
}
