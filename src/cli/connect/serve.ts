/** `serve`: the engine as a deployment of its API, with the pages of its mails and the worker that sends them. */
import { rename, rm, writeFile } from 'node:fs/promises';
import { microsPerSecond } from '../../api/datetime.js';
import type { Engine } from '../../engine/engine.js';
import { keepListeningUrl, readSettings } from '../../engine/settings.js';
import { createAuthenticator } from '../../http/server/authenticate.js';
import { createHandler } from '../../http/server/handler.js';
import { listen } from '../../http/server/listen.js';
import { createMetrics } from '../../http/server/metrics.js';
import { createThrottle } from '../../http/server/throttle.js';
import type { RunningServer, ServeOptions } from '../connection.js';
import { startBounceSmtp } from './listener.js';
import type { Mailer } from './mail.js';
import { startNotifying } from './notify.js';
import type { LocalParts } from './parts.js';
import { type Sending, startSending } from './sending.js';
import { newToken } from './tokens.js';
import { trackingPages } from './tracking.js';

declare const __VERSION__: string;

export interface ServeParts extends LocalParts {
	engine: Engine;
	mailer: Mailer;
}

/** What is in flight when the server is told to stop gets so long. */
const graceMs = 8_000;
/** A connection for bounces may be idle, and says nothing before it ends; what is cut off comes again. */
const smtpGraceMs = 3_000;

/**
 * Makes a token where none is alive, listens, then sends. Rejects when it cannot listen. `close` leaves the store and
 * the mailer to their owner, and comes before theirs.
 */
export async function serveLocal(parts: ServeParts, options: ServeOptions): Promise<RunningServer> {
	const { store, engine, clock, presence, mailer } = parts;
	const newTokenFile = await ensureToken(parts);
	const { requestsPerSecond: perSecond } = await readSettings(store);
	let sending: Sending | null = null;
	const wake = () => sending?.wake();
	const pages = trackingPages(parts, mailer, options.log);
	// Of the API, of the pages and of what was no request at all.
	const metrics = createMetrics();
	const server = await listen({
		handler: createHandler({
			served: waking(engine, wake),
			version: __VERSION__,
			extensions: Object.keys(engine.ext).sort(),
			authenticate: createAuthenticator({
				findToken: (sha256) => store.reads.findToken({ sha256 }),
				clock,
			}),
			...(perSecond !== null && { throttle: createThrottle({ perSecond, burst: 2 * perSecond, clock }) }),
			metrics,
			gauges: () => gauges(parts),
			ready: async () => {
				await store.reads.getSettings();
				return null;
			},
			log: options.log,
		}),
		publicPages: pages,
		metrics,
		host: options.host,
		port: options.port,
		tls: options.tls,
		trustProxy: options.trustProxy,
		log: options.log,
	});
	const bounceSmtp = await startBounceSmtp(parts, options).catch(async (error: unknown) => {
		await server.close({ graceMs: 0 });
		throw error;
	});
	await keepListeningUrl(parts, server.url).catch(async (error: unknown) => {
		await Promise.all([server.close({ graceMs: 0 }), bounceSmtp?.close({ graceMs: 0 })]);
		throw error;
	});
	const failed = new Promise<Error>((resolve) => {
		presence.storeFailed = resolve;
	});
	if (options.sending !== null) {
		sending = startSending({ store, mailer, log: options.log, ...options.sending });
		presence.whyPaused = sending.whyPaused;
	}
	const notifying = startNotifying(parts, options.log);
	return {
		url: server.url,
		publicUrl: (await readSettings(store)).publicUrl ?? server.url,
		failed,
		newTokenFile,
		bounceSmtp: bounceSmtp?.address ?? null,
		close: async () => {
			const bounces = bounceSmtp?.close({ graceMs: smtpGraceMs });
			await Promise.all([server.close({ graceMs }), sending?.stop(), notifying.stop(), bounces]);
			await pages.settled();
		},
	};
}

/** Acceptances wake the worker, which otherwise looks once a second. */
function waking(engine: Engine, wake: () => void): { api: Engine; ext: Engine['ext'] } {
	const { ext } = engine;
	const api: Engine = {
		...engine,
		send: async (request, call) => {
			const answer = await engine.send(request, call);
			wake();
			return answer;
		},
	};
	const mailings: Engine['ext']['mailings'] = {
		...ext.mailings,
		release: async (id, expected, call) => {
			await ext.mailings.release(id, expected, call);
			wake();
		},
	};
	const messages: Engine['ext']['messages'] = {
		...ext.messages,
		retry: async (id, call) => {
			const message = await ext.messages.retry(id, call);
			wake();
			return message;
		},
	};
	return { api, ext: { ...ext, mailings, messages } };
}

async function gauges({ store, clock }: ServeParts): Promise<Record<string, number>> {
	const [{ messages, lists, subscribers, size_bytes }, waits] = await Promise.all([
		store.reads.status(),
		store.reads.limitWaits({ now: clock.now() }),
	]);
	return {
		mailctl_lists: lists,
		mailctl_subscribers: subscribers,
		mailctl_database_bytes: size_bytes,
		...Object.fromEntries(
			Object.entries(messages).map(([state, count]) => [`mailctl_messages{state="${state}"}`, count]),
		),
		// How many wait would have to be counted one by one, each time somebody asks.
		...Object.fromEntries(
			waits.map(({ setting, limit, wait }) => [
				`mailctl_limit_wait_seconds{setting="${setting}",limit="${limit}"}`,
				wait / microsPerSecond,
			]),
		),
	};
}

/** An API that nobody may use is of no use: the first start makes a token. `null`: there is one. */
async function ensureToken({ store, clock, path }: ServeParts): Promise<string | null> {
	const tokens = await store.reads.listTokens();
	if (tokens.some(({ revoked_at }) => revoked_at === null)) return null;
	const { secret, sha256 } = newToken();
	const file = `${path}.token`;
	const fresh = `${file}.${process.pid}`;
	await writeFile(fresh, `${secret}\n`, { mode: 0o600, flag: 'wx' });
	const isMade = await store.writes.createToken({
		sha256,
		name: tokens.some(({ name }) => name === 'admin') ? `admin-${clock.now()}` : 'admin',
		scopes: ['admin'],
		now: clock.now(),
	});
	// By rename: who reads the file never sees half of a token.
	if (isMade) await rename(fresh, file);
	else await rm(fresh);
	return isMade ? file : null;
}
