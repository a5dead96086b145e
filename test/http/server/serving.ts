/** Starts a real engine behind a real server on a free local port. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../../src/api/datetime.js';
import type { EnginePorts } from '../../../src/engine/context.js';
import { createEngine, type Engine } from '../../../src/engine/engine.js';
import { keepListeningUrl } from '../../../src/engine/settings.js';
import { createAuthenticator } from '../../../src/http/server/authenticate.js';
import { createHandler, type HandlerOptions } from '../../../src/http/server/handler.js';
import { type HttpServer, type ServerOptions, serve } from '../../../src/http/server/serve.js';
import { openStore } from '../../../src/store/open.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import type { Store } from '../../../src/store/store.js';
import { isPostgres } from '../../../src/store/url.js';

export const tokens = {
	admin: 'mctl_admin-0123456789abcdefghijABCDEFGHIJ',
	read: 'mctl_read-0123456789abcdefghijABCDEFGHIJ',
	send: 'mctl_send-0123456789abcdefghijABCDEFGHIJ',
} as const;

export interface Deployment {
	engine: Engine;
	store: Store;
	server: HttpServer;
	lines: Record<string, unknown>[];
	close(): Promise<void>;
}

export interface DeploymentOptions {
	handler?: Partial<HandlerOptions>;
	server?: Partial<ServerOptions>;
	ports?: Partial<EnginePorts>;
	database?: string;
	clock?: Clock;
	newId?: () => string;
}

export async function deploy(options: DeploymentOptions = {}): Promise<Deployment> {
	const clock = options.clock ?? systemClock;
	const { database = ':memory:' } = options;
	const store = isPostgres(database)
		? await openPostgresStore({ url: database, clock, mode: 'create' })
		: await openStore(database, { clock, mode: 'create' });
	const engine = createEngine({
		store,
		clock,
		newId: options.newId ?? randomUUID,
		newSecret: () => randomBytes(32).toString('base64url'),
		ports: {
			checkTarget: async () => null,
			notifyTest: async () => ({ result: true, status_code: 200, error: null, duration_ms: 1 }),
			renderMessage: async () => null,
			whyPaused: () => null,
			...options.ports,
		},
	});
	await keepListeningUrl({ store, clock }, 'http://testserver');
	await engine.senders.create({ from_email: 'news@example.com' });
	for (const [scope, token] of Object.entries(tokens)) {
		const sha256 = createHash('sha256').update(token).digest('hex');
		await store.writes.createToken({ sha256, name: `${scope} token`, scopes: [scope], now: clock.now() });
	}
	const lines: Record<string, unknown>[] = [];
	const log = (line: object) => void lines.push({ ...line });
	const handler = createHandler({
		api: engine,
		ext: engine.ext,
		encoded: engine.encoded,
		version: '1.2.3',
		extensions: Object.keys(engine.ext).sort(),
		authenticate: createAuthenticator({ findToken: (sha256) => store.reads.findToken({ sha256 }), clock }),
		log,
		...options.handler,
	});
	const server = await serve({
		handler,
		publicPages: null,
		host: '127.0.0.1',
		port: 0,
		tls: null,
		log,
		...options.server,
	});
	return {
		engine,
		store,
		server,
		lines,
		close: async () => {
			await server.close({ graceMs: 1000 });
			await engine.close();
		},
	};
}

export interface Answer {
	status: number;
	headers: Headers;
	text: string;
	body: unknown;
}

export interface Asking {
	token?: string | null;
	headers?: Record<string, string>;
	body?: unknown;
	raw?: string | Uint8Array;
}

export async function ask(
	{ server }: Pick<Deployment, 'server'>,
	method: string,
	path: string,
	asking: Asking = {},
): Promise<Answer> {
	const token = asking.token === undefined ? tokens.admin : asking.token;
	const body = asking.raw ?? (asking.body === undefined ? undefined : JSON.stringify(asking.body));
	const response = await fetch(`${server.url}${path}`, {
		method,
		redirect: 'manual',
		headers: {
			...(token !== null && { 'X-Secure-Token': token }),
			...(body !== undefined && { 'Content-Type': 'application/json' }),
			...asking.headers,
		},
		...(body !== undefined && { body }),
	});
	const text = await response.text();
	const isJson = response.headers.get('content-type') === 'application/json' && text !== '';
	return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
}
