/**
 * Signatures by Standard Webhooks 1.0.0 (standardwebhooks.com, "Webhook headers" and "Signature scheme"): HMAC-SHA256
 * over `id.timestamp.body`, base64, `v1,` before each; several where secrets rotate, with blanks between.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

export const signatureHeaders = {
	id: 'webhook-id',
	timestamp: 'webhook-timestamp',
	signature: 'webhook-signature',
} as const;

const secretPrefix = 'whsec_';
/** Refuses older or newer timestamps: an attacker may have recorded a call to repeat it. */
const toleranceSeconds = 300;

/** The signed parts of a call. `timestamp` in seconds since 1970. */
interface Signed {
	id: string;
	timestamp: number;
	body: string | Buffer;
}

/** A secret as people copy it: `whsec_` and base64. `key`: base64url, as keys are kept. */
export function formatSecret(key: string): string {
	return secretPrefix + Buffer.from(key, 'base64url').toString('base64');
}

/** One signature for each secret, newest first: the receiver may know either. Secrets with or without `whsec_`. */
export function signatureOf(signed: Signed, secrets: readonly string[]): string {
	return secrets.map((secret) => `v1,${digest(signed, secret).toString('base64')}`).join(' ');
}

export function signedHeaders(signed: Signed, secrets: readonly string[]): Record<string, string> {
	return {
		[signatureHeaders.id]: signed.id,
		[signatureHeaders.timestamp]: String(signed.timestamp),
		...(secrets.length > 0 && { [signatureHeaders.signature]: signatureOf(signed, secrets) }),
	};
}

export interface Received {
	headers: Readonly<Record<string, string | readonly string[] | undefined>>;
	/** The octets as received: parsing and writing them again would change them. */
	body: Buffer;
	secrets: readonly string[];
	now: number;
}

/** Why a call is not ours, or null when one of the secrets signed it recently. */
export function refuseSignature({ headers, body, secrets, now }: Received): string | null {
	const [id, time, signatures] = Object.values(signatureHeaders).map((name) => headers[name]);
	if (typeof id !== 'string' || typeof time !== 'string' || typeof signatures !== 'string')
		return 'not signed: webhook-id, webhook-timestamp or webhook-signature is missing';
	const timestamp = /^\d{1,12}$/.test(time) ? Number(time) : Number.NaN;
	if (!(Math.abs(now - timestamp) <= toleranceSeconds)) return `its time is off: webhook-timestamp ${time}`;
	const given = signatures.split(' ').filter((each) => each.startsWith('v1,'));
	const known = secrets.map((secret) => digest({ id, timestamp, body }, secret));
	const isOurs = given.some((each) =>
		known.some((one) => isEqual(Buffer.from(each.slice(3), 'base64'), one)),
	);
	return isOurs ? null : 'the signature is not that of the secret';
}

function digest({ id, timestamp, body }: Signed, secret: string): Buffer {
	const key = Buffer.from(
		secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : secret,
		'base64',
	);
	return createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
}

function isEqual(a: Buffer, b: Buffer): boolean {
	return a.length === b.length && timingSafeEqual(a, b);
}
