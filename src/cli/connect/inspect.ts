import { addDays, type Clock, dayOf, isTimeZone, microsPerDay, parseDateTime } from '../../api/datetime.js';
import { StoreError } from '../../api/errors.js';
import { recordNameOf, recordOf } from '../../delivery/dkim/keys.js';
import { readSettings } from '../../engine/settings.js';
import type { WrappingKey } from '../../store/maintenance.js';
import { inspectStore } from '../../store/open.js';
import type { Reads } from '../../store/operations.js';
import { isMissingFile, isPostgres } from '../../store/url.js';
import { once } from '../doctor/checks.js';
import type { SecretCount } from '../frame/connection.js';
import type { LocalTarget } from './local.js';

interface InspectOptions {
	clock: Clock;
	keys: readonly WrappingKey[];
	trace: ((line: string) => void) | null;
}

export type Contents = ReturnType<typeof contentsOf>;
export type InspectedFile = ReturnType<typeof inspectFile>;
export type InspectedServer = Awaited<ReturnType<typeof inspectServer>>;
export type Inspected = InspectedFile | InspectedServer;
export type Webhook = Awaited<ReturnType<Contents['webhooks']>>[number];

/**
 * Inspects a database without creating, migrating or writing it. `contents` is null if the schema has another version.
 * Rejects with `DatabaseMissing` and `StoreError`.
 */
export async function inspect(url: string, options: InspectOptions): Promise<Inspected> {
	return isPostgres(url) ? inspectServer(url, options) : inspectFile(url, options);
}

function inspectFile(url: string, options: InspectOptions) {
	const { reads, newest, ...found } = inspectStore(url, { keys: options.keys });
	const isReadable = found.schema.found === found.schema.known;
	return { ...found, contents: isReadable ? contentsOf(reads, { newest, ...options }) : null };
}

async function inspectServer(url: string, options: InspectOptions) {
	const { inspectPostgres } = await import('../../store/postgres/inspect.js');
	const { reads, ...found } = await inspectPostgres(url, options);
	const isReadable = found.schema.found === found.schema.known;
	return { ...found, contents: isReadable ? contentsOf(reads, { newest: () => null, ...options }) : null };
}

const atMost = { page: 1, page_size: 1_000 };

type Moments = Pick<ReturnType<typeof inspectStore>, 'newest'>;

function contentsOf(reads: Reads, { newest, clock, trace }: InspectOptions & Moments) {
	const now = () => clock.now();
	const settings = once(() => readSettings({ reads }));
	return {
		newest: async () => newest('records and heartbeats'),
		clockAhead: () => reads.clockAhead({ now: now() }),
		secrets: () => reads.secretCounts(),
		settings,
		smtp: async () => {
			const set = await settings();
			if (set.smtpUrl === null) return null;
			const { smtpOf } = await import('./mail.js');
			return smtpOf(set, null);
		},
		senders: once(async () => (await reads.pageSenders(atMost)).results.map(({ from_email }) => from_email)),
		dkimKeys: once(async () =>
			(await reads.listDkimKeys()).map((key) => ({
				domain: key.domain,
				name: recordNameOf(key),
				value: recordOf(key),
			})),
		),
		queue: once(() => reads.queueState({ now: now() })),
		webhooks: async () => {
			const { results } = await reads.pageWebhooks(atMost);
			const stopped = new Map((await reads.stoppedWebhooks()).map((one) => [one.id, one]));
			return Promise.all(
				results.map(async ({ id, url }) => ({
					...{ id, url, stopped: stopped.get(id) ?? null },
					...(await figuresOfWebhook(reads, id, now() - microsPerDay)),
				})),
			);
		},
		lately: async () => {
			const { timeZone } = await settings();
			// Use UTC if this Node.js does not know the zone; another check reports the zone.
			const to = dayOf(now(), isTimeZone(timeZone) ? timeZone : 'UTC');
			const query = { from: addDays(to, -6), to, campaign: null, tag: null, human: false };
			const { daily, attempted } = await reads.reportFigures(query);
			const bounces = daily.filter(({ type }) => type === 'HARDBOUNCED');
			return { attempted, hardBounced: bounces.reduce((sum, { count }) => sum + count, 0) };
		},
		testSmtp: async (signal: AbortSignal) => {
			const [set, { firstSender, smtpOf, testSmtp }] = await Promise.all([settings(), import('./mail.js')]);
			const first = await firstSender(reads);
			return testSmtp(smtpOf(set, first), { trace, sender: set.bounceAddress ?? first, signal });
		},
	};
}

/**
 * `retried` is the oldest delivery that waits for a retry. `tookOthersSince`: the webhook accepted another delivery
 * after the last attempt of `retried`.
 */
async function figuresOfWebhook(reads: Reads, webhook_id: number, since: number) {
	const first = { webhook_id, page: 1, page_size: 1 };
	const [failed, delivered, pending] = await Promise.all([
		reads.pageDeliveries({ ...first, state: 'failed', since }),
		reads.pageDeliveries({ ...first, state: 'delivered', since }),
		reads.pageDeliveries({ ...first, state: 'pending', since: null, page_size: 100 }),
	]);
	const oldest = pending.results.find(({ attempts }) => attempts > 0);
	const figures = { failedLately: failed.count, deliveredLately: delivered.count };
	if (oldest === undefined) return { ...figures, retried: null };
	const [last] =
		delivered.count === 0
			? []
			: (await reads.pageDeliveries({ ...first, state: 'delivered', since, page: delivered.count })).results;
	const retried = {
		since: parseDateTime(oldest.date_created) ?? 0,
		next: oldest.due_at === null ? null : parseDateTime(oldest.due_at),
		said: oldest.last_error ?? `answered ${oldest.last_status ?? 'nothing'}`,
		tookOthersSince: (last?.date_finished ?? '') > (oldest.date_attempted ?? ''),
	};
	return { ...figures, retried };
}

/**
 * Checks the whole file. Returns descriptions of a few rows whose parent is missing. Throws `DatabaseMissing`, or
 * `StoreError` with SQLite's own words if the file is damaged.
 */
export function readWhole(url: string): string[] {
	if (isPostgres(url)) return [];
	const found = inspectStore(url);
	try {
		const damage = found.findDamage('whole');
		if (damage.length > 0) throw new StoreError('damaged', `${url} is damaged: ${damage.join('; ')}`);
		return found.findOrphans();
	} finally {
		found.close();
	}
}

/**
 * Returns an empty array if the default database is missing. Never creates, migrates or writes a database. Rejects with
 * `DatabaseMissing`, `UnsupportedDatabase` and `StoreError`.
 */
export async function countSecrets({ url, create }: LocalTarget, clock: Clock): Promise<SecretCount[]> {
	const isServer = isPostgres(url);
	if (!isServer && create && isMissingFile(url)) return [];
	const found = isServer
		? await (await import('../../store/postgres/inspect.js')).inspectPostgres(url, { keys: [], clock })
		: inspectStore(url);
	try {
		return await found.reads.secretCounts();
	} finally {
		await found.close();
	}
}
