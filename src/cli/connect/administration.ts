import { createHash, randomBytes } from 'node:crypto';
import { type Clock, formatDateTime, type Micros } from '../../api/datetime.js';
import type { Scope } from '../../api/operations.js';
import { withoutSecrets } from '../../api/quote.js';
import type { Uuid } from '../../api/records.js';
import { generateKey, parseKey, recordNameOf, recordOf, zoneLineOf } from '../../delivery/dkim/keys.js';
import { limitSettings, proposedRetention } from '../../engine/rules/settings.js';
import { readSettings } from '../../engine/settings.js';
import type { Sizes, StoredDkimKey } from '../../store/maintenance.js';
import type { QueuePause, QueueState } from '../../store/queue.js';
import type { Store } from '../../store/store.js';
import { isMissingFile } from '../../store/url.js';
import { UsageError } from '../frame/errors.js';
import type { LocalParts } from './parts.js';

/** People and secret scanners recognize a token by its prefix. */
export function newToken(): { secret: string; sha256: string } {
	const secret = `mctl_${randomBytes(32).toString('base64url')}`;
	return { secret, sha256: createHash('sha256').update(secret).digest('hex') };
}

/** Only the answer of `create` has the secret, because the store keeps only its SHA-256. */
export function localTokens({ store, clock }: { store: Store; clock: Clock }) {
	return {
		list: async () =>
			(await store.reads.listTokens()).map(({ name, scopes, created_at, revoked_at }) => ({
				...{ name, scopes, date_created: formatDateTime(created_at), date_revoked: timeOf(revoked_at) },
			})),
		create: async ({ name, scopes }: { name: string; scopes: readonly Scope[] }) => {
			const { secret, sha256 } = newToken();
			const now = clock.now();
			if (!(await store.writes.createToken({ sha256, name, scopes, now }))) return null;
			return { name, scopes: [...scopes], date_created: formatDateTime(now), token: secret };
		},
		revoke: (name: string) => store.writes.revokeToken({ name, now: clock.now() }),
	};
}

export function localDkim({ store, clock }: { store: Store; clock: Clock }) {
	return {
		list: async () => (await store.reads.listDkimKeys()).map(toDkimKey),
		/**
		 * `domain` is ASCII in lower case. Returns null if the domain already has this selector. Throws for an invalid key.
		 */
		add: async ({ domain, selector, source }: NewKey) => {
			const material = 'pem' in source ? fromPem(source.pem) : await generateKey(source.type);
			const now = clock.now();
			const isAdded = await store.writes.addDkimKey({ domain, selector, ...material, now });
			return isAdded ? toDkimKey({ domain, selector, ...material, created_at: now }) : null;
		},
		remove: (key: { domain: string; selector: string }) => store.writes.removeDkimKey(key),
	};
}

interface NewKey {
	domain: string;
	selector: string;
	source: { type: StoredDkimKey['type'] } | { pem: string };
}

function fromPem(pem: string) {
	const parsed = parseKey(pem);
	if (parsed.kind === 'key') return parsed.material;
	throw new UsageError(`--key-file: ${parsed.message}`, {
		hint: 'omit --key-file to generate a key',
	});
}

function toDkimKey(stored: StoredDkimKey) {
	const { domain, selector, type, created_at } = stored;
	const name = recordNameOf(stored);
	const value = recordOf(stored);
	return {
		domain,
		selector,
		type,
		date_created: formatDateTime(created_at),
		dns_name: name,
		dns_value: value,
		dns_record: zoneLineOf(name, value),
	};
}

export function localQueue({ store, clock }: { store: Store; clock: Clock }) {
	return {
		stats: async () => toStats(await store.reads.queueState({ now: clock.now() })),
		keepRate: (campaign: Uuid, rate: string) => store.writes.keepCampaignRate({ campaign, rate }),
		hasWorker: () => store.reads.hasWorker({ now: clock.now() }),
		waiting: async () => {
			const { queued = 0, leased = 0, deferred = 0 } = await store.reads.countWaiting();
			return { queued, leased, deferred, next: await store.reads.nextDue({ scope: null }) };
		},
		nextDue: (campaign: Uuid | null) =>
			store.reads.nextDue({ scope: campaign === null ? null : { campaign } }),
		pause: async (reason: string | null) =>
			toPause(await store.queue.pause({ kind: 'manual', reason, retry_at: null, now: clock.now() })),
		resume: () => store.queue.resume({ kinds: ['manual', 'fault', 'refusal'], retry_at: clock.now() }),
	};
}

/**
 * `paused` is null if the queue is not paused. A worker's `role` is null if its process has ended. `limits` has the
 * limits that delay messages; the limit that delays the most messages comes first.
 */
function toStats(state: QueueState) {
	return {
		paused: firstPause(state.pauses),
		messages: state.messages,
		due: state.due,
		held: state.held,
		oldest: timeOf(state.oldest_at),
		next_due: timeOf(state.next_due_at),
		workers: state.workers.map(({ heard_at, ...worker }) => ({ ...worker, heard: timeOf(heard_at) })),
		deferred: state.deferred.map(({ domain, messages, next_due_at, last_reply }) => ({
			domain,
			messages,
			next_due: formatDateTime(next_due_at),
			last_reply,
		})),
		limits: state.limits.map(({ next_at, last_at, ...limit }) => ({
			...limit,
			next: formatDateTime(next_at),
			last: formatDateTime(last_at),
		})),
		replies: state.replies,
	};
}

function firstPause([paused]: readonly QueuePause[]) {
	return paused === undefined || paused.kind === 'refusal' ? null : toPause(paused);
}

function toPause({ kind, reason, since, retry_at, faults }: QueuePause) {
	const shown = kind === 'manual' ? ('manual' as const) : ('fault' as const);
	return { kind: shown, reason, since: formatDateTime(since), retry_at: timeOf(retry_at), faults };
}

function timeOf(at: Micros | null): string | null {
	return at === null ? null : formatDateTime(at);
}

const nowhere: Sizes = {
	...{ messages: 0, events: 0, bodies: 0, links: 0, subscribers: 0, figures: 0, other: 0, free: 0 },
	is_estimate: false,
};

export async function localStatus(parts: Pick<LocalParts, 'store' | 'clock' | 'path'>) {
	const { reads } = parts.store;
	const now = parts.clock.now();
	const [{ stopped_webhooks, ...status }, sizes, settings, values, senders, pauses, keys] = await Promise.all(
		[
			reads.status(),
			reads.sizes({}),
			readSettings(parts.store),
			reads.getSettings(),
			reads.pageSenders({ page: 1, page_size: 1 }),
			reads.queuePauses(),
			reads.listDkimKeys(),
		],
	);
	const { keep_messages = null, keep_events = null, keep_bodies = null } = values;
	const isSet = (keep_messages ?? keep_events ?? keep_bodies) !== null;
	const frees = await reads.foreseeRetention({ values: isSet ? values : proposedRetention, now });
	const limits = Object.entries(values).filter(([name]) => Object.hasOwn(limitSettings, name));
	const isThere = !isMissingFile(parts.path);
	return {
		path: parts.path,
		...status,
		...(!isThere && { size_bytes: 0 }),
		senders: senders.count,
		smtp_url: settings.smtpUrl,
		public_url: settings.publicUrl,
		time_zone: settings.timeZone,
		paused: firstPause(pauses),
		bounce_address: settings.bounceAddress,
		verp: settings.bounceAddress !== null,
		dkim_domains: [...new Set(keys.map(({ domain }) => domain))],
		limits: Object.fromEntries(limits),
		webhooks_stopped: stopped_webhooks.map(({ id, url, stopped_at }) => ({
			id,
			url: withoutSecrets(url),
			since: formatDateTime(stopped_at),
		})),
		size: isThere ? sizes : nowhere,
		retention: { keep_messages, keep_events, keep_bodies, frees },
	};
}
