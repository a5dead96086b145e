/** A proxy that breaks one thing, to test the checks of `smoke`. */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { listenOn } from './listen.js';

export interface Passing {
	method: string;
	path: string;
	token: string | null;
	body: unknown;
}

export interface Answered {
	status: number;
	headers: Record<string, string>;
	body: unknown;
}

export type Tamper = (passing: Passing, ask: (passing: Passing) => Promise<Answered>) => Promise<Answered>;

interface TamperingProxy {
	baseUrl: string;
	close(): Promise<void>;
}

export async function startTampering(upstream: string, tamper: Tamper): Promise<TamperingProxy> {
	const server = createServer((request, response) => {
		void (async () => {
			const answered = await tamper(await passingOf(request), (passing) => pass(upstream, passing));
			const isText = typeof answered.body === 'string';
			const text = isText ? answered.body : answered.body === undefined ? '' : JSON.stringify(answered.body);
			response.writeHead(answered.status, answered.headers);
			response.end(text);
		})().catch(() => response.destroy());
	});
	const port = await listenOn(server);
	return { baseUrl: `http://127.0.0.1:${port}`, close: () => closed(server) };
}

async function passingOf(request: IncomingMessage): Promise<Passing> {
	const chunks: Buffer[] = [];
	for await (const chunk of request) chunks.push(chunk as Buffer);
	const text = Buffer.concat(chunks).toString();
	const token = request.headers['x-secure-token'];
	return {
		method: request.method ?? 'GET',
		path: request.url ?? '/',
		token: typeof token === 'string' ? token : null,
		body: text === '' ? undefined : JSON.parse(text),
	};
}

async function pass(upstream: string, { method, path, token, body }: Passing): Promise<Answered> {
	const response = await fetch(`${upstream}${path}`, {
		method,
		redirect: 'manual',
		headers: { 'content-type': 'application/json', ...(token !== null && { 'x-secure-token': token }) },
		...(body !== undefined && { body: JSON.stringify(body) }),
	});
	const text = await response.text();
	const kept = ['content-type', 'retry-after', 'x-submission-id'];
	const headers = Object.fromEntries([...response.headers].filter(([name]) => kept.includes(name)));
	return { status: response.status, headers, body: parse(text) };
}

function parse(text: string): unknown {
	try {
		return text === '' ? undefined : JSON.parse(text);
	} catch {
		return text;
	}
}

function closed(server: Server): Promise<void> {
	server.closeAllConnections();
	return new Promise((resolve) => server.close(() => resolve()));
}
