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
import type { ConnectDependencies, Connection, LocalEngine, Target } from '../connection.js';
import { localDkim } from './dkim.js';
import type { LocalParts, Presence } from './parts.js';
import { localQueue } from './queue.js';
import { localStatus } from './status.js';
import { localTokens } from './tokens.js';

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
	const presence: Presence = {
		whyPaused: () => null,
		storeFailed: () => {},
	};
	const store = await openLocal(target, dependencies, presence);
	const parts: LocalParts = { ...dependencies, store, path: target.url, isNew, presence };
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
	{ clock, role }: ConnectDependencies,
	presence: Presence,
): Promise<Store> {
	const options = { clock, mode: target.create ? 'create' : 'existing', role } as const;
	if (role !== 'serve') return openStore(target.url, options);
	const { openThreadedStore } = await import('../../threads/threaded-store.js');
	return openThreadedStore(target.url, { ...options, onFailure: (error) => presence.storeFailed(error) });
}

function localEngine(parts: LocalParts, lazy: LazyParts, engine: Engine): LocalEngine {
	const { store, clock, path, isNew } = parts;
	return {
		path,
		isNew,
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
		status: () => localStatus(parts),
		deliver: async (options) => {
			const mailer = await lazy.mailer();
			if (options.scope !== null) return mailer.deliver(options);
			const { createNotifier, notifyBeside } = await import('./notify.js');
			const { warn } = parts;
			return notifyBeside(createNotifier(parts), { options, warn }, () => mailer.deliver(options));
		},
		testSmtp: async () => (await lazy.mailer()).testSmtp(),
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
