/** A service that gives any answer, however wrong, on a real socket. */
import {
	createServer as createHttpServer,
	type IncomingHttpHeaders,
	type IncomingMessage,
	type RequestListener,
	type Server,
	type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { listenOn } from './listen.js';

export interface Seen {
	method: string;
	url: string;
	headers: IncomingHttpHeaders;
	body: string;
}

export type Act =
	| { kind: 'json'; body: unknown; status?: number; headers?: Record<string, string> }
	| { kind: 'text'; text: string; status?: number; type?: string; headers?: Record<string, string> }
	| { kind: 'empty'; status: number; headers?: Record<string, string> }
	| { kind: 'cut' }
	| { kind: 'truncated'; text: string }
	| { kind: 'drip' }
	| { kind: 'silent' }
	| { kind: 'bomb'; bytes: number }
	| { kind: 'raw'; text: string };

export interface HostileService {
	url: string;
	seen: Seen[];
	asked(): Seen[];
	answer(...acts: readonly Act[]): void;
	/** Sets the answer to `GET /`, which is 404 at first. */
	introduce(act: Act): void;
	connections(): number;
	close(): Promise<void>;
}

interface HostileOptions {
	tls?: { cert: string; key: string };
}

export const emptyPage = { count: 0, next: null, previous: null, results: [] };
export const ours: Act = {
	kind: 'json',
	body: { service: 'mailctl', version: '1.0.0', extensions: ['templates', 'imports', 'dancing'] },
};

export async function startHostileService({ tls }: HostileOptions = {}): Promise<HostileService> {
	const seen: Seen[] = [];
	let acts: readonly Act[] = [{ kind: 'json', body: emptyPage }];
	let introduction: Act = { kind: 'json', status: 404, body: { detail: 'Not found.' } };
	let connections = 0;
	const sockets = new Set<Socket>();
	const listener: RequestListener = async (request, response) => {
		const one = await read(request).catch(() => null);
		if (one === null) return;
		seen.push(one);
		if (isIntroduction(one)) return perform(introduction, response);
		const [act, ...rest] = acts;
		if (rest.length > 0) acts = rest;
		if (act !== undefined) perform(act, response);
	};
	const server: Server = tls === undefined ? createHttpServer(listener) : createHttpsServer(tls, listener);
	server.on('connection', (socket: Socket) => {
		connections += 1;
		sockets.add(socket);
		socket.on('error', () => {});
		socket.on('close', () => sockets.delete(socket));
	});
	const port = await listenOn(server);
	return {
		url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
		seen,
		asked: () => seen.filter((one) => !isIntroduction(one)),
		answer: (...next) => {
			acts = next;
		},
		introduce: (act) => {
			introduction = act;
		},
		connections: () => connections,
		close: async () => {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

function isIntroduction({ method, url }: Seen): boolean {
	return method === 'GET' && (url === '/' || url === '/prefix/');
}

async function read(request: IncomingMessage): Promise<Seen> {
	const chunks: Buffer[] = [];
	for await (const chunk of request) chunks.push(chunk as Buffer); // no encoding is set
	const { method = '', url = '', headers } = request;
	return { method, url, headers, body: Buffer.concat(chunks).toString('utf8') };
}

const json = 'application/json';

function perform(act: Act, response: ServerResponse): void {
	switch (act.kind) {
		case 'json':
			response.writeHead(act.status ?? 200, { 'content-type': json, ...act.headers });
			response.end(JSON.stringify(act.body));
			return;
		case 'text':
			response.writeHead(act.status ?? 200, { 'content-type': act.type ?? 'text/plain', ...act.headers });
			response.end(act.text);
			return;
		case 'empty':
			response.writeHead(act.status, act.headers);
			response.end();
			return;
		case 'cut':
			response.socket?.destroy();
			return;
		case 'truncated':
			response.writeHead(200, { 'content-type': json, 'content-length': act.text.length + 100 });
			response.write(act.text, () => response.socket?.destroy());
			return;
		case 'drip':
			drip(response);
			return;
		case 'silent':
			return;
		case 'bomb':
			response.writeHead(200, { 'content-type': json, 'content-encoding': 'gzip' });
			response.end(gzipSync(Buffer.alloc(act.bytes, 0x20)));
			return;
		case 'raw':
			response.socket?.end(act.text, 'latin1');
			return;
	}
}

function drip(response: ServerResponse): void {
	response.writeHead(200, { 'content-type': json });
	const timer = setInterval(() => response.write(' '), 20);
	response.on('close', () => clearInterval(timer));
}
