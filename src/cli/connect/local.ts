/** The embedded engine on a database of this machine. Mail is composed and sent by parts that load when first needed. */
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createEngine, type Engine } from '../../engine/engine.js';
import {
	listSettings,
	readSettings,
	secretSettings,
	settingDefaults,
	settingNames,
	writeSettings,
} from '../../engine/settings.js';
import { openStore } from '../../store/open.js';
import type { Store } from '../../store/store.js';
import type { ConnectDependencies, Connection, LocalEngine, Target } from '../frame/connection.js';
import { localDkim } from './dkim.js';
import type { LocalParts, Presence } from './parts.js';
import { localQueue } from './queue.js';
import { localStatus } from './status.js';
import { localTokens } from './tokens.js';
import { readWrappingKeys } from './wrapping.js';

export type LocalTarget = Extract<Target, { kind: 'local' }>;

/**
 * Opens the database now, all else when first used; `close` closes both. Rejects as `openStore` does:
 * `DatabaseMissing`, `UnsupportedDatabase`, `StoreError`.
 */
export async function connectLocal(
	target: LocalTarget,
	dependencies: ConnectDependencies,
): Promise<Connection> {
	const { clock } = dependencies;
	const isNew = !existsSync(target.url);
	// As it would be: empty, and nowhere.
	const isImagined = dependencies.isTrial === true && isNew && target.create;
	const presence: Presence = {
		whyPaused: () => null,
		storeFailed: () => {},
	};
	const keys = readWrappingKeys(dependencies.env, dependencies.warn);
	const place = isImagined ? { ...target, url: ':memory:' } : target;
	const store = await openLocal(place, { ...dependencies, keys, presence });
	const parts: LocalParts = { ...dependencies, store, path: target.url, isNew, keys, presence };
	const lazy = lazyParts(parts);
	const engine = createEngine({
		store,
		clock,
		newId: randomUUID,
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

/** `serve` must never wait for the disk where it answers: its store works in threads. */
async function openLocal(
	target: LocalTarget,
	{
		clock,
		role,
		keys,
		presence,
		isTrial = false,
		onWait,
	}: Pick<LocalParts, 'clock' | 'role' | 'keys' | 'presence' | 'isTrial' | 'onWait'>,
): Promise<Store> {
	const mode = target.create ? 'create' : 'existing';
	const options = { clock, mode, role, keys, isTrial } as const;
	const onLocked = onWait === null ? undefined : () => onWait().end;
	if (role !== 'serve') return openStore(target.url, { ...options, onLocked });
	const { openThreadedStore } = await import('../../threads/threaded-store.js');
	return openThreadedStore(target.url, { ...options, onFailure: (error) => presence.storeFailed(error) });
}

function localEngine(parts: LocalParts, lazy: LazyParts, engine: Engine): LocalEngine {
	const { store, clock, path, isNew } = parts;
	return {
		path,
		isNew,
		foreseeSend: engine.foreseeSend,
		settings: {
			names: settingNames,
			defaults: settingDefaults,
			get: async (options) => {
				const isShown = (name: string) => options?.reveal === true || !secretSettings.has(name);
				const values = await listSettings(store);
				return Object.fromEntries(values.map(([name, value]) => [name, isShown(name) ? value : '********']));
			},
			set: async (values) => {
				const { assertSmtpUrl } = await import('./mail.js');
				assertSmtpUrl(values['smtp_url']);
				await writeSettings({ store, clock }, values);
			},
		},
		tokens: localTokens({ store, clock }),
		queue: localQueue({ store, clock }),
		dkim: localDkim({ store, clock }),
		ingestBounces: async (request) => {
			const { ingestBounces } = await import('./ingest.js');
			return ingestBounces({ store, clock }, request);
		},
		secrets: {
			hasKey: parts.keys.length > 0,
			counts: () => store.reads.secretCounts(),
			rewrite: (command) => store.writes.rewriteSecrets({ ...command, now: clock.now() }),
		},
		counts: { check: () => store.reads.checkCounts({}), repair: () => store.writes.repairCounts({}) },
		status: () => localStatus(parts),
		deliver: async (options) => {
			const [mailer, { watchClock }] = await Promise.all([lazy.mailer(), import('./clock-watch.js')]);
			const { warn } = parts;
			const watch = watchClock(clock, ({ text }) => warn(text));
			try {
				if (options.scope !== null) return await mailer.deliver(options);
				const { createNotifier, notifyBeside } = await import('./notify.js');
				return await notifyBeside(createNotifier(parts), { options, warn }, () => mailer.deliver(options));
			} finally {
				watch.stop();
			}
		},
		testSmtp: async (signal) => (await lazy.mailer()).testSmtp(signal),
		serve: async (options) => {
			const { serveLocal } = await import('./serve.js');
			return serveLocal({ ...parts, engine, mailer: await lazy.mailer() }, options);
		},
	};
}

type LazyParts = ReturnType<typeof lazyParts>;

function lazyParts(parts: LocalParts) {
	let mailer: Promise<import('./mail.js').Mailer> | null = null;
	return {
		mailer: () => {
			mailer ??= import('./mail.js').then(({ createMailer }) => createMailer(parts));
			return mailer;
		},
		notifier: async () => (await import('./notify.js')).createNotifier(parts),
		close: async () => {
			await (await mailer)?.close();
		},
	};
}
