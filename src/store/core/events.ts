/** Events after a message was sent: what they change for the recipient. `counted-events.ts` counts them. */

import type { Micros } from '../../api/datetime.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import { isTooSoon } from '../../engine/rules/events.js';
import { suppressedList, type UnsubscribeScope } from '../../engine/rules/suppressions.js';
import type { Operations } from '../operations.js';
import type { TrackedEvent } from '../store.js';
import { type Counting, openCounting } from './counted-events.js';
import { cancelMessage } from './messages/actions.js';
import { type Recipients, readRecipients } from './recipients.js';
import { flag } from './rows.js';
import type { Insertion, Sql } from './sql.js';
import { unsubscribeScope } from './suppressions.js';

/** Who receives a message, as far as an unsubscription needs it. */
interface Receiver {
	uuid: Uuid;
	to_key: string;
	/** The list of the message; null: none, or it is deleted. */
	list_id: number | null;
	/** The address of its subscriber now; null: there is none. */
	moved_to: string | null;
}

interface TrackedRow extends Receiver {
	id: number;
	tag: string | null;
	campaign: Uuid | null;
	content_sha256: string;
	state: MessageState;
	sent_at: Micros | null;
}

/** Runs in one transaction of the caller. */
export function createEvents(sql: Sql) {
	return {
		recordEvents: ({ events }) => recordEvents(sql, events),
	} satisfies Partial<Operations>;
}

/** It changes nothing but the counts of its message. */
export function isReading({ type }: TrackedEvent): boolean {
	return type === 'OPENED' || type === 'REDIRECTED';
}

/**
 * Records events with their effects; of an unknown message only that a person unsubscribes. Opens and clicks come first,
 * and else the order is that of the events: others may be of one person.
 */
export async function recordEvents(sql: Sql, events: readonly TrackedEvent[]): Promise<void> {
	if (events.length === 0) return;
	const others = events.filter((event) => !isReading(event));
	const [messages, old, counting, scope] = await sql.together([
		() => findTracked(sql, events),
		() => findOldOnes(sql, others),
		// Behind the locks of the messages.
		() => openCounting(sql, uuidsOf(events)),
		async () => (others.length === 0 ? 'list' : await unsubscribeScope(sql)),
	]);
	const recorded: Recorded[] = [];
	const changes: Change[] = [];
	for (const event of [...events.filter(isReading), ...others]) {
		const message = messages.get(event.message);
		const receiver = old.get(event.message);
		if (message === undefined) {
			if (receiver !== undefined && event.type === 'UNSUBSCRIBED') changes.push({ event, receiver });
			continue;
		}
		// Nothing is recorded of an erased person, even when an old link is followed.
		if (message.to_key === erasedAddress) continue;
		const one = countOne(counting, message, event);
		recorded.push(one);
		if (!isReading(event)) changes.push(one);
	}
	writeEvents(sql, recorded);
	await sql.together([() => changeRecipients(sql, changes, scope), () => counting.notices.write()]);
	counting.write();
}

async function changeRecipients(
	sql: Sql,
	changes: readonly Change[],
	scope: UnsubscribeScope,
): Promise<void> {
	if (changes.length === 0) return;
	const recipients = await readRecipients(sql, changes.flatMap(addressesOf));
	for (const change of changes) changeRecipient(sql, { recipients, scope }, change);
	recipients.write();
}

/** An event with its message. */
interface Recorded {
	event: TrackedEvent;
	message: TrackedRow;
	isFirst: boolean;
}

/** By a link in a message that is deleted, with final figures: unsubscribing goes on working. */
interface LateUnsubscription {
	event: TrackedEvent;
	receiver: Receiver;
}

type Change = Recorded | LateUnsubscription;

function countOne(counting: Counting, message: TrackedRow, reported: TrackedEvent): Recorded {
	const event = { ...reported, machine: reported.machine || isTooSoon(message, reported) };
	return { event, message, isFirst: counting.count(message, event) };
}

const asked = { message: 'TEXT' } as const;

/** In the order in which rows of messages are locked. */
function uuidsOf(events: readonly TrackedEvent[]): Uuid[] {
	const [first, ...more] = events;
	if (first !== undefined && more.length === 0) return [first.message];
	return [...new Set(events.map(({ message }) => message))].sort();
}

/** Columns of a `Receiver`, of `row`. */
function receiver(row: string): string {
	return `${row}.to_key, (SELECT l.id FROM lists l WHERE l.id = ${row}.list_id) AS list_id,
		(SELECT p.email_key FROM subscribers p WHERE p.id = ${row}.subscriber_id) AS moved_to`;
}

/** Locks the messages, in one order. */
async function findTracked(
	sql: Sql,
	events: readonly TrackedEvent[],
): Promise<ReadonlyMap<Uuid, TrackedRow>> {
	const isOnlyRead = events.every(isReading);
	const rows = await sql.allOf<TrackedRow>(
		`SELECT m.uuid, m.id, ${isOnlyRead ? 'm.to_key, NULL AS list_id, NULL AS moved_to' : receiver('m')},
			s.tag, s.campaign, s.content_sha256, m.state, m.sent_at
		FROM messages m
		JOIN submissions s ON s.seq = m.submission_seq
		WHERE m.uuid = ?
		${sql.dialect.lockRows('m')}`,
		asked,
		uuidsOf(events).map((uuid) => [uuid]),
	);
	return new Map(rows.map((row) => [row.uuid, row]));
}

/** What is kept of messages that retention has deleted. */
async function findOldOnes(sql: Sql, events: readonly TrackedEvent[]): Promise<ReadonlyMap<Uuid, Receiver>> {
	const late = events.filter(({ type }) => type === 'UNSUBSCRIBED');
	if (late.length === 0) return new Map();
	const rows = await sql.allOf<Receiver>(
		`SELECT ? AS uuid, ${receiver('o')}
		FROM old_messages o
		WHERE o.uuid = ${sql.dialect.uuidBytes('?')}`,
		{ message: 'TEXT', same: 'TEXT' },
		uuidsOf(late).map((uuid) => [uuid, uuid]),
	);
	return new Map(rows.map((row) => [row.uuid, row]));
}

const intoEvents: Insertion = {
	table: 'events',
	columns: {
		...{ message_id: 'BIGINT', type: 'TEXT', at: 'BIGINT', link: 'BIGINT', machine: 'BIGINT' },
		...{ ip: 'TEXT', user_agent: 'TEXT', url: 'TEXT', smtp_code: 'TEXT', diagnostic: 'TEXT' },
	},
	key: 'id',
	id: 'id',
	conflict: '',
};

function writeEvents(sql: Sql, recorded: readonly Recorded[]): void {
	sql.writeAll(
		intoEvents,
		// In the order of the columns.
		recorded.map(({ event, message }) => [
			...[message.id, event.type, event.at, event.link, flag(event.machine)],
			...[event.ip, event.user_agent, event.url, event.smtp_code, event.diagnostic],
		]),
	);
}

/**
 * Both addresses where the subscriber's address has changed since: the person who followed the link leaves the list.
 */
function addressesOf(change: Change): string[] {
	const { to_key, moved_to } = 'receiver' in change ? change.receiver : change.message;
	return change.event.type === 'UNSUBSCRIBED' ? [...new Set([to_key, moved_to ?? to_key])] : [to_key];
}

function changeRecipient(
	sql: Sql,
	{ recipients, scope }: { recipients: Recipients; scope: UnsubscribeScope },
	change: Change,
): void {
	const { event } = change;
	const now = event.at;
	if (event.type === 'UNSUBSCRIBED') {
		// Each time, not only the first: the address may have been subscribed again in between.
		const { list_id } = 'receiver' in change ? change.receiver : change.message;
		const list = suppressedList('UNSUBSCRIBED', list_id, event.from_all_lists === true ? 'all' : scope);
		for (const address of addressesOf(change))
			recipients.stop({ address, list_id: list, reason: 'UNSUBSCRIBED', source: 'RECIPIENT', now });
		return;
	}
	if ('receiver' in change) return;
	const { message, isFirst } = change;
	const address = message.to_key;
	if (event.type === 'HARDBOUNCED') {
		recipients.stop({ address, list_id: null, reason: 'HARDBOUNCED', source: 'BOUNCE', now });
		stopWaiting(sql, message);
	}
	if (event.type === 'SOFTBOUNCED' && isFirst) recipients.softBounce(address, now);
}

// A report may come before the next attempt, which is then pointless.
function stopWaiting(sql: Sql, message: TrackedRow): void {
	if (message.state !== 'deferred' && message.state !== 'queued') return;
	cancelMessage(sql, message.id, null);
	message.state = 'canceled';
}
