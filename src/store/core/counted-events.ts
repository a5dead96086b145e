/**
 * What events add to counts and figures. A message counts once for each type of event; the first of each link and kind of
 * reader is told to webhooks. What was counted of the messages is read once, and written as a set.
 */
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { type Firsts, figureMoves } from '../../engine/rules/events.js';
import { type BouncedMessage, createTally, type Tally } from './figures/tally.js';
import { flag } from './rows.js';
import type { Insertion, Sql } from './sql.js';
import { type NoticedEvent, type Notices, noNotices, openNotices } from './webhooks/notices.js';

export interface CountedEvent extends NoticedEvent {
	link: number | null;
}

/** The message of an event. Clicks are counted by link where its content is given. */
export interface CountedMessage {
	id: number;
	tag: string | null;
	campaign: Uuid | null;
	to_key: string;
	sent_at: Micros | null;
	content_sha256?: string;
}

/** The counts of one operation. */
export interface Counting {
	readonly tally: Tally;
	/** Webhook deliveries for the counted events. */
	readonly notices: Notices;
	/**
	 * True for the first event of its type that this message had. Webhooks receive the first of each (type, link) by
	 * machine and by human. Later events change only an internal count.
	 */
	count(message: CountedMessage, event: CountedEvent): boolean;
	/** Counts of messages, and figures. */
	write(): void;
}

interface FirstRow {
	message_id: number;
	type: string;
	/** -1: none. */
	link: number;
	machine: number;
	first_at: Micros;
	count: number;
}

const noLink = -1;

/** For one operation, of these messages, whose rows are locked before. One round trip, with what is asked beside it. */
export async function openCounting(sql: Sql, messages: readonly Uuid[]): Promise<Counting> {
	const [tally, notices, stored] = await sql.together([
		() => createTally(sql),
		async () => (messages.length === 0 ? noNotices : await openNotices(sql)),
		async () => (messages.length === 0 ? [] : await readFirsts(sql, messages)),
	]);
	const rows = new Map<number, FirstRow[]>();
	const rowsOf = (message: number) => {
		const known = rows.get(message) ?? [];
		rows.set(message, known);
		return known;
	};
	for (const row of stored) rowsOf(row.message_id).push(row);
	const changed = new Set<FirstRow>();
	return {
		tally,
		notices,
		count: (message, event) => {
			const { type, at } = event;
			const own = rowsOf(message.id);
			const firsts = firstsOf(own, event);
			const before = bouncedOf(message, own);
			for (const { audience, from, to } of figureMoves(firsts, event)) {
				const figure = { campaign: message.campaign, type, audience };
				if (from !== null) tally.add({ ...figure, at: from, by: -1 });
				tally.add({ ...figure, at: to });
			}
			const link = event.link ?? noLink;
			const machine = flag(event.machine);
			const known = own.find((row) => row.type === type && row.link === link && row.machine === machine);
			const row = known ?? { message_id: message.id, type, link, machine, first_at: at, count: 0 };
			if (known === undefined) {
				own.push(row);
				notices.add(message.id, event);
			}
			row.first_at = Math.min(row.first_at, at);
			row.count += 1;
			changed.add(row);
			countDetails(tally, message, event, firsts);
			if (isBounce(event)) tally.moveBounced(before, bouncedOf(message, own));
			return firsts.all === null;
		},
		write: () => {
			// In the order of the columns.
			const values = [...changed].map((row) => [
				...[row.message_id, row.type, row.link, row.machine],
				...[row.first_at, row.count],
			]);
			sql.writeAll(intoFirsts, values);
			changed.clear();
			tally.write();
		},
	};
}

async function readFirsts(sql: Sql, messages: readonly Uuid[]): Promise<FirstRow[]> {
	return await sql.allOf<FirstRow>(
		`SELECT f.message_id, f.type, f.link, f.machine, f.first_at, f.count
		FROM messages m
		JOIN message_firsts f ON f.message_id = m.id
		WHERE m.uuid = ?`,
		{ message: 'TEXT' },
		messages.map((message) => [message]),
	);
}

const intoFirsts: Insertion = {
	table: 'message_firsts',
	columns: {
		...{ message_id: 'BIGINT', type: 'TEXT', link: 'BIGINT', machine: 'BIGINT' },
		...{ first_at: 'BIGINT', count: 'BIGINT' },
	},
	key: 'message_id',
	id: 'message_id',
	conflict: `ON CONFLICT (message_id, type, link, machine) DO UPDATE
		SET first_at = excluded.first_at, count = excluded.count`,
};

/** The firsts of one type, and how many of them are of the event's link. */
interface LinkFirsts extends Firsts {
	of_link: number;
	human_of_link: number;
}

function firstsOf(rows: readonly FirstRow[], { type, link }: CountedEvent): LinkFirsts {
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

/** When it was sent and first bounced. */
function bouncedOf(
	{ tag, campaign, sent_at: sent }: CountedMessage,
	rows: readonly FirstRow[],
): BouncedMessage {
	const first = (type: string) =>
		rows.reduce<Micros | null>(
			(first, row) => (row.type === type ? Math.min(first ?? row.first_at, row.first_at) : first),
			null,
		);
	return { tag, campaign, sent, soft: first('SOFTBOUNCED'), hard: first('HARDBOUNCED') };
}

function isBounce({ type }: CountedEvent): boolean {
	return type === 'SOFTBOUNCED' || type === 'HARDBOUNCED';
}

function countDetails(
	tally: Tally,
	{ campaign, content_sha256: content, to_key: address }: CountedMessage,
	event: CountedEvent,
	firsts: LinkFirsts,
): void {
	const { type, at, link, machine, smtp_code } = event;
	if (isBounce(event)) {
		if (firsts.all === null) tally.addBounce({ at, campaign, type, address, code: smtp_code ?? null });
	} else if (type === 'REDIRECTED' && campaign !== null && link !== null && content !== undefined) {
		const click = { campaign, content, link };
		tally.addClick({ ...click, audience: 'all', messages: firsts.of_link === 0 ? 1 : 0 });
		if (!machine)
			tally.addClick({ ...click, audience: 'human', messages: firsts.human_of_link === 0 ? 1 : 0 });
	}
}
