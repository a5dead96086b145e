/** DKIM signatures (RFC 6376) with RSA (RFC 8301) and Ed25519 (RFC 8463), relaxed/relaxed, over a finished message. */
import { createHash, type KeyObject, sign as signBytes } from 'node:crypto';
import { relaxedBody, relaxedField, splitMessage } from './canonical.js';
import { signedFields } from './signed-fields.js';

/** The kinds of keys that verifiers know. */
export const dkimKeyTypes = ['rsa', 'ed25519'] as const;
export type DkimKeyType = (typeof dkimKeyTypes)[number];

/** A private key, and the name under which its public half is found: `selector._domainkey.domain`. */
export interface SigningKey {
	/** In ASCII and lower case. */
	domain: string;
	selector: string;
	type: DkimKeyType;
	/** Parsed once: from PEM each time a signature costs three times as much. */
	key: KeyObject;
}

/**
 * The message with a DKIM-Signature a key on top, in their order; none: as it is. The same message and keys give the
 * same bytes, so that a repeat is a repeat: there is no t= and no x=. The signing itself runs in the thread pool.
 */
export async function signMessage(bytes: Buffer, keys: readonly SigningKey[]): Promise<Buffer> {
	if (keys.length === 0) return bytes;
	const { fields, body } = splitMessage(bytes);
	const { names, texts } = signedFields(fields);
	const bodyHash = createHash('sha256').update(relaxedBody(body)).digest('base64');
	const signatures = await Promise.all(
		keys.map(async (key) => {
			const unsigned = unsignedField(key, names, bodyHash);
			const signature = await signFields(key, texts, unsigned);
			return `${unsigned}${folded(signature)}\r\n`;
		}),
	);
	return Buffer.concat([Buffer.from(signatures.join(''), 'latin1'), bytes]);
}

/**
 * The value of b= in base64: over the fields as they stand, in the order of h=, and the DKIM-Signature field itself with
 * an empty b= (RFC 6376 s.3.7).
 */
export function signFields(
	{ type, key }: Pick<SigningKey, 'type' | 'key'>,
	texts: readonly string[],
	unsigned: string,
): Promise<string> {
	const lines = [...texts, unsigned].map(relaxedField);
	const data = Buffer.from(lines.join('\r\n'), 'latin1');
	return new Promise((resolve, reject) => {
		const done = (error: Error | null, signature: Buffer) =>
			error === null ? resolve(signature.toString('base64')) : reject(error);
		if (type === 'rsa') signBytes('sha256', data, key, done);
		// RFC 8463 s.3: Ed25519 signs the hash of what RSA would sign.
		else signBytes(null, createHash('sha256').update(data).digest(), key, done);
	});
}

/** Everything but the value of b=, which is empty while it is signed (RFC 6376 s.3.5). */
function unsignedField({ domain, selector, type }: SigningKey, names: readonly string[], bh: string): string {
	return [
		`DKIM-Signature: v=1; a=${type}-sha256; c=relaxed/relaxed; d=${domain};`,
		` s=${selector};`,
		` h=${foldedNames(names)};`,
		` bh=${bh};`,
		' b=',
	].join('\r\n');
}

const lineLength = 72;

/** Lines end behind a colon: white space around one is nobody's (RFC 6376 s.3.5). */
function foldedNames(names: readonly string[]): string {
	const lines: string[] = [];
	let line = '';
	for (const [index, name] of names.entries()) {
		const piece = index === names.length - 1 ? name : `${name}:`;
		if (line !== '' && line.length + piece.length > lineLength) {
			lines.push(line);
			line = '';
		}
		line += piece;
	}
	return [...lines, line].join('\r\n  ');
}

/** On lines of its own; white space within it is nobody's. */
function folded(base64: string): string {
	const lines = base64.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? [];
	return lines.map((line) => `\r\n  ${line}`).join('');
}
