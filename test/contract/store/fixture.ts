/** An empty store, and shortcuts for common commands. */

import type { MessageScope } from '../../../src/api/capabilities.js';
import type { Clock, Micros } from '../../../src/api/datetime.js';
import type { Subscriber } from '../../../src/api/records.js';
import type { RecipientRow } from '../../../src/engine/rules/campaign-rows.js';
import type { DeliveryOutcome, Reply } from '../../../src/engine/rules/outcomes.js';
import type { CampaignAck, OpenCampaign, Submission } from '../../../src/store/campaigns.js';
import type { Leased } from '../../../src/store/queue.js';
import type { Store, TrackedEvent, Written } from '../../../src/store/store.js';

/** Opens an empty store; the caller deletes its database after the test. */
export type OpenEmpty = (clock: Clock) => Promise<Store>;

/** 2026-03-10T12:00:00Z */
export const noon: Micros = Date.UTC(2026, 2, 10, 12) * 1000;
export const hour: Micros = 3_600_000_000;
export const day: Micros = 24 * hour;
export const fixedClock: Clock = { now: () => noon };

export const accepted250: Reply = { phase: 'answer', code: 250, enhanced: '2.0.0', text: 'Ok: queued' };
export const unknown550: Reply = { phase: 'rcpt', code: 550, enhanced: '5.1.1', text: 'No such user' };
export const busy451: Reply = { phase: 'rcpt', code: 451, enhanced: '4.7.1', text: 'Try again later' };

export function recordOf<T>(outcome: Written<T> | { kind: 'key_conflict' }): T {
	if (outcome.kind !== 'written') throw new Error(`expected a record, got ${JSON.stringify(outcome)}`);
	return outcome.record;
}

export async function newList(store: Store, name = 'News'): Promise<number> {
	const input = { name, email_reason: `You read ${name}` };
	return recordOf(await store.writes.createList({ input, now: noon })).id;
}

export async function newField(store: Store, variable: string): Promise<number> {
	return recordOf(await store.writes.createField({ input: { variable, name: variable }, now: noon })).id;
}

export async function newSubscriber(
	store: Store,
	list_id: number,
	email: string,
	more: { name?: string; meta?: Record<string, string>; is_active?: boolean } = {},
): Promise<Subscriber> {
	return recordOf(await store.writes.createSubscriber({ list_id, input: { email, ...more }, now: noon }));
}

export async function verify(store: Store, email = 'desk@example.org'): Promise<void> {
	await store.writes.createSender({ from_email: email, email_key: email, now: noon });
}

let lastId = 0;

export function newUuid(): string {
	lastId += 1;
	return `00000000-0000-4000-8000-${String(lastId).padStart(12, '0')}`;
}

export const plainContent = { subject: 'Hi', text: 'Hello', html: null, disable_inline: false };

export function submissionOf(to: readonly string[], more: Partial<Submission> = {}): Submission {
	return {
		id: newUuid(),
		type: 'TRANSACTIONAL',
		envelope: { from: 'Desk <desk@example.org>', reply_to: [], cc: [], bcc: [], headers: {} },
		from_key: 'desk@example.org',
		tag: null,
		content: plainContent,
		content_sha256: 'hash of plain content',
		variables: [],
		context: {},
		list_id: null,
		campaign: null,
		recipients: to.map((address) => ({ id: newUuid(), to: address, to_key: address.toLowerCase() })),
		now: noon,
		...more,
	};
}

/** Accepts a submission, and throws if it is refused. */
export async function send(store: Store, to: readonly string[], more: Partial<Submission> = {}) {
	const outcome = await store.writes.acceptSubmission({ ...submissionOf(to, more), key: null });
	if (outcome.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(outcome)}`);
	return outcome;
}

type ContentCampaign = OpenCampaign & { submission: NonNullable<OpenCampaign['submission']> };

export function campaignOf(key: string, more: Partial<ContentCampaign['submission']> = {}): ContentCampaign {
	const { recipients: _, campaign: __, ...submission } = submissionOf([], { type: 'BULK' });
	return {
		id: newUuid(),
		key,
		spec: { from: 'desk@example.org', type: 'BULK', subject: 'Hi', text_body: 'Hello' },
		strict_vars: false,
		submission: { ...submission, ...more },
		now: noon,
	};
}

export function put(
	store: Store,
	campaign: string,
	first: number,
	recipients: readonly (string | RecipientRow)[],
): Promise<CampaignAck> {
	const rows = recipients.map((one) => (typeof one === 'string' ? recipientOf(one) : one));
	return store.writes.putCampaignBatch({ campaign, first, rows, now: noon });
}

export function recipientOf(to: string, context: Readonly<Record<string, string>> = {}): RecipientRow {
	return { kind: 'recipient', to, to_key: to.toLowerCase(), context };
}

export async function releasedCampaign(store: Store, list_id: number, key: string): Promise<string> {
	const command = campaignOf(key);
	await store.writes.openCampaign(command);
	const added = await store.writes.addListToCampaign({ campaign: command.id, list_id, now: noon });
	const expect_count = added?.counts.staged ?? 0;
	await store.writes.releaseCampaign({ campaign: command.id, expect_count, now: noon });
	return command.id;
}

export function lease(
	store: Store,
	more: { now?: Micros; max?: number; scope?: MessageScope | null; owner?: string } = {},
): Promise<Leased[]> {
	const now = more.now ?? noon;
	const { owner = 'worker', max = 100, scope = null } = more;
	return store.queue.lease({ owner, now, until: now + hour, max, scope });
}

export async function deliver(store: Store, outcome: DeliveryOutcome, at: Micros = noon): Promise<string> {
	const [leased] = await lease(store, { now: at, max: 1 });
	if (leased === undefined) throw new Error('nothing to deliver');
	await store.queue.settle({ settlements: [{ message: leased.message, fence: leased.fence, at, outcome }] });
	return leased.message;
}

export async function stateOf(store: Store, id: string): Promise<string | undefined> {
	return (await store.reads.getMessage({ id }))?.message.state;
}

export async function messageIds(store: Store): Promise<string[]> {
	const { results } = await store.reads.pageMessages({ page: 1, page_size: 1000, filter: {} });
	return results.map(({ id }) => id);
}

export function eventOf(message: string, type: TrackedEvent['type'], more: Partial<TrackedEvent> = {}) {
	const silent = { link: null, ip: null, user_agent: null, url: null, smtp_code: null, diagnostic: null };
	return { message, type, at: noon, machine: false, ...silent, ...more };
}

/** Returns `type day count` of all figures, in order. */
export async function figures(
	store: Store,
	more: { campaign?: string | null; tag?: string | null; human?: boolean } = {},
): Promise<string[]> {
	const { campaign = null, tag = null, human = false } = more;
	const range = { from: '2000-01-01', to: '2100-01-01' };
	const { daily } = await store.reads.reportFigures({ ...range, campaign, tag, human });
	return daily.map((row) => `${row.day} ${row.type} ${row.count}`).sort();
}
