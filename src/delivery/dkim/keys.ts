import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import type { DkimKeyType } from './sign.js';

interface KeyMaterial {
	type: DkimKeyType;
	secret: string;
}

/** RFC 8301 s.3.2 recommends at least 2048 bits. A larger key makes a longer TXT record. */
const rsaBits = 2048;
/** Verifiers must accept these sizes (RFC 8301 s.3.2). */
const usableBits = { least: 1024, most: 4096 };

export function generateKey(type: DkimKeyType): Promise<KeyMaterial> {
	return new Promise((resolve, reject) => {
		// Do not use promisify. The build wraps `generateKeyPair`, and promisify then returns only the public key.
		const done = (error: Error | null, _publicKey: KeyObject, privateKey: KeyObject) =>
			error === null ? resolve(materialOf(type, privateKey)) : reject(error);
		if (type === 'rsa') generateKeyPair('rsa', { modulusLength: rsaBits }, done);
		else generateKeyPair('ed25519', undefined, done);
	});
}

/** Parses unencrypted PEM (PKCS#8 or PKCS#1). Errors never quote the text, because it is secret. */
export function parseKey(
	pem: string,
): { kind: 'key'; material: KeyMaterial } | { kind: 'error'; message: string } {
	if (/ENCRYPTED/.test(pem)) return { kind: 'error', message: 'the key is protected by a passphrase' };
	const key = tryPrivateKey(pem);
	if (key === null) return { kind: 'error', message: 'not a private key in PEM' };
	if (key.asymmetricKeyType === 'ed25519') return { kind: 'key', material: materialOf('ed25519', key) };
	if (key.asymmetricKeyType !== 'rsa')
		return { kind: 'error', message: `DKIM supports RSA and Ed25519, not ${key.asymmetricKeyType}` };
	const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
	if (bits < usableBits.least || bits > usableBits.most)
		return { kind: 'error', message: `an RSA key has 1024 to 4096 bits, this one has ${bits}` };
	return { kind: 'key', material: materialOf('rsa', key) };
}

export function decodeKey(secret: string): KeyObject {
	return createPrivateKey({ key: Buffer.from(secret, 'base64'), format: 'der', type: 'pkcs8' });
}

export function recordOf({ type, secret }: KeyMaterial): string {
	const spki = createPublicKey(decodeKey(secret)).export({ format: 'der', type: 'spki' });
	// RFC 8463 s.4: p= has only the 32 octets of an Ed25519 key, without the ASN.1 header.
	const shown = type === 'ed25519' ? spki.subarray(-32) : spki;
	return `v=DKIM1; k=${type}; p=${shown.toString('base64')}`;
}

export function recordNameOf({ domain, selector }: { domain: string; selector: string }): string {
	return `${selector}._domainkey.${domain}`;
}

/** Returns a line for a zone file. A TXT string holds at most 255 octets, and verifiers join the strings. */
export function zoneLineOf(name: string, record: string): string {
	const strings = record.match(/.{1,255}/g) ?? [];
	return `${name}. IN TXT ( ${strings.map((text) => `"${text}"`).join(' ')} )`;
}

function tryPrivateKey(pem: string): KeyObject | null {
	try {
		return createPrivateKey(pem);
	} catch {
		return null;
	}
}

function materialOf(type: DkimKeyType, key: KeyObject): KeyMaterial {
	return { type, secret: encodeKey(key) };
}

function encodeKey(key: KeyObject): string {
	return key.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}
