import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import type { StoreError } from '../../api/errors.js';
import { createEngine, type Engine } from '../../engine/engine.js';
import { newUuid } from '../../engine/rules/campaign-rows.js';
import { settingNames } from '../../engine/rules/settings.js';
import {
	checkSettings,
	listSettings,
	normalSetting,
	readSettings,
	secretSettings,
	settingDefaults,
	settingProblem,
	writeSettings,
} from '../../engine/settings.js';
import { DatabaseMissing } from '../../store/errors.js';
import { openStore } from '../../store/open.js';
import type { PostgresOptions } from '../../store/postgres/store.js';
import { mostLockTimeoutMs, type OpenOptions } from '../../store/sqlite/store.js';
import type { Store } from '../../store/store.js';
import { isMissingFile, isPostgres, shownDatabase, urlsOf } from '../../store/url.js';
import { findPaths } from '../config/config.js';
import type {
	ConnectDependencies,
	Connection,
	DeliverOptions,
	DeliverySummary,
	IngestRequest,
	RunningServer,
	ServeOptions,
	Target,
} from '../frame/connection.js';
import { localDkim, localQueue, localStatus, localTokens } from './administration.js';
import type { Mailer } from './mail.js';
import type { LocalParts, Presence } from './parts.js';
import { storeMadeOnWrite, withWalkReader } from './stores.js';
import { readWrappingKeys } from './wrapping-keys.js';

export type LocalTarget = Extract<Target, { kind: 'local' }>;

/**
 * Opens the database now, and everything else at its first use. Rejects with `DatabaseMissing`, `UnsupportedDatabase`
 * and `StoreError`.
 */
export async function connectLocal(
	target: LocalTarget,
	dependencies: ConnectDependencies,
): Promise<Connection> {
	const isNew = isMissingFile(target.url);
	const isImagined = dependencies.isTrial === true && isNew && target.create;
	const presence: Presence = { whyPaused: () => null, storeFailed: () => {} };
	const keys = readWrappingKeys(dependencies.env, dependencies.warn);
	const opening = { ...dependencies, keys, presence };
	const isUnmade = isNew && target.create && dependencies.firstWrite !== undefined && !isImagined;
	const { store, isMade } = isUnmade
		? await openUnmade(target, opening)
		: await openLocal(isImagined ? imagined(target) : target, opening);
	const { clock = dependencies.clock } = store;
	const parts: LocalParts = {
		...{ ...dependencies, clock, store, keys, presence },
		...{ path: shownDatabase(target.url), tokenFile: tokenFileOf(target.url, dependencies.env) },
		isNew: isNew || isMade,
	};
	const lazy = lazyParts(parts);
	const engine = createEngine({
		store,
		clock,
		newId: () => newUuid(clock.now()),
		newSecret: () => randomBytes(32).toString('base64url'),
		ports: {
			checkTarget: async (url) => {
				if ((await readSettings(store)).allowPrivateWebhooks) return null;
				const { refuseTarget } = await import('../../delivery/notifications/target.js');
				return refuseTarget(url);
			},
			notifyTest: async (webhook) => (await lazy.notifier()).test(webhook),
			renderMessage: async (id) => (await lazy.mailer()).renderMessage(id),
			whyPaused: () => presence.whyPaused(),
		},
	});
	return {
		api: engine,
		target,
		exchange: async (request) => {
			const { exchangeLocally } = await import('./exchange.js');
			return exchangeLocally(engine, request);
		},
		compose: async (request) => (await lazy.mailer()).compose(request),
		render: async (content, variables) => (await lazy.mailer()).render(content, variables),
		local: localEngine(parts, lazy, engine),
		close: async () => {
			await lazy.close();
			await store.close();
		},
	};
}

function imagined(target: LocalTarget): LocalTarget {
	return { ...target, url: ':memory:' };
}

async function openUnmade(target: LocalTarget, opening: Opening & Pick<ConnectDependencies, 'firstWrite'>) {
	const { store: empty } = await openLocal(imagined(target), opening);
	const make = async () => {
		opening.firstWrite?.begin();
		let isMade = false;
		const onCreated = () => {
			isMade = true;
		};
		const { store } = await openLocal(target, { ...opening, onCreated });
		if (isMade) await opening.firstWrite?.made(shownDatabase(target.url));
		return store;
	};
	const isThere = () => !isMissingFile(target.url);
	return { store: storeMadeOnWrite(empty, { isThere, make }), isMade: true };
}

type Opening = Pick<
	LocalParts,
	'clock' | 'role' | 'keys' | 'presence' | 'isTrial' | 'onWait' | 'warn' | 'signal' | 'lockMs'
>;

export async function assertSettings(values: Values): Promise<void> {
	const { assertSmtpUrl } = await import('./mail.js');
	assertSmtpUrl(values['smtp_url']);
	checkSettings(values);
}

export async function normalOf(name: string, value: string): Promise<string> {
	if (name === 'smtp_url') return (await import('../../delivery/smtp/settings.js')).normalSmtpUrl(value);
	return normalSetting(name, value);
}

type Values = Readonly<Record<string, string | null>>;

async function normalValues(values: Values) {
	const normal: [string, string | null][] = [];
	for (const [name, value] of Object.entries(values))
		normal.push([name, value === null ? null : await normalOf(name, value)]);
	return Object.fromEntries(normal);
}

/**
 * The store of `serve` and of a worker runs in threads, so that HTTP and SMTP do not wait for the disk. A worker has
 * one store thread, which also checkpoints the log after commits.
 */
async function openLocal(
	target: LocalTarget,
	opening: Opening & Pick<OpenOptions, 'onCreated'>,
): Promise<{ store: Store; isMade: boolean }> {
	const { clock, role, keys, presence, isTrial = false, onWait, signal, onCreated } = opening;
	const mode = target.create ? 'create' : 'existing';
	const options = { clock, mode, role, keys, isTrial } as const;
	const beginWait = onWait === null ? undefined : () => onWait().end;
	const stop = role === 'cli' ? signal : undefined;
	const lockTimeoutMs = Math.min(opening.lockMs ?? mostLockTimeoutMs, mostLockTimeoutMs);
	if (isPostgres(target.url)) {
		const waits = role === 'cli' ? { lockTimeoutMs } : {};
		return await openOnServer(target, { ...options, ...waits, stop, onWait: beginWait });
	}
	const isWorker = role === 'worker';
	const isApart = !isTrial && !isMissingFile(target.url) && availableParallelism() > 1;
	if (role === 'cli' || (isWorker && !isApart)) {
		const heard = { onLocked: beginWait, ...(onCreated !== undefined && { onCreated }) };
		const store = await openStore(target.url, { ...options, ...heard, lockTimeoutMs });
		const mayWalk = role === 'cli' && !isTrial;
		return { store: mayWalk ? withWalkReader(store, { url: target.url, keys }) : store, isMade: false };
	}
	const { openThreadedStore } = await import('../../threads/threaded-store.js');
	const onFailure = (error: StoreError) => presence.storeFailed(error);
	const how = isWorker ? ({ isOneThread: true, upkeep: 'with_commits', lockTimeoutMs } as const) : {};
	const [store] = await Promise.all([
		openThreadedStore(target.url, { ...options, ...how, onFailure }),
		import('./mail.js'),
	]);
	return { store, isMade: false };
}

function tokenFileOf(url: string, env: ConnectDependencies['env']): string {
	if (!isPostgres(url)) return `${url}.token`;
	const { host, pathname, searchParams } = new URL(urlsOf(shownDatabase(url))[0] ?? url);
	const values = ['host', 'port', 'schema'].map((key) => searchParams.get(key));
	const named = values.filter((value) => value !== null && value !== 'public');
	const name = [`${host}${pathname}`, ...named].join('-').replace(/[^\w.-]+/g, '-');
	return join(dirname(findPaths(env).database), `postgres-${name}.token`);
}

async function openOnServer({ url, create }: LocalTarget, options: Omit<PostgresOptions, 'url' | 'mode'>) {
	const { openPostgresStore } = await import('../../store/postgres/store.js');
	try {
		return { store: await openPostgresStore({ ...options, url, mode: 'existing' }), isMade: false };
	} catch (error) {
		if (!create || !(error instanceof DatabaseMissing)) throw error;
		const making = { ...options, mode: 'create' } as const;
		if (options.isTrial) return { store: await openStore(':memory:', making), isMade: true };
		return { store: await openPostgresStore({ ...making, url }), isMade: true };
	}
}

export function localEngine(parts: LocalParts, lazy: ReturnType<typeof lazyParts>, engine: Engine) {
	const { store, clock, path, isNew } = parts;
	return {
		path,
		isNew,
		foreseeSend: engine.foreseeSend,
		settings: {
			names: settingNames,
			defaults: settingDefaults as Readonly<Record<string, string>>,
			get: async (options?: { reveal: boolean }): Promise<Record<string, string>> => {
				const isShown = (name: string) => options?.reveal === true || !secretSettings.has(name);
				const values = await listSettings(store);
				return Object.fromEntries(values.map(([name, value]) => [name, isShown(name) ? value : '********']));
			},
			whyNot: async (name: string, value: string) => {
				if (name !== 'smtp_url') return settingProblem(name, value);
				return (await import('./mail.js')).smtpUrlProblem(value) ?? settingProblem(name, value);
			},
			normalOf,
			set: async (values: Values) => {
				await assertSettings(values);
				await writeSettings({ store, clock }, await normalValues(values));
			},
			foresee: async (values: Values) => {
				const stored = await store.reads.getSettings();
				const now = clock.now();
				const merged = Object.entries({ ...stored, ...(await normalValues(values)) });
				const set = Object.fromEntries(
					merged.flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
				);
				const [before, after] = await Promise.all([
					store.reads.foreseeRetention({ values: stored, now }),
					store.reads.foreseeRetention({ values: set, now }),
				]);
				return { before, after };
			},
		},
		tokens: localTokens({ store, clock }),
		queue: localQueue({ store, clock }),
		dkim: localDkim({ store, clock }),
		ingestBounces: async (request: IngestRequest) => {
			const { ingestBounces } = await import('./bounces.js');
			return ingestBounces({ store, clock }, request);
		},
		secrets: {
			hasKey: parts.keys.length > 0,
			counts: () => store.reads.secretCounts(),
			/** If other processes have the database open, rewrites nothing and returns these processes. */
			rewrite: (command: { as: 'wrapped' | 'plain'; isTrial: boolean }) =>
				store.writes.rewriteSecrets({ ...command, now: clock.now() }),
		},
		counts: { check: () => store.reads.checkCounts({}), repair: () => store.writes.repairCounts({}) },
		status: () => localStatus(parts),
		deliver: async (options: DeliverOptions): Promise<DeliverySummary> => {
			const [mailer, { watchClock }] = await Promise.all([lazy.mailer(), import('./parts.js')]);
			const { warn } = parts;
			const watch = watchClock(parts, ({ text }) => warn(text));
			const failed = new Promise<never>((_, reject) => {
				parts.presence.storeFailed = reject;
			});
			const deliver = async () => {
				if (options.scope !== null) return await mailer.deliver(options);
				const { createNotifier, notifyBeside } = await import('./notify.js');
				return await notifyBeside(createNotifier(parts), { options, warn }, () => mailer.deliver(options));
			};
			try {
				return await Promise.race([deliver(), failed]);
			} finally {
				watch.stop();
			}
		},
		testSmtp: async (signal: AbortSignal) => (await lazy.mailer()).testSmtp(signal),
		/** Answers HTTP, and sends due messages unless `sending` is null. Throws if the port is not available. */
		serve: async (options: ServeOptions): Promise<RunningServer> => {
			const { serveLocal } = await import('./serve.js');
			return serveLocal({ ...parts, engine, mailer: await lazy.mailer() }, options);
		},
	};
}

function lazyParts(parts: LocalParts) {
	let mailer: Promise<Mailer> | null = null;
	return {
		mailer: () => {
			mailer ??= import('./mail.js').then(({ createMailer }) => createMailer(parts));
			return mailer;
		},
		notifier: async () => (await import('./notify.js')).createNotifier(parts),
		close: async () => (await mailer)?.close(),
	};
}
