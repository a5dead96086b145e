import { rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { microsPerSecond } from '../../api/datetime.js';
import { noMailServer, stalledReason } from '../../api/pauses.js';
import { ingestMail } from '../../delivery/bounces/ingest.js';
import { type BounceListener, listenForBounces } from '../../delivery/bounces/listener.js';
import { ehloName } from '../../delivery/smtp/settings.js';
import { createTracking } from '../../delivery/tracking/lookup.js';
import type { Engine } from '../../engine/engine.js';
import type { ReturnedReport } from '../../engine/rules/outcomes.js';
import { keepListeningUrl, readSettings } from '../../engine/settings.js';
import { createPublicHandler, type PublicPages } from '../../http/public/handler.js';
import { createAuthenticator, createThrottle } from '../../http/server/authenticate.js';
import { createHandler } from '../../http/server/handler.js';
import { serve } from '../../http/server/serve.js';
import { createMetrics } from '../../http/server/telemetry.js';
import { makeFolders } from '../../jobs/folders.js';
import type { Store } from '../../store/store.js';
import { createReportReader } from '../../threads/readers.js';
import { limitOldGeneration, limitYoungGeneration } from '../frame/heap.js';
import { newToken } from './administration.js';
import type { DeliverOptions } from './mail.js';
import { firstSender, type Mailer } from './mail.js';
import { startNotifying } from './notify.js';
import { type LocalParts, openVerp, watchClock } from './parts.js';

export interface ServeOptions {
	host: string;
	port: number;
	tls: { cert: string; key: string } | null;
	trustProxy: boolean;
	bounceSmtp: { host: string; port: number } | null;
	sending: Pick<DeliverOptions, 'connections' | 'rate'> | null;
	log: (line: object) => void;
}

export interface RunningServer {
	url: string;
	publicUrl: string | null;
	/** Resolves with the error that stopped the server. Stays pending otherwise. */
	failed: Promise<Error>;
	bounceSmtp: string | null;
	newTokenFile: string | null;
	/**
	 * Accepts no more work, ends requests and deliveries in flight within 10 s, and returns leased messages to the queue.
	 */
	close(): Promise<void>;
}

declare const __VERSION__: string;

interface ServeParts extends LocalParts {
	engine: Engine;
	mailer: Mailer;
}

const graceMs = 8_000;
/**
 * If a proxy polled `/readyz` within the last `watchedMs`, a stopping server still accepts connections for `leavingMs`,
 * so that the proxy can notice the stop.
 */
const watchedMs = 10_000;
const leavingMs = 2_000;
/** If a server refuses a connection, nginx ignores it for 2 s (packaging/cluster). Idle connections end by then. */
const idleMs = 1_000;
/** After this time, `close` cuts connections to the bounce server without a reply, so that senders retry the mail. */
const smtpGraceMs = 3_000;

/**
 * Listens, creates a token if there is no valid one, then starts sending. Rejects without a new token if it cannot
 * listen. Close the server before the store and the mailer.
 */
export async function serveLocal(parts: ServeParts, options: ServeOptions): Promise<RunningServer> {
	const { store, engine, clock, presence, mailer } = parts;
	await Promise.all([limitOldGeneration(), limitYoungGeneration()]);
	const { requestsPerSecond: perSecond } = await readSettings(store);
	let sending: ReturnType<typeof startSending> | null = null;
	const wake = () => sending?.wake();
	const pages = trackingPages(parts, mailer, options.log);
	const metrics = createMetrics();
	let lastWatched = Number.NEGATIVE_INFINITY;
	let whyNot: string | null = 'The server is starting.';
	const server = await serve({
		handler: createHandler({
			...waking(engine, wake),
			encoded: engine.encoded,
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
				lastWatched = performance.now();
				return whyNot ?? whyNotReady(parts);
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
	const settled = async () => {
		await keepListeningUrl(parts, server.url);
		return ensureToken(parts);
	};
	const newTokenFile = await settled().catch(async (error: unknown) => {
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
	const watch = watchClock(parts, ({ seconds, text }) =>
		options.log({ event: 'clock_step', seconds, reason: text }),
	);
	whyNot = null;
	return {
		url: server.url,
		publicUrl: (await readSettings(store)).publicUrl,
		failed,
		newTokenFile,
		bounceSmtp: bounceSmtp?.address ?? null,
		close: async () => {
			watch.stop();
			const bounces = bounceSmtp?.close({ graceMs: smtpGraceMs });
			whyNot = 'The server is stopping.';
			const isWatched = performance.now() - lastWatched < watchedMs;
			const leaving = {
				acceptMs: options.trustProxy && isWatched ? leavingMs : 0,
				idleMs: options.trustProxy ? idleMs : 0,
			};
			await Promise.all([server.close({ graceMs, ...leaving }), sending?.stop(), notifying.stop(), bounces]);
			await pages.settled();
		},
	};
}

function waking(engine: Engine, wake: () => void): { api: Engine; ext: Engine['ext'] } {
	const { ext } = engine;
	const waked =
		<A extends unknown[], R>(call: (...given: A) => Promise<R>) =>
		async (...given: A): Promise<R> => {
			const result = await call(...given);
			wake();
			return result;
		};
	return {
		api: { ...engine, send: waked(engine.send) },
		ext: {
			...ext,
			campaigns: { ...ext.campaigns, release: waked(ext.campaigns.release) },
			messages: { ...ext.messages, retry: waked(ext.messages.retry) },
		},
	};
}

async function whyNotReady({ store, keys }: ServeParts): Promise<string | null> {
	const wanted = (await store.reads.secretCounts()).find(
		({ key }) => key !== null && keys.every(({ id }) => id !== key),
	);
	if (wanted !== undefined)
		return `The secrets of the database are encrypted with key ${wanted.key}, which this process does not have.`;
	return (await store.reads.takesWrites()) ? null : 'The database is read-only.';
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
		// Report waiting times, because counting the waiting messages would read each of them for every request.
		...Object.fromEntries(
			waits.map(({ setting, limit, wait }) => [
				`mailctl_limit_wait_seconds{setting="${setting}",limit="${limit}"}`,
				wait / microsPerSecond,
			]),
		),
	};
}

async function ensureToken({ store, clock, tokenFile: file }: ServeParts): Promise<string | null> {
	const tokens = await store.reads.listTokens();
	if (tokens.some(({ revoked_at }) => revoked_at === null)) return null;
	const { secret, sha256 } = newToken();
	const fresh = `${file}.${process.pid}`;
	makeFolders(dirname(file));
	await writeFile(fresh, `${secret}\n`, { mode: 0o600, flag: 'wx' });
	const isMade = await store.writes.createToken({
		sha256,
		name: tokens.some(({ name }) => name === 'admin') ? `admin-${clock.now()}` : 'admin',
		scopes: ['admin'],
		now: clock.now(),
	});
	// Rename the finished file into place, so that no program reads half a token.
	if (isMade) await rename(fresh, file);
	else await rm(fresh);
	return isMade ? file : null;
}

interface SendingOptions extends Pick<DeliverOptions, 'connections' | 'rate'> {
	store: Store;
	mailer: Pick<Mailer, 'deliver'>;
	log: (line: object) => void;
}

const settingsEveryMs = 2_000;

/** Starts at once. Logs and retries failures. `stop` never rejects. Close the store and the mailer after `stop`. */
export function startSending({ store, mailer, log, ...pace }: SendingOptions) {
	const stopping = new AbortController();
	let paused: string | null = null;
	let wake = () => {};
	const deliver = async (configured: string) => {
		const changed = new AbortController();
		const watch = setInterval(async () => {
			const now = await fingerprint(store).catch(() => configured);
			if (now !== configured) changed.abort();
		}, settingsEveryMs);
		paused = null;
		try {
			await mailer.deliver({
				...pace,
				scope: null,
				until: 'stopped',
				signal: AbortSignal.any([stopping.signal, changed.signal]),
				onReady: (found) => {
					wake = found;
				},
				onProgress: () => {
					paused = null;
				},
				onWaiting: (reason, ms) => {
					paused = reason;
					log({ event: 'sending_paused', reason, retry_in_ms: ms });
				},
				// Do not set `paused`, because no event reports the end of a manual pause. The engine reads this pause
				// from the database.
				onHeld: (reason) => log({ event: 'sending_paused', reason }),
				onWarning: (warning) => log({ event: 'content_warning', warning }),
			});
		} finally {
			clearInterval(watch);
			wake = () => {};
		}
	};
	const loop = async () => {
		while (!stopping.signal.aborted) {
			try {
				const configured = await fingerprint(store);
				if (configured === null) paused = noMailServer;
				else await deliver(configured);
			} catch (error) {
				paused = stalledReason(error);
				log({ event: 'worker_failed', error: error instanceof Error ? error.message : String(error) });
			}
			await delay(settingsEveryMs, undefined, { signal: stopping.signal }).catch(() => undefined);
		}
	};
	const ended = loop();
	return {
		wake: () => wake(),
		whyPaused: () => paused,
		stop: () => {
			stopping.abort();
			return ended;
		},
	};
}

async function fingerprint(store: Store): Promise<string | null> {
	const settings = await readSettings(store);
	const { smtpUrl, smtpPassword, smtpCa, publicUrl, bounceAddress } = settings;
	if (smtpUrl === null) return null;
	const name = ehloName(settings, await firstSender(store.reads));
	return JSON.stringify([smtpUrl, smtpPassword, smtpCa, name, publicUrl, bounceAddress]);
}

const settingsForMs = 1_000;

function trackingPages(
	{ store, clock }: LocalParts,
	{ contents, links }: Pick<Mailer, 'contents' | 'links'>,
	log: (line: object) => void,
): PublicPages {
	const ports = createTracking({
		reads: store.reads,
		writes: store.writes,
		contents,
		links: keptFor(settingsForMs, links),
		clock,
		failed: (error) => log({ event: 'tracking_failed', error: String(error) }),
	});
	return createPublicHandler({ ...ports, branding: keptFor(settingsForMs, ports.branding) });
}

/** Caches the result of `read`. Each opened mail and each bounce needs the result, and `read` may write a new key. */
function keptFor<T>(ms: number, read: () => Promise<T>): () => Promise<T> {
	let kept: { value: Promise<T>; until: number } | null = null;
	return () => {
		const now = performance.now();
		if (kept !== null && kept.until > now) return kept.value;
		const value = read();
		kept = { value, until: now + ms };
		value.catch(() => {
			kept = null;
		});
		return value;
	};
}

const pathsForMs = 1_000;

async function startBounceSmtp(
	{ store, clock }: Pick<LocalParts, 'store' | 'clock'>,
	{ bounceSmtp, tls, log }: Pick<ServeOptions, 'bounceSmtp' | 'tls' | 'log'>,
): Promise<BounceListener | null> {
	if (bounceSmtp === null) return null;
	const verp = keptFor(pathsForMs, () => openVerp({ store, clock }));
	const reader = createReportReader();
	const record = (report: ReturnedReport) => store.writes.recordReport(report);
	const listener = await listenForBounces({
		...bounceSmtp,
		tls,
		verp,
		clock,
		ingest: async (mail) => ingestMail(mail, { verp: await verp(), clock, record, read: reader.read }),
		log,
	});
	return {
		address: listener.address,
		close: async (options) => {
			await listener.close(options);
			await reader.close();
		},
	};
}
