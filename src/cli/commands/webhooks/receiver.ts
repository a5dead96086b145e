import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isRecord } from '../../../api/json.js';
import { refuseSignature, signatureHeaders } from '../../../api/webhook-calls.js';

export interface Received {
	id: string | null;
	type: string | null;
	/** Whether the signature is valid; null if no secret is known. */
	verified: boolean | null;
	/** Why it was refused; null if it was accepted. */
	refused: string | null;
	/** The status from the target of --forward-to; null if it was not forwarded, or the target did not answer. */
	forwarded: number | null;
	/** The parsed body, or a text if it is not JSON. */
	body: unknown;
}

/** The status of the target's answer, or why none came, with the URL free of secrets. */
type Forwarded = { kind: 'answered'; status: number } | { kind: 'unanswered'; url: string; why: string };

interface ReceiverOptions {
	port: number;
	/** `whsec_…`; null if unknown. */
	secrets: () => Promise<readonly string[] | null>;
	forwardTo: URL | null;
	nowMs: () => number;
	onReceived: (received: Received) => void;
	onUnanswered: (handedOn: Forwarded & { kind: 'unanswered' }) => void;
}

const maxBodyBytes = 1024 * 1024;
/** Shorter than the sender's timeout. */
const forwardMs = 12_000;

export async function startReceiver(
	options: ReceiverOptions,
): Promise<{ url: string; close(): Promise<void> }> {
	const server = createServer((request, response) => {
		receive(options, request, response).catch(() => response.destroy());
	});
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(options.port, '127.0.0.1', resolve);
	});
	// A listening TCP server has an address of this type.
	const { port } = server.address() as AddressInfo;
	return {
		url: `http://127.0.0.1:${port}/`,
		close: async () => {
			// Let requests in progress end, but do not let an idle connection keep the process alive.
			setTimeout(() => server.closeAllConnections(), 500).unref();
			await new Promise<void>((resolve) => {
				server.close(() => resolve());
				server.closeIdleConnections();
			});
		},
	};
}

async function receive(
	{ secrets, forwardTo, nowMs, onReceived, onUnanswered }: ReceiverOptions,
	request: IncomingMessage,
	response: ServerResponse,
): Promise<void> {
	const { headers } = request;
	if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end();
	const chunks: Buffer[] = [];
	let bytes = 0;
	for await (const chunk of request) {
		bytes += chunk.length;
		if (bytes > maxBodyBytes) return void response.writeHead(413, { connection: 'close' }).end();
		chunks.push(chunk);
	}
	const body = Buffer.concat(chunks);
	const known = await secrets();
	const refused =
		known && refuseSignature({ headers, body, secrets: known, now: Math.floor(nowMs() / 1000) });
	const handedOn = refused === null && forwardTo !== null ? await forward(forwardTo, headers, body) : null;
	const status = handedOn === null ? 204 : handedOn.kind === 'answered' ? handedOn.status : 502;
	response.writeHead(refused === null ? status : 401).end();
	if (handedOn?.kind === 'unanswered') onUnanswered(handedOn);
	const parsed = parse(body);
	const id = headers[signatureHeaders.id];
	onReceived({
		id: typeof id === 'string' ? id : null,
		type: isRecord(parsed) && typeof parsed['type'] === 'string' ? parsed['type'] : null,
		verified: known === null ? null : refused === null,
		refused,
		forwarded: handedOn?.kind === 'answered' ? handedOn.status : null,
		body: parsed,
	});
}

/** Forwards bytes and headers unchanged, so that the target can check the signature. Follows no redirects. Never throws. */
async function forward(to: URL, headers: IncomingHttpHeaders, body: Buffer): Promise<Forwarded> {
	const kept = new Headers();
	for (const name of ['content-type', 'authorization', ...Object.values(signatureHeaders)]) {
		const value = headers[name];
		if (typeof value === 'string') kept.set(name, value);
	}
	// fetch rejects a URL that contains a password.
	const url = new URL(to);
	url.username = '';
	url.password = '';
	try {
		const pair = [to.username, to.password].map(decodeURIComponent).join(':');
		if (pair !== ':') kept.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`);
		const signal = AbortSignal.timeout(forwardMs);
		const answer = await fetch(url, { method: 'POST', headers: kept, body, redirect: 'manual', signal });
		await answer.body?.cancel();
		return { kind: 'answered', status: answer.status };
	} catch (error) {
		// The cause is more specific than `fetch failed`.
		const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
		return { kind: 'unanswered', url: url.href, why: cause instanceof Error ? cause.message : String(cause) };
	}
}

function parse(body: Buffer): unknown {
	const text = body.toString('utf8');
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}
