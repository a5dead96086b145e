import type { Micros } from '../../api/datetime.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { type Firsts, figureMoves, isReading, isTooSoon } from '../../engine/rules/outcomes.js';
import { erasedAddress, suppressedList, type UnsubscribeScope } from '../../engine/rules/subscribers.js';
import type { TrackedEvent } from '../store.js';
import { type BouncedMessage, createTally, type Tally } from './figures/tally.js';
import { cancelMessage } from './messages/actions.js';
import { type Hook, type NoticedEvent, Notices } from './notifications.js';
import { type Recipients, readRecipients } from './recipients.js';
import { flag, type Insertion, type Sql } from './sql.js';
import { unsubscribeScope } from './suppressions.js';

interface Receiver {
	uuid: Uuid;
	to_key: string;
	list_id: number | null;
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

interface Recorded {
	event: TrackedEvent;
	receiver: Receiver;
	message: TrackedRow | null;
	isFirst: boolean;
}

/** Bounces and unsubscriptions keep their order, because several may concern the same person. */
export async function recordEvents(sql: Sql, events: readonly TrackedEvent[]): Promise<void> {
	if (events.length === 0) return;
	const others = events.filter((event) => !isReading(event));
	const [messages, old, counting, scope] = await sql.together([
		() => findTracked(sql, events),
		() => findOldOnes(sql, others),
		() => openCounting(sql, uuidsOf(events)),
		async () => (others.length === 0 ? 'list' : await unsubscribeScope(sql)),
	]);
	const changes: Recorded[] = [];
	const rows: Parameters<Sql['writeAll']>[1][number][] = [];
	for (const reported of [...events.filter(isReading), ...others]) {
		const message = messages.get(reported.message);
		const receiver = old.get(reported.message);
		if (message === undefined) {
			if (receiver !== undefined && reported.type === 'UNSUBSCRIBED')
				changes.push({ event: reported, receiver, message: null, isFirst: false });
			continue;
		}
		// Erased people get no events, even when someone follows an old link.
		if (message.to_key === erasedAddress) continue;
		const event = { ...reported, machine: reported.machine || isTooSoon(message, reported) };
		const isFirst = counting.count(message, event);
		rows.push([
			...[message.id, event.type, event.at, event.link, flag(event.machine)],
			...[event.ip, event.user_agent, event.url, event.smtp_code, event.diagnostic],
		]);
		if (!isReading(event)) changes.push({ event, receiver: message, message, isFirst });
	}
	sql.writeAll(intoEvents, rows);
	await sql.together([
		async () => {
			if (changes.length === 0) return;
			const recipients = await readRecipients(sql, changes.flatMap(addressesOf));
			for (const change of changes) changeRecipient(sql, recipients, scope, change);
			recipients.write();
		},
		() => counting.notices.write(),
	]);
	counting.write();
}

function uuidsOf(events: readonly TrackedEvent[]): Uuid[] {
	const [first, ...more] = events;
	if (first !== undefined && more.length === 0) return [first.message];
	return [...new Set(events.map(({ message }) => message))].sort();
}

/**
 * `list_id` is null if the list was deleted or the mail had no list. An unsubscription then applies to all lists.
 * `moved_to`: the subscriber's current address.
 */
function receiver(row: string): string {
	return `${row}.to_key, (SELECT l.id FROM lists l WHERE l.id = ${row}.list_id) AS list_id,
		(SELECT p.email_key FROM subscribers p WHERE p.id = ${row}.subscriber_id) AS moved_to`;
}

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
		{ message: 'TEXT' },
		uuidsOf(events).map((uuid) => [uuid]),
	);
	return new Map(rows.map((row) => [row.uuid, row]));
}

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
	conflict: '',
};

function addressesOf({ event, receiver: { to_key, moved_to } }: Recorded): string[] {
	return event.type === 'UNSUBSCRIBED' ? [...new Set([to_key, moved_to ?? to_key])] : [to_key];
}

function changeRecipient(sql: Sql, recipients: Recipients, scope: UnsubscribeScope, change: Recorded): void {
	const { event, receiver, message, isFirst } = change;
	const { at: now } = event;
	const address = receiver.to_key;
	if (event.type === 'UNSUBSCRIBED') {
		// Do not skip a repeated unsubscription, because the person may have been subscribed again in between.
		const wanted = event.from_all_lists === true ? 'all' : scope;
		const list_id = suppressedList('UNSUBSCRIBED', receiver.list_id, wanted);
		for (const address of addressesOf(change))
			recipients.stop({ address, list_id, reason: 'UNSUBSCRIBED', source: 'RECIPIENT', now });
	} else if (event.type === 'HARDBOUNCED') {
		recipients.stop({ address, list_id: null, reason: 'HARDBOUNCED', source: 'BOUNCE', now });
		// A bounce report may arrive while a retry waits.
		if (message?.state === 'deferred' || message?.state === 'queued') {
			cancelMessage(sql, message.id, null);
			message.state = 'canceled';
		}
	} else if (event.type === 'SOFTBOUNCED' && isFirst) recipients.softBounce(address, now);
}

interface CountedMessage {
	id: number;
	tag: string | null;
	campaign: Uuid | null;
	to_key: string;
	sent_at: Micros | null;
	content_sha256?: string;
}

interface FirstRow {
	message_id: number;
	type: string;
	link: number;
	machine: number;
	first_at: Micros;
	count: number;
}

const noLink = -1;

export const noVisit = { link: null, machine: false, ip: null, user_agent: null, url: null } as const;

export class Counting {
	readonly tally: Tally;
	readonly notices: Notices;
	readonly #sql: Sql;
	readonly #rows = new Map<number, FirstRow[]>();
	readonly #changed = new Set<FirstRow>();

	constructor(sql: Sql, tally: Tally, notices: Notices, stored: readonly FirstRow[]) {
		this.#sql = sql;
		this.tally = tally;
		this.notices = notices;
		for (const row of stored) this.#of(row.message_id).push(row);
	}

	/**
	 * Returns true if this is the message's first event of its type. Webhooks get the first event of each type and
	 * link, separately for people and bots.
	 */
	count(message: CountedMessage, event: NoticedEvent): boolean {
		const { type, at } = event;
		const own = this.#of(message.id);
		const firsts = firstsOf(own, event);
		const before = bouncedOf(message, own);
		for (const { audience, from, to } of figureMoves(firsts, event)) {
			const figure = { campaign: message.campaign, type, audience };
			if (from !== null) this.tally.add({ ...figure, at: from, by: -1 });
			this.tally.add({ ...figure, at: to });
		}
		const link = event.link ?? noLink;
		const machine = flag(event.machine);
		const known = own.find((row) => row.type === type && row.link === link && row.machine === machine);
		const row = known ?? { message_id: message.id, type, link, machine, first_at: at, count: 0 };
		if (known === undefined) {
			own.push(row);
			this.notices.add(message.id, event);
		}
		row.first_at = Math.min(row.first_at, at);
		row.count += 1;
		this.#changed.add(row);
		countDetails(this.tally, message, event, firsts);
		if (isBounce(event)) this.tally.moveBounced(before, bouncedOf(message, own));
		return firsts.all === null;
	}

	write(): void {
		const values = [...this.#changed].map((row) => [
			...[row.message_id, row.type, row.link, row.machine],
			...[row.first_at, row.count],
		]);
		this.#sql.writeAll(intoFirsts, values);
		this.#changed.clear();
		this.tally.write();
	}

	#of(message: number): FirstRow[] {
		const known = this.#rows.get(message) ?? [];
		this.#rows.set(message, known);
		return known;
	}
}

export async function openCounting(sql: Sql, messages: readonly Uuid[]): Promise<Counting> {
	const hooks = 'SELECT id, type FROM webhooks WHERE stopped_at IS NULL ORDER BY id';
	const [tally, running, stored] = await sql.together([
		() => createTally(sql),
		async () => (messages.length === 0 ? [] : await sql.all<Hook>(hooks)),
		() =>
			sql.allOf<FirstRow>(
				`SELECT f.message_id, f.type, f.link, f.machine, f.first_at, f.count
				FROM messages m
				JOIN message_firsts f ON f.message_id = m.id
				WHERE m.uuid = ?`,
				{ message: 'TEXT' },
				messages.map((message) => [message]),
			),
	]);
	return new Counting(sql, tally, new Notices(sql, running), stored);
}

const intoFirsts: Insertion = {
	table: 'message_firsts',
	columns: {
		...{ message_id: 'BIGINT', type: 'TEXT', link: 'BIGINT', machine: 'BIGINT' },
		...{ first_at: 'BIGINT', count: 'BIGINT' },
	},
	conflict: `ON CONFLICT (message_id, type, link, machine) DO UPDATE
		SET first_at = excluded.first_at, count = excluded.count`,
};

interface LinkFirsts extends Firsts {
	of_link: number;
	human_of_link: number;
}

function firstsOf(rows: readonly FirstRow[], { type, link }: NoticedEvent): LinkFirsts {
	const firsts = { all: null as Micros | null, human: null as Micros | null, of_link: 0, human_of_link: 0 };
	for (const row of rows) {
		if (row.type !== type) continue;
		firsts.all = Math.min(firsts.all ?? row.first_at, row.first_at);
		if (row.link === link) firsts.of_link += 1;
		if (row.machine === 1) continue;
		firsts.human = Math.min(firsts.human ?? row.first_at, row.first_at);
		if (row.link === link) firsts.human_of_link += 1;
	}
	return firsts;
}

function bouncedOf({ tag, campaign, sent_at: sent }: CountedMessage, rows: readonly FirstRow[]) {
	const bounced: BouncedMessage = { tag, campaign, sent, soft: null, hard: null };
	for (const { type, first_at } of rows) {
		const kind = type === 'SOFTBOUNCED' ? 'soft' : type === 'HARDBOUNCED' ? 'hard' : null;
		if (kind !== null) bounced[kind] = Math.min(bounced[kind] ?? first_at, first_at);
	}
	return bounced;
}

function isBounce({ type }: NoticedEvent): boolean {
	return type === 'SOFTBOUNCED' || type === 'HARDBOUNCED';
}

function countDetails(
	tally: Tally,
	{ campaign, content_sha256: content, to_key: address }: CountedMessage,
	event: NoticedEvent,
	firsts: LinkFirsts,
): void {
	const { type, at, link, machine, smtp_code } = event;
	if (isBounce(event)) {
		if (firsts.all === null) tally.addBounce({ at, campaign, type }, address, smtp_code ?? null);
	} else if (type === 'REDIRECTED' && campaign !== null && link !== null && content !== undefined) {
		tally.addClick([campaign, content, link, 'all'], firsts.of_link === 0 ? 1 : 0);
		if (!machine) tally.addClick([campaign, content, link, 'human'], firsts.human_of_link === 0 ? 1 : 0);
	}
}
