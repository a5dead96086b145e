/** Forwards a received notification: octets and headers as they came, so that the target can check the signature. */
import type { IncomingHttpHeaders } from 'node:http';
import { signatureHeaders } from '../../../api/webhook-signatures.js';

/** The status of the answer; or the reason for its absence, for people, with the URL free of secrets. */
export type Forwarded =
	| { kind: 'answered'; status: number }
	| { kind: 'unanswered'; url: string; why: string };

/** Less than a sender waits. */
const forwardMs = 12_000;

/** Follows no redirect and never throws. Credentials of the URL go along as Basic authorization. */
export async function forward(to: URL, headers: IncomingHttpHeaders, body: Buffer): Promise<Forwarded> {
	const names = ['content-type', 'authorization', ...Object.values(signatureHeaders)];
	const kept = new Headers();
	for (const name of names) {
		const value = headers[name];
		if (typeof value === 'string') kept.set(name, value);
	}
	// fetch takes no URL that holds a password.
	const url = new URL(to);
	if (to.username !== '' || to.password !== '') kept.set('authorization', basicOf(to));
	url.username = '';
	url.password = '';
	try {
		const signal = AbortSignal.timeout(forwardMs);
		const answer = await fetch(url, { method: 'POST', headers: kept, body, redirect: 'manual', signal });
		await answer.body?.cancel();
		return { kind: 'answered', status: answer.status };
	} catch (error) {
		return { kind: 'unanswered', url: url.href, why: whyOf(error) };
	}
}

function basicOf({ username, password }: URL): string {
	const pair = [username, password].map(decoded).join(':');
	return `Basic ${Buffer.from(pair).toString('base64')}`;
}

/** A lone % is itself. */
function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

/** `fetch failed` is no reason; its cause is. */
function whyOf(error: unknown): string {
	if (!(error instanceof Error)) return String(error);
	return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message;
}
