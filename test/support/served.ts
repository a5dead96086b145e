/** A project whose mails are delivered to a sink, and whose public pages are served. */
import { randomBytes, randomUUID } from 'node:crypto';
import PostalMime, { type Email } from 'postal-mime';
import { systemClock } from '../../src/api/datetime.js';
import type { SendRequest } from '../../src/api/inputs.js';
import type { Uuid } from '../../src/api/records.js';
import { createContentCache } from '../../src/content/cache.js';
import { createWorker } from '../../src/delivery/run.js';
import { SmtpPool } from '../../src/delivery/smtp/pool.js';
import { createTracking, type TrackingPorts } from '../../src/delivery/tracking/lookup.js';
import { keyringOf } from '../../src/delivery/tracking/tokens.js';
import { createEngine, type Engine } from '../../src/engine/engine.js';
import { createPublicHandler } from '../../src/http/public/handler.js';
import { serve } from '../../src/http/server/serve.js';
import { openStore } from '../../src/store/open.js';
import type { Store } from '../../src/store/store.js';
import { plainSettings } from './delivery.js';
import { readHere } from './read-here.js';
import { startSmtpSink } from './smtp-sink.js';

export interface Delivered {
	id: Uuid;
	email: Email;
	raw: string;
	pixel: string;
	links: string[];
}

export interface Served {
	url: string;
	store: Store;
	engine: Engine;
	ports: TrackingPorts;
	deliver(request: Partial<SendRequest>): Promise<Delivered>;
	later(seconds: number): void;
	failures: unknown[];
	settled(): Promise<void>;
	close(): Promise<void>;
}

export async function startServed(path = ':memory:'): Promise<Served> {
	let offset = 0;
	const clock = { now: () => systemClock.now() + offset };
	const store = await openStore(path, { clock, mode: 'create', eventDelayMs: 5 });
	const engine = createEngine({
		store,
		clock,
		newId: randomUUID,
		newSecret: () => randomBytes(32).toString('base64url'),
		ports: {
			checkTarget: async () => null,
			notifyTest: async () => ({ result: true, status_code: 200, error: null, duration_ms: 0 }),
			renderMessage: async () => null,
			whyPaused: () => null,
		},
	});
	await engine.senders.create({ from_email: 'news@example.com' });
	const fresh = { id: 7, secret: randomBytes(32).toString('base64url') };
	const keys = await store.writes.ensureKey({
		purpose: 'tracking',
		fresh,
		rotateAfter: 1e15,
		now: clock.now(),
	});
	const keyring = keyringOf(keys);
	const contents = createContentCache({ askHtml: readHere, maxBytes: 1e7 });
	const failures: unknown[] = [];
	let url = '';
	const ports = createTracking({
		reads: store.reads,
		writes: store.writes,
		contents,
		links: async () => ({ publicUrl: url, keyring }),
		clock,
		failed: (error) => failures.push(error),
	});
	const pages = createPublicHandler(ports);
	const server = await serve({
		handler: async () => ({ status: 404, headers: {}, body: null }),
		publicPages: pages,
		host: '127.0.0.1',
		port: 0,
		tls: null,
		log: () => undefined,
	});
	url = server.url;
	await store.writes.putSettings({ values: { public_url: url }, now: clock.now() });
	const sink = await startSmtpSink();
	const pool = new SmtpPool({ settings: plainSettings(sink.port) });
	const worker = createWorker({
		queue: store.queue,
		reads: store.reads,
		contents,
		pool,
		clock,
		owner: 'test',
		publicUrl: url,
		keyring,
		random: () => 0.5,
	});
	return {
		url,
		store,
		engine,
		ports,
		failures,
		settled: pages.settled,
		later: (seconds) => {
			offset += seconds * 1e6;
		},
		deliver: async (request) => {
			const { messages } = await engine.send({
				from: 'News <news@example.com>',
				to: ['ada@example.org'],
				subject: 'News',
				type: 'BULK',
				...request,
			});
			await worker.run({ scope: null, until: 'settled' });
			const raw = sink.received.at(-1)?.raw ?? Buffer.alloc(0);
			const email = await PostalMime.parse(raw);
			return {
				id: messages[0]?.id ?? '',
				email,
				raw: raw.toString('latin1'),
				pixel: /src="([^"]*\/o\/[^"]*)"/.exec(email.html ?? '')?.[1] ?? '',
				links: [...(email.html ?? '').matchAll(/href="([^"]*\/c\/[^"]*)"/g)].map((match) => match[1] ?? ''),
			};
		},
		close: async () => {
			pool.close();
			await server.close({ graceMs: 1000 });
			await pages.settled();
			await sink.close();
			await engine.close();
			await store.close();
		},
	};
}

export function unsubscribeUrl({ email }: Delivered): string {
	const field = email.headers.find(({ key }) => key === 'list-unsubscribe')?.value ?? '';
	return field.replace(/[<>]/g, '');
}
