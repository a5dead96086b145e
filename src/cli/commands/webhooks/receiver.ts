/** A receiver of notifications on this machine: checks their signatures, and hands them on. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { refuseSignature, signatureHeaders } from '../../../api/webhook-signatures.js';
import { type Forwarded, forward } from './forward.js';

/** A received notification. */
export interface Received {
	/** The header `webhook-id`; null without it. */
	id: string | null;
	type: string | null;
	/** Whether the signature is right; null when no secret is known to check it with. */
	verified: boolean | null;
	/** Why it was refused; null when it was not. */
	refused: string | null;
	/** The status of the forwarding target; null when it was not forwarded, or the target did not answer. */
	forwarded: number | null;
	/** The parsed body; a text where it is no JSON. */
	body: unknown;
}

export interface ReceiverOptions {
	/** 0: any free one. */
	port: number;
	/** `whsec_…`; null when unknown. Read again for a wrong signature: the secret may have been rotated. */
	secrets: () => Promise<readonly string[] | null>;
	forwardTo: URL | null;
	/** Milliseconds since 1970. */
	nowMs: () => number;
	onReceived: (received: Received) => void;
	/** `forwardTo` gave no answer to one that is received all the same. */
	onUnanswered: (handedOn: Forwarded & { kind: 'unanswered' }) => void;
}

export interface Receiver {
	url: string;
	close(): Promise<void>;
}

const maxBodyBytes = 1024 * 1024;

/** Listens on loopback. Rejects when it cannot. */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
	const server = createServer((request, response) => {
		receive(options, request, response).catch(() => response.destroy());
	});
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(options.port, '127.0.0.1', resolve);
	});
	// A TCP server has an address of this kind once it listens.
	const { port } = server.address() as AddressInfo;
	return {
		url: `http://127.0.0.1:${port}/`,
		close: async () => {
			// Requests in progress may end; an idle connection must not keep the process.
			setTimeout(() => server.closeAllConnections(), 500).unref();
			await new Promise<void>((resolve) => {
				server.close(() => resolve());
				server.closeIdleConnections();
			});
		},
	};
}

async function receive(
	options: ReceiverOptions,
	request: IncomingMessage,
	response: ServerResponse,
): Promise<void> {
	if (request.method !== 'POST') return void response.writeHead(405, { allow: 'POST' }).end();
	const body = await readBody(request);
	if (body === null) return void response.writeHead(413, { connection: 'close' }).end();
	const { verified, refused } = await verify(options, request, body);
	const { forwardTo } = options;
	const handedOn =
		refused === null && forwardTo !== null ? await forward(forwardTo, request.headers, body) : null;
	response.writeHead(refused === null ? statusOf(handedOn) : 401).end();
	if (handedOn?.kind === 'unanswered') options.onUnanswered(handedOn);
	const parsed = parse(body);
	const id = request.headers[signatureHeaders.id];
	options.onReceived({
		id: typeof id === 'string' ? id : null,
		type: typeOf(parsed),
		verified,
		refused,
		forwarded: handedOn?.kind === 'answered' ? handedOn.status : null,
		body: parsed,
	});
}

/** `null`: it stayed here. */
function statusOf(handedOn: Forwarded | null): number {
	if (handedOn === null) return 204;
	return handedOn.kind === 'answered' ? handedOn.status : 502;
}

/** null: it is too long. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
	const chunks: Buffer[] = [];
	let bytes = 0;
	for await (const chunk of request) {
		bytes += chunk.length;
		if (bytes > maxBodyBytes) return null;
		chunks.push(chunk);
	}
	return Buffer.concat(chunks);
}

async function verify(
	{ secrets, nowMs }: ReceiverOptions,
	{ headers }: IncomingMessage,
	body: Buffer,
): Promise<Pick<Received, 'verified' | 'refused'>> {
	const known = await secrets();
	if (known === null) return { verified: null, refused: null };
	const refused = refuseSignature({ headers, body, secrets: known, now: Math.floor(nowMs() / 1000) });
	return { verified: refused === null, refused };
}

function parse(body: Buffer): unknown {
	const text = body.toString('utf8');
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}

function typeOf(body: unknown): string | null {
	const isOurs = typeof body === 'object' && body !== null && 'type' in body && typeof body.type === 'string';
	return isOurs ? String(body.type) : null;
}
