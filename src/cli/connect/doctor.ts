import { addDays, type Clock, dayOf, isTimeZone, microsPerDay, parseDateTime } from '../../api/datetime.js';
import type { WebhookDelivery } from '../../api/deliveries.js';
import { StoreError } from '../../api/errors.js';
import type { Webhook, WireDateTime } from '../../api/records.js';
import { recordNameOf, recordOf } from '../../delivery/dkim/keys.js';
import { type EngineSettings, readSettings } from '../../engine/settings.js';
import { DatabaseMissing } from '../../store/errors.js';
import type { WrappingKey } from '../../store/keys.js';
import { inspectStore } from '../../store/open.js';
import type { Reads } from '../../store/store.js';
import { shownDatabase } from '../../store/url.js';
import type {
	DatabaseContents,
	Inspected,
	InspectedDatabase,
	InspectedSettings,
	InspectedWebhook,
	Retried,
} from '../doctor/inspection.js';
import { firstSender, smtpOf, testSmtp } from './mail.js';

export interface InspectOptions {
	clock: Clock;
	keys: readonly WrappingKey[];
	trace: ((line: string) => void) | null;
}

export function inspectLocal(url: string, options: InspectOptions): Inspected {
	try {
		const { reads, newest, clockStep, ...found } = inspectStore(url, { keys: options.keys });
		const isReadable = found.schema.found === found.schema.known;
		const contents = isReadable ? contentsOf(reads, { newest, clockStep, ...options }) : null;
		const database: InspectedDatabase = { ...found, contents };
		return { kind: 'open', path: url, database };
	} catch (error) {
		if (error instanceof StoreError)
			return { kind: 'closed', path: url, code: error.code, message: error.message };
		if (error instanceof DatabaseMissing) return { kind: 'missing', path: url };
		throw error;
	}
}

export async function inspectOnServer(url: string, options: InspectOptions): Promise<Inspected> {
	const path = shownDatabase(url);
	try {
		const { inspectPostgres } = await import('../../store/postgres/inspect.js');
		const { reads, schema, server, close } = await inspectPostgres(url, options);
		const moments = { newest: () => null, clockStep: () => null };
		const contents = schema.found === schema.known ? contentsOf(reads, { ...moments, ...options }) : null;
		return { kind: 'server', path, database: { schema, server, contents, close } };
	} catch (error) {
		if (error instanceof StoreError)
			return { kind: 'closed', path, code: error.code, message: error.message };
		if (error instanceof DatabaseMissing) return { kind: 'missing', path };
		throw error;
	}
}

/** The most senders or webhooks that are checked one by one. */
const atMost = { page: 1, page_size: 1_000 };

function contentsOf(
	reads: Reads,
	{
		newest,
		clockStep,
		clock,
		trace,
	}: InspectOptions & Pick<ReturnType<typeof inspectStore>, 'newest' | 'clockStep'>,
): DatabaseContents {
	return {
		newest: async () => newest('records and heartbeats'),
		clockStep: async () => clockStep(),
		clockAhead: () => reads.clockAhead({ now: clock.now() }),
		secrets: () => reads.secretCounts(),
		settings: async () => toInspected(await readSettings({ reads })),
		senders: async () => (await reads.pageSenders(atMost)).results.map(({ from_email }) => from_email),
		dkimKeys: async () =>
			(await reads.listDkimKeys()).map((key) => ({
				domain: key.domain,
				selector: key.selector,
				name: recordNameOf(key),
				value: recordOf(key),
			})),
		queue: () => reads.queueState({ now: clock.now() }),
		webhooks: async () => {
			const { results } = await reads.pageWebhooks(atMost);
			const stopped = new Map((await reads.stoppedWebhooks()).map((one) => [one.id, one]));
			return Promise.all(
				results.map(async (webhook) => {
					const stop = stopped.get(webhook.id);
					return {
						...(await inspectWebhook(reads, webhook, clock)),
						stopped: stop === undefined ? null : { since: stop.stopped_at, waiting: stop.waiting },
					};
				}),
			);
		},
		lately: () => figuresOf(reads, clock),
		testSmtp: async (signal) => {
			const settings = await readSettings({ reads });
			const first = await firstSender(reads);
			const sender = settings.bounceAddress ?? first;
			return testSmtp(smtpOf(settings, first), { trace, sender, signal });
		},
	};
}

function toInspected(settings: EngineSettings): InspectedSettings {
	const { publicUrl, timeZone, bounceAddress, smtpUrl } = settings;
	if (smtpUrl === null) return { publicUrl, timeZone, bounceAddress, smtp: null };
	const { host, port, security, user, password } = smtpOf(settings, null);
	const smtp = { host, port, security, user, hasPassword: password !== null };
	return { publicUrl, timeZone, bounceAddress, smtp };
}

async function inspectWebhook(
	reads: Reads,
	{ id, url }: Webhook,
	clock: Clock,
): Promise<Omit<InspectedWebhook, 'stopped'>> {
	const since = clock.now() - microsPerDay;
	const first = { webhook_id: id, page: 1, page_size: 1 };
	const waiting = { webhook_id: id, state: 'pending' as const, since: null, page: 1, page_size: mostTried };
	const [failed, delivered, pending] = await Promise.all([
		reads.pageDeliveries({ ...first, state: 'failed', since }),
		reads.pageDeliveries({ ...first, state: 'delivered', since }),
		reads.pageDeliveries(waiting),
	]);
	const oldest = pending.results.find(({ attempts }) => attempts > 0);
	const last = { ...first, state: 'delivered' as const, since, page: delivered.count };
	const [lastTaken] =
		oldest === undefined || delivered.count === 0 ? [] : (await reads.pageDeliveries(last)).results;
	return {
		id,
		url,
		failedLately: failed.count,
		deliveredLately: delivered.count,
		oldestRetried: oldest === undefined ? null : retried(oldest, lastTaken?.date_finished ?? null),
	};
}

const mostTried = 100;

/** `taken`: when something else was taken last. */
function retried(delivery: WebhookDelivery, taken: WireDateTime | null): Retried | null {
	const since = parseDateTime(delivery.date_created);
	if (since === null) return null;
	return {
		since,
		next: delivery.due_at === null ? null : parseDateTime(delivery.due_at),
		said: delivery.last_error ?? `answered ${delivery.last_status ?? 'nothing'}`,
		tookOthersSince: taken !== null && taken > (delivery.date_attempted ?? ''),
	};
}

async function figuresOf(reads: Reads, clock: Clock): Promise<{ attempted: number; hardBounced: number }> {
	const { timeZone } = await readSettings({ reads });
	// A zone unknown to this Node.js is reported by another check.
	const to = dayOf(clock.now(), isTimeZone(timeZone) ? timeZone : 'UTC');
	const query = { from: addDays(to, -6), to, campaign: null, tag: null, human: false };
	const { daily, attempted } = await reads.reportFigures(query);
	const bounces = daily.filter(({ type }) => type === 'HARDBOUNCED');
	return { attempted, hardBounced: bounces.reduce((sum, { count }) => sum + count, 0) };
}
