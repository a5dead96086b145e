/** The ids of a page come along the index of its narrowest filter, and rows are read for the page alone. */
import { formatDateTime, type Micros, microsPerDay } from '../../../api/datetime.js';
import type { Message, MessageState } from '../../../api/records.js';
import type { Command, Operations } from '../../operations.js';
import type { MessagePlace, Seen } from '../../store.js';
import { leavesAt, seenState } from '../campaign-windows.js';
import { seenRows } from '../campaigns/rows.js';
import { parseRecord, span, subjectOf, timeOf, variablesOfSubject } from '../rows.js';
import { type Conditions, conditionsOf, type Sql, type SqlValue } from '../sql.js';
import { messageCount } from '../submissions.js';

/** With filters the count is exact up to here, or to the page after the one that is read. */
const mostCounted = 100_000;

export const messageColumns = `m.uuid, m.to_email, s.envelope, c.subject, s.type, s.tag, s.campaign, m.list_id,
	${seenState} AS state, m.attempts, ${leavesAt('m.due_at')} AS due_at, coalesce(g.released_at, m.created_at) AS created_at,
	m.sent_at, m.last_reply, coalesce(g.key, (
		-- Calls may join a campaign by its UUID.
		SELECT j.key FROM campaigns j WHERE j.id = s.campaign AND j.owner IS NOT DISTINCT FROM s.owner
	)) AS campaign_key, ${variablesOfSubject}`;

export interface MessageRow {
	uuid: string;
	to_email: string;
	envelope: string;
	subject: string;
	own_variables: string | null;
	shared_variables: string | null;
	type: 'TRANSACTIONAL' | 'BULK';
	tag: string | null;
	campaign: string | null;
	campaign_key: string | null;
	list_id: number | null;
	state: MessageState;
	attempts: number;
	due_at: Micros;
	created_at: Micros;
	sent_at: Micros | null;
	last_reply: string | null;
}

const waits: ReadonlySet<MessageState> = new Set(['staged', 'queued', 'deferred']);

export function toMessage(row: MessageRow): Message {
	const { to_email: to, own_variables: own, shared_variables: shared } = row;
	return {
		id: row.uuid,
		to,
		from: String(parseRecord(row.envelope)['from']),
		subject: subjectOf(row.subject, { to, own, shared }),
		type: row.type,
		tag: row.tag,
		campaign_unique_id: row.campaign,
		list_id: row.list_id,
		state: row.state,
		attempts: row.attempts,
		due_at: waits.has(row.state) ? formatDateTime(row.due_at) : null,
		date_created: formatDateTime(row.created_at),
		date_sent: timeOf(row.sent_at),
		last_reply: row.last_reply,
		campaign: row.campaign_key,
	};
}

type Filter = Command<'pageMessages'>['filter'];

export async function pageMessages(
	sql: Sql,
	{ filter, ...page }: Command<'pageMessages'>,
): ReturnType<Operations['pageMessages']> {
	const selected = await selection(sql, filter, page);
	const [limit, offset] = span(page);
	const rows = await rowsOf(sql, selected, { filter, limit, offset });
	const { from, where, values } = selected;
	const most = Math.max(mostCounted, page.page * page.page_size + 1);
	const count =
		values.length === 0
			? await messageCount(sql)
			: await sql.number(`SELECT count(*) FROM (SELECT 1 FROM ${from} WHERE ${where} LIMIT ?) n`, [
					...values,
					most,
				]);
	return { count, results: rows.map(toMessage), last: placeOf(rows.at(-1)) };
}

/** In the order of the pages, behind a message: what the last slice costs does not grow with those before it. */
export async function sliceMessages(
	sql: Sql,
	{ filter, after, limit, ...seen }: Command<'sliceMessages'>,
): ReturnType<Operations['sliceMessages']> {
	const selected = await selection(sql, filter, seen);
	const isBehind = filter.ordering === '-date_created' ? '<' : '>';
	const { submission_seq, id } = after;
	// The rest of a call's messages comes before those of the next call.
	const parts: (readonly [condition: string, ...values: SqlValue[]])[] = selected.byCall
		? [
				[`m.submission_seq = ? AND m.id ${isBehind} ?`, submission_seq, id],
				[`s.seq ${isBehind} ?`, submission_seq],
			]
		: [[`m.id ${isBehind} ?`, id]];
	const rows: ListedRow[] = [];
	for (const [condition, ...values] of parts) {
		const where = `${selected.where} AND ${condition}`;
		const part = { ...selected, where, values: [...selected.values, ...values] };
		if (rows.length < limit)
			rows.push(...(await rowsOf(sql, part, { filter, limit: limit - rows.length, offset: 0 })));
	}
	return { results: rows.map(toMessage), last: rows.length < limit ? null : placeOf(rows.at(-1)) };
}

interface ListedRow extends MessageRow {
	id: number;
	submission_seq: number;
}

function placeOf(row: ListedRow | undefined): MessagePlace | null {
	return row === undefined ? null : { submission_seq: row.submission_seq, id: row.id };
}

async function rowsOf(
	sql: Sql,
	{ from, where, values, order }: Selection,
	{ filter, limit, offset }: { filter: Filter; limit: number; offset: number },
): Promise<ListedRow[]> {
	const inOrder = `ORDER BY ${order.map((one) => `${one}${filter.ordering === '-date_created' ? ' DESC' : ''}`).join(', ')}`;
	return await sql.all<ListedRow>(
		`SELECT ${messageColumns}, m.id, m.submission_seq
		FROM (SELECT m.id FROM ${from} WHERE ${where} ${inOrder} LIMIT ? OFFSET ?) p
		CROSS JOIN messages m
		CROSS JOIN submissions s
		CROSS JOIN contents c
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE m.id = p.id AND s.seq = m.submission_seq AND c.sha256 = s.content_sha256
		${inOrder}`,
		[...values, limit, offset],
	);
}

interface Selection extends Conditions {
	from: string;
	order: readonly string[];
	byCall: boolean;
}

/** A CROSS JOIN keeps SQLite to this order of tables. */
async function selection(sql: Sql, filter: Filter, seen: Seen): Promise<Selection> {
	const { to_key, campaign_unique_id: campaign, tag, status, since_at } = filter;
	const { from, where = 'TRUE', byCall = false } = leadOf(sql, filter);
	const [table, key, column] = byCall ? ['submissions', 'seq', 's.seq'] : ['messages', 'id', 'm.id'];
	const first = since_at === undefined ? undefined : await firstSince(sql, table, key, since_at);
	const own = seenRows('s.owner', seen);
	const selected = conditionsOf([
		[where],
		[own.where, ...own.values],
		['m.to_key = ?', to_key],
		['s.campaign = ?', campaign],
		['s.tag = ?', tag],
		[`${status === undefined || overStates.has(status) ? 'm.state' : seenState} = ?`, status],
		[`${column} >= ?`, first],
		['coalesce(g.released_at, m.created_at) >= ?', since_at],
	]);
	const needs = (alias: string) => selected.where.includes(`${alias}.`);
	const needsCall = needs('s');
	// The lane of a campaign's messages is its seq.
	const campaigns = needs('g') ? 'LEFT JOIN campaigns g ON g.seq = m.lane' : '';
	return {
		from: `${from} ${needsCall && !byCall ? 'CROSS JOIN submissions s' : ''} ${campaigns}`,
		where: `${selected.where}${needsCall || byCall ? ' AND s.seq = m.submission_seq' : ''}`,
		values: selected.values,
		order: byCall ? ['s.seq', 'm.id'] : ['m.id'],
		byCall,
	};
}

interface Lead {
	from: string;
	where?: string;
	byCall?: true;
}

/** Address, campaign, state or tag: the one that selects least, as far as that is known. */
function leadOf({ dialect }: Sql, { to_key, campaign_unique_id: campaign, tag, status }: Filter): Lead {
	const byCall = { from: 'submissions s CROSS JOIN messages m', byCall: true } as const;
	if (to_key !== undefined) return { from: 'messages m' };
	if (campaign !== undefined) return byCall;
	if (status === undefined || status === 'sent') return tag === undefined ? { from: 'messages m' } : byCall;
	if (status === 'canceled') {
		const over = `SELECT id FROM messages ${dialect.using('messages_over')}
			WHERE wake_at IS NULL AND state <> 'sent' AND state = 'canceled'`;
		const waiting = `SELECT w.id FROM campaigns q CROSS JOIN messages w ${dialect.using('messages_due')}
			WHERE q.state = 'canceled' AND w.lane = q.seq AND w.wake_at IS NOT NULL`;
		return { from: `(${over} UNION ALL ${waiting}) k CROSS JOIN messages m`, where: 'm.id = k.id' };
	}
	return overStates.has(status)
		? {
				from: `messages m ${dialect.using('messages_over')}`,
				where: "m.wake_at IS NULL AND m.state <> 'sent'",
			}
		: { from: `messages m ${dialect.using('messages_due')}`, where: 'm.wake_at IS NOT NULL' };
}

const overStates: ReadonlySet<MessageState> = new Set(['sent', 'bounced', 'failed', 'uncertain']);

/** Rows are numbered as they are made, but for what clocks and transactions differ. */
const disorder: Micros = microsPerDay;

/** A number below which no message counts as made since then: those of a campaign count from its release. */
async function firstSince(sql: Sql, table: string, key: string, since: Micros): Promise<number> {
	const opened = await sql.get<{ at: Micros | null }>(
		'SELECT min(created_at) AS at FROM campaigns WHERE released_at >= ?',
		[since],
	);
	const from = Math.min(since, opened?.at ?? since) - disorder;
	const range = await sql.get<{ low: number | null; high: number | null }>(
		`SELECT (SELECT min(${key}) FROM ${table}) AS low, (SELECT max(${key}) FROM ${table}) AS high`,
	);
	let low = range?.low ?? 0;
	let high = (range?.high ?? 0) + 1;
	while (low < high) {
		const middle = low + Math.floor((high - low) / 2);
		const row = await sql.get<{ number: number; created_at: Micros }>(
			`SELECT ${key} AS number, created_at FROM ${table} WHERE ${key} >= ? ORDER BY ${key} LIMIT 1`,
			[middle],
		);
		if (row === undefined || row.created_at >= from) high = middle;
		else low = row.number + 1;
	}
	return low;
}
