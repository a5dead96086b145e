/**
 * DKIM signatures (RFC 6376) with RSA (RFC 8301) and Ed25519 (RFC 8463), over a finished message. The domain of
 * From selects the keys. Fields and body are signed in their relaxed forms, which survive a relay (s.3.4).
 */
import { createHash, type KeyObject, sign as signBytes } from 'node:crypto';
import { domainOf } from '../../api/address.js';
import { type Clock, type Micros, microsPerSecond, steadyOf } from '../../api/datetime.js';
import type { StoredDkimKey } from '../../store/keys.js';
import type { Reads } from '../../store/store.js';
import { decodeKey } from './keys.js';

/** The kinds of keys that verifiers support. */
export const dkimKeyTypes = ['rsa', 'ed25519'] as const;
export type DkimKeyType = (typeof dkimKeyTypes)[number];

/** A private key, and the DNS name of its public half: `selector._domainkey.domain`. */
export interface SigningKey {
	/** In ASCII and lower case. */
	domain: string;
	selector: string;
	type: DkimKeyType;
	/** Parsed once: from PEM each time a signature costs three times as much. */
	key: KeyObject;
}

/**
 * Adds a DKIM-Signature for each key at the top of the message, in their order; without keys it stays unchanged. The
 * same message and keys give the same bytes, so that a repeat is identical: there is no t= and no x=. The signing
 * itself runs in the thread pool. `rest`: what follows the bytes, which end with a line that is not empty, in its relaxed
 * form.
 */
export async function signMessage(
	bytes: Buffer,
	keys: readonly SigningKey[],
	rest: readonly Buffer[] = [],
): Promise<Buffer> {
	if (keys.length === 0) return bytes;
	const { texts, unsigned } = unsignedMessage(bytes, keys, rest);
	const signatures = await Promise.all(keys.map((key, at) => signFields(key, texts, unsigned[at] ?? '')));
	return withSignatures(bytes, unsigned, signatures);
}

/** The same, in this thread: for one that does nothing else. */
export function signMessageHere(bytes: Buffer, keys: readonly SigningKey[]): Buffer {
	if (keys.length === 0) return bytes;
	const { texts, unsigned } = unsignedMessage(bytes, keys, []);
	const signatures = keys.map((key, at) => {
		const { hash, data } = signedData(key, texts, unsigned[at] ?? '');
		return signBytes(hash, data, key.key).toString('base64');
	});
	return withSignatures(bytes, unsigned, signatures);
}

/**
 * The value of b= in base64: over the unchanged fields, in the order of h=, and the DKIM-Signature field itself with an
 * empty b= (RFC 6376 s.3.7).
 */
export function signFields(
	key: Pick<SigningKey, 'type' | 'key'>,
	texts: readonly string[],
	unsigned: string,
): Promise<string> {
	const { hash, data } = signedData(key, texts, unsigned);
	return new Promise((resolve, reject) => {
		signBytes(hash, data, key.key, (error, signature) =>
			error === null ? resolve(signature.toString('base64')) : reject(error),
		);
	});
}

function signedData({ type }: Pick<SigningKey, 'type'>, texts: readonly string[], unsigned: string) {
	const data = Buffer.from([...texts, unsigned].map(relaxedField).join('\r\n'), 'latin1');
	if (type === 'rsa') return { hash: 'sha256', data };
	// RFC 8463 s.3: Ed25519 signs the hash of what RSA would sign.
	return { hash: null, data: createHash('sha256').update(data).digest() };
}

/** The texts that are signed, and for each key its field without the signature. */
function unsignedMessage(bytes: Buffer, keys: readonly SigningKey[], rest: readonly Buffer[]) {
	const { fields, body } = splitMessage(bytes);
	const { names, texts } = signedFields(fields);
	const hash = createHash('sha256').update(relaxedBody(body));
	for (const piece of rest) hash.update(piece);
	const bodyHash = hash.digest('base64');
	return { texts, unsigned: keys.map((key) => unsignedField(key, names, bodyHash)) };
}

function withSignatures(bytes: Buffer, unsigned: readonly string[], signatures: readonly string[]): Buffer {
	const fields = unsigned.map((field, at) => `${field}${folded(signatures[at] ?? '')}\r\n`);
	return Buffer.concat([Buffer.from(fields.join(''), 'latin1'), bytes]);
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

/** Lines end after a colon: white space around one does not count (RFC 6376 s.3.5). */
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

/** On lines of its own; white space within it does not count. */
function folded(base64: string): string {
	const lines = base64.match(new RegExp(`.{1,${lineLength}}`, 'g')) ?? [];
	return lines.map((line) => `\r\n  ${line}`).join('');
}

/** Signs a finished message for the address in its From field; without a key of that domain it stays unchanged. */
export type SignMail = (bytes: Buffer, from: string, rest?: readonly Buffer[]) => Promise<Buffer>;

/** The keys that sign for an address in a From field. Rejects only when the store does. */
export type KeysFor = (from: string) => Promise<readonly SigningKey[]>;

/** Every key of the domain signs: RSA and Ed25519 together, and during a rotation the old one and the new. */
export function createSigner(keysFor: KeysFor): SignMail {
	return async (bytes, from, rest = []) => signMessage(bytes, await keysFor(from), rest);
}

/** Added or removed keys take effect after this time in every process. */
const rereadAfter: Micros = 5 * microsPerSecond;
const noKeys: readonly SigningKey[] = [];

/** Keys of the store. The same ones are the same list, until they are read again. */
export function createKeyReader({
	reads,
	clock,
}: {
	reads: Pick<Reads, 'listDkimKeys'>;
	clock: Clock;
}): KeysFor {
	let keys: { at: Micros; byDomain: Promise<ReadonlyMap<string, readonly SigningKey[]>> } | null = null;
	let known: readonly HeldKey[] = [];
	const read = async () => {
		known = (await reads.listDkimKeys()).map(
			(stored) => known.find((key) => isSame(key, stored)) ?? heldKey(stored),
		);
		return groupByDomain(known);
	};
	return async (from) => {
		const now = steadyOf(clock);
		if (keys === null || now - keys.at > rereadAfter) keys = { at: now, byDomain: read() };
		const current = keys;
		const byDomain = await current.byDomain.catch((error: unknown) => {
			// A failure is not cached: the next message reads again.
			if (keys === current) keys = null;
			throw error;
		});
		return byDomain.get(domainOf(from)) ?? noKeys;
	};
}

interface HeldKey extends SigningKey {
	secret: string;
}

function heldKey({ domain, selector, type, secret }: StoredDkimKey): HeldKey {
	return { domain, selector, type, secret, key: decodeKey(secret) };
}

/** Reused, not parsed again: parsing one costs as much as signing three messages. */
function isSame(key: HeldKey, { domain, selector, secret }: StoredDkimKey): boolean {
	return key.domain === domain && key.selector === selector && key.secret === secret;
}

function groupByDomain(keys: readonly SigningKey[]): Map<string, SigningKey[]> {
	const byDomain = new Map<string, SigningKey[]>();
	for (const key of keys) byDomain.set(key.domain, [...(byDomain.get(key.domain) ?? []), key]);
	return byDomain;
}

/**
 * Named once more than they occur, absent ones too: otherwise a second Subject or Reply-To added on the way would pass
 * under our signature (RFC 6376 s.8.15).
 */
const sealed = [
	'From',
	'Reply-To',
	'To',
	'Cc',
	'Subject',
	'Date',
	'Message-ID',
	'MIME-Version',
	'Content-Type',
	'Content-Transfer-Encoding',
];
/** Sealed where they occur; a relay may add its own where they do not. RFC 8058 s.4 wants the first two signed. */
const signedIfPresent =
	/^(?:list-unsubscribe|list-unsubscribe-post|list-.+|content-.+|in-reply-to|references|feedback-id|auto-submitted)$/;

export interface SignedFields {
	/** The h= tag: names, in the order of signing. */
	names: string[];
	/** The texts of existing fields, in that order: of several with one name the lowest comes first (s.5.4.2). */
	texts: string[];
}

/** `fields` from the top down. */
export function signedFields(fields: readonly HeaderField[]): SignedFields {
	const isSealed = new Set(sealed.map((name) => name.toLowerCase()));
	const others = fields
		.filter(({ name }) => !isSealed.has(name) && signedIfPresent.test(name))
		.map(({ text }) => text.slice(0, text.indexOf(':')).trimEnd());
	const signed: SignedFields = { names: [], texts: [] };
	const seen = new Set<string>();
	for (const name of [...sealed, ...others]) {
		if (seen.has(name.toLowerCase())) continue;
		seen.add(name.toLowerCase());
		const present = fields.filter((field) => field.name === name.toLowerCase()).reverse();
		signed.texts.push(...present.map(({ text }) => text));
		signed.names.push(...Array<string>(present.length + 1).fill(name));
	}
	return signed;
}

/** A header field: `text` from its name to before its line end, folding included. */
export interface HeaderField {
	/** In lower case. */
	name: string;
	text: string;
}

/** A message split at its empty line; without one it is all header. */
export interface Parts {
	/** From the top down. */
	fields: HeaderField[];
	body: Buffer;
}

/** `bytes` has CRLF line ends, as in mails made here. Lines that are no field are left out. */
export function splitMessage(bytes: Buffer): Parts {
	const end = bytes.indexOf('\r\n\r\n');
	const header = bytes.toString('latin1', 0, end === -1 ? bytes.length : end);
	const fields = header
		.split(/\r\n(?![ \t])/)
		.map((text) => ({
			name: text
				.slice(0, Math.max(0, text.indexOf(':')))
				.trimEnd()
				.toLowerCase(),
			text,
		}))
		.filter(({ name }) => name !== '');
	return { fields, body: bytes.subarray(end === -1 ? bytes.length : end + 4) };
}

/**
 * RFC 6376 s.3.4.2: name in lower case, unfolded, every run of white space one blank, none at the ends. Without the
 * line end.
 */
export function relaxedField(text: string): string {
	const colon = text.indexOf(':');
	const value = text.slice(colon + 1).replace(/\r\n/g, '');
	return `${text.slice(0, colon).trimEnd().toLowerCase()}:${value.replace(/[ \t]+/g, ' ').replace(/^ | $/g, '')}`;
}

const cr = 0x0d;
const lf = 0x0a;
const blank = 0x20;
const tab = 0x09;

/**
 * RFC 6376 s.3.4.4: runs of white space are one blank, none ends a line, no empty lines at the end. A body of only
 * empty lines is empty; any other ends with CRLF. One pass over the bytes: 12 µs for 10 KB, where expressions on a
 * string take 60.
 */
export function relaxedBody(body: Buffer): Buffer {
	const out = Buffer.allocUnsafe(body.length + 2);
	let length = 0;
	let lineStart = 0;
	/** The index after the last line that is not empty. */
	let end = 0;
	let hasGap = false;
	for (let at = 0; at < body.length; at += 1) {
		const byte = body[at] ?? 0;
		if (byte === blank || byte === tab) hasGap = true;
		else if (byte === cr && body[at + 1] === lf) {
			const isEmpty = length === lineStart;
			out[length] = cr;
			out[length + 1] = lf;
			length += 2;
			lineStart = length;
			if (!isEmpty) end = length;
			hasGap = false;
			at += 1;
		} else {
			if (hasGap) out[length++] = blank;
			hasGap = false;
			out[length++] = byte;
		}
	}
	if (length > lineStart) {
		out[length] = cr;
		out[length + 1] = lf;
		end = length + 2;
	}
	return out.subarray(0, end);
}
