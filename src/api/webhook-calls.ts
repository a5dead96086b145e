import { createHmac, timingSafeEqual } from 'node:crypto';
import { formatDateTime, type Micros } from './datetime.js';
import type { Uuid } from './records.js';

export interface Notice {
	id: Uuid;
	type: string;
	at: Micros;
	message: {
		id: Uuid;
		to: string;
		from: string;
		subject: string;
		tag: string | null;
		campaign_unique_id: Uuid | null;
	};
	data: {
		url: string | null;
		ip: string | null;
		user_agent: string | null;
		/** True if a bot, a scanner or a prefetching proxy caused the event. */
		machine: boolean;
		smtp_code: string | null;
		diagnostic: string | null;
	};
}

export function formatNotification({ id, type, at, message, data }: Notice, test = false): string {
	return JSON.stringify({ id, type, date: formatDateTime(at), test, message, data });
}

export function formatTestNotification(event: Pick<Notice, 'id' | 'type' | 'at'>): string {
	const message = {
		id: '00000000-0000-0000-0000-000000000000',
		to: 'recipient@example.com',
		from: 'sender@example.com',
		subject: 'Test notification',
		tag: null,
		campaign_unique_id: null,
	};
	const data = { url: null, ip: null, user_agent: null, machine: false, smtp_code: null, diagnostic: null };
	return formatNotification({ ...event, message, data }, true);
}

/** Standard Webhooks 1.0.0: base64 of HMAC-SHA256 over `id.timestamp.body`, one signature per secret. */
export const signatureHeaders = {
	id: 'webhook-id',
	timestamp: 'webhook-timestamp',
	signature: 'webhook-signature',
} as const;

const secretPrefix = 'whsec_';
/** Limits how long an attacker can replay a recorded call. */
const toleranceSeconds = 300;

interface Signed {
	id: string;
	timestamp: number;
	body: string | Buffer;
}

export function formatSecret(key: string): string {
	return secretPrefix + Buffer.from(key, 'base64url').toString('base64');
}

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
	/** The bytes as received, because parsing and formatting the body again would break the signature. */
	body: Buffer;
	secrets: readonly string[];
	now: number;
}

export function refuseSignature({ headers, body, secrets, now }: Received): string | null {
	const [id, time, signatures] = Object.values(signatureHeaders).map((name) => headers[name]);
	if (typeof id !== 'string' || typeof time !== 'string' || typeof signatures !== 'string')
		return 'not signed: webhook-id, webhook-timestamp or webhook-signature is missing';
	const timestamp = /^\d{1,12}$/.test(time) ? Number(time) : Number.NaN;
	if (!(Math.abs(now - timestamp) <= toleranceSeconds))
		return `webhook-timestamp ${time} is over 5 minutes off`;
	const given = signatures.split(' ').filter((each) => each.startsWith('v1,'));
	const known = secrets.map((secret) => digest({ id, timestamp, body }, secret));
	const isOurs = given.some((each) =>
		known.some((one) => isEqual(Buffer.from(each.slice(3), 'base64'), one)),
	);
	return isOurs ? null : 'the signature does not match the secret';
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
