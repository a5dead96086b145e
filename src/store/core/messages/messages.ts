import type { MessageScope } from '../../../api/capabilities.js';
import { formatDateTime, type Micros, microsPerDay } from '../../../api/datetime.js';
import type {
	EventType,
	Message,
	MessageEvent,
	MessageReport,
	MessageState,
	Tracking,
} from '../../../api/records.js';
import { joinVariables } from '../../../engine/rules/subscribers.js';
import type { StoredCall, StoredSubmission } from '../../campaigns.js';
import type { Command, Operations } from '../../operations.js';
import type { Leased } from '../../queue.js';
import type { MessagePlace, Seen } from '../../store.js';
import { attachmentsOf } from '../attachments.js';
import { attemptsOf } from '../attempts.js';
import {
	type CampaignRow,
	countStates,
	leavesAt,
	seenRows,
	seenState,
	type WaitingLane,
	waitingLanes,
} from '../campaigns/rows.js';
import {
	type Conditions,
	column,
	conditionsOf,
	findSince,
	joinedMessages,
	parseRecord,
	parseStored,
	parseTexts,
	parseUsed,
	readEnvelope,
	type Sql,
	type SqlValue,
	setAside,
	span,
	subjectOf,
	timeOf,
	variablesOfSubject,
} from '../sql.js';
import { messageCount } from '../submissions.js';

export function createMessages(sql: Sql) {
	return {
		pageMessages: async ({ filter, ...page }) => {
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
		},
		/** Returns the messages that follow `after`, in the order of `pageMessages`. Every slice costs the same. */
		sliceMessages: async ({ filter, after, limit, ...seen }) => {
			const selected = await selection(sql, filter, seen);
			const isBehind = filter.ordering === '-date_created' ? '<' : '>';
			const { submission_seq, id } = after;
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
		},
		getMessage: ({ id, ...seen }) => getMessage(sql, id, seen),
		getSubmission: async ({ id }) => {
			const row = await sql.get<
				Pick<StoredSubmission, 'type' | 'tag' | 'campaign' | 'content_sha256'> & {
					envelope: string;
					tracking: Tracking;
					subject: string;
					text: string | null;
					html: string | null;
					disable_inline: number;
					dropped_at: Micros | null;
					request: string | null;
					requests: number | null;
				}
			>(
				`SELECT s.type, s.envelope, s.tag, s.campaign, s.tracking, s.content_sha256,
					c.subject, c.text, c.html, c.disable_inline, c.dropped_at, s.request, g.requests
				FROM submissions s
				JOIN contents c ON c.sha256 = s.content_sha256
				LEFT JOIN campaigns g ON g.seq = s.campaign_seq
				WHERE s.id = ?`,
				[id],
			);
			if (row === undefined) return null;
			const { type, tag, campaign, tracking, content_sha256, subject, text, html, request } = row;
			const files = (await attachmentsOf(sql, content_sha256)).map(({ size: _, ...file }) => file);
			const content = {
				...{ subject, text, html, disable_inline: row.disable_inline === 1 },
				...(files.length > 0 && { attachments: files }),
			};
			return {
				...{
					id,
					type,
					envelope: readEnvelope(row.envelope),
					tag,
					campaign,
					tracking,
					content,
					content_sha256,
				},
				...(request !== null && {
					call: {
						request: parseStored(request) as StoredCall['request'],
						content: row.requests === 1 ? 'own' : 'shared',
					},
				}),
				...(row.dropped_at !== null && { is_dropped: true }),
			};
		},
		countMessages: ({ scope, ...seen }) => countByState(sql, scope, seen),
		countWaiting: async () => Object.fromEntries(countStates(await waitingLanes(sql, null))),
		nextDue: ({ scope }) => nextDue(sql, scope),
	} satisfies Partial<Operations>;
}

type StateCounts = Partial<Record<MessageState, number>>;

export interface StateCount {
	state: MessageState;
	count: number;
}

export function sumsOf(rows: readonly StateCount[]): StateCounts {
	const counts = new Map<MessageState, number>();
	for (const { state, count } of rows) counts.set(state, (counts.get(state) ?? 0) + count);
	return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Counts messages by the state that users see. For a submission, reads all its messages. For a campaign, reads only
 * indexes of unsent messages, until retention begins to delete messages.
 */
export async function countByState(
	sql: Sql,
	scope: MessageScope | null,
	seen: Seen = {},
): Promise<StateCounts> {
	if (scope === null && seen.only_of === undefined) return await countAll(sql, await waitingLanes(sql, null));
	const campaign = scope !== null && 'campaign' in scope ? scope.campaign : undefined;
	const whole = campaign === undefined ? null : await countWhole(sql, campaign, seen);
	if (whole !== null) return whole;
	const { where, values } = conditionsOf([
		['s.id = ?', scope !== null && 'submission' in scope ? scope.submission : undefined],
		['g.id = ?', campaign],
		['s.owner = ?', seen.only_of],
	]);
	const rows = await sql.all<StateCount>(
		`SELECT ${seenState} AS state, count(*) AS count
		FROM ${joinedMessages}
		WHERE ${where}
		GROUP BY 1`,
		values,
	);
	const own = seenRows('g.owner', seen);
	const deleted = await sql.all<StateCount>(
		`SELECT d.state, d.count
		FROM deleted_states d
		JOIN campaigns g ON g.id = d.campaign
		WHERE d.campaign = ? AND ${own.where}`,
		[campaign ?? null, ...own.values],
	);
	return sumsOf([...rows, ...deleted]);
}

/** Returns null once retention has deleted messages of the campaign. */
async function countWhole(sql: Sql, id: string, seen: Seen): Promise<StateCounts | null> {
	const own = seenRows('g.owner', seen);
	const campaign = await sql.get<Pick<CampaignRow, 'seq' | 'state' | 'released_at' | 'staged'>>(
		`SELECT seq, state, released_at, staged FROM campaigns g WHERE id = ? AND dropped_at IS NULL AND ${own.where}`,
		[id, ...own.values],
	);
	if (campaign === undefined) return null;
	const { seq, state, released_at, staged } = campaign;
	const { using } = sql.dialect;
	const [waiting, over] = await sql.together([
		() =>
			sql.all<Pick<WaitingLane, 'count' | 'leased' | 'deferred'>>(
				`SELECT count(*) AS count, count(*) FILTER (WHERE state = 'leased') AS leased,
					count(*) FILTER (WHERE state = 'deferred') AS deferred
				FROM messages ${using('messages_due')}
				WHERE lane = ? AND wake_at IS NOT NULL`,
				[seq],
			),
		() =>
			sql.all<StateCount>(
				`SELECT state, count(*) AS count
				FROM messages ${using('messages_over_of_lane')}
				WHERE lane = ? AND wake_at IS NULL AND state <> 'sent'
				GROUP BY state`,
				[seq],
			),
	]);
	const lanes = waiting.map((lane) => ({ ...lane, state }));
	return withSent(lanes, over, released_at === null ? 0 : staged);
}

export async function countAll(sql: Sql, waiting: readonly WaitingLane[]): Promise<StateCounts> {
	const over = await sql.all<StateCount>(
		`SELECT state, count(*) AS count
		FROM messages ${sql.dialect.using('messages_over')}
		WHERE wake_at IS NULL AND state <> 'sent'
		GROUP BY state`,
	);
	return withSent(waiting, over, await messageCount(sql));
}

function withSent(
	waiting: Parameters<typeof countStates>[0],
	over: readonly StateCount[],
	all: number,
): StateCounts {
	const counted = [...[...countStates(waiting)].map(([state, count]) => ({ state, count })), ...over];
	const sent = counted.reduce((left, { count }) => left - count, all);
	return sumsOf(sent > 0 ? [...counted, { state: 'sent', count: sent }] : counted);
}

export async function getMessage(sql: Sql, uuid: string, seen: Seen): ReturnType<Operations['getMessage']> {
	const own = seenRows('s.owner', seen);
	const row = await sql.get<
		MessageRow &
			Record<'submission' | 'content_sha256' | 'variables' | 'used' | 'context', string> &
			Record<'id' | 'fence', number> & { courier: string | null; tracking: Tracking }
	>(
		`SELECT ${messageColumns}, g.courier, m.id, s.id AS submission, s.content_sha256, m.fence, m.variables, s.variables AS used, s.context, s.tracking
		FROM ${joinedMessages}
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE m.uuid = ? AND ${own.where}`,
		[uuid, ...own.values],
	);
	if (row === undefined) return null;
	const { fence, submission, list_id, attempts, created_at, tracking } = row;
	const rendering: Leased = {
		...{ message: row.uuid, fence, submission, to: row.to_email, list_id },
		variables: joinVariables(parseTexts(row.variables), parseUsed(row.used), parseTexts(row.context)),
		...{ attempts, created_at },
	};
	return {
		message: toMessage(row),
		attempts: await attemptsOf(sql, row),
		events: await eventsOf(sql, row),
		reports: await reportsOf(sql, row.id),
		tracking,
		rendering,
		attachments: await attachmentsOf(sql, row.content_sha256),
	};
}

async function eventsOf(
	sql: Sql,
	{ id, state, created_at, sent_at }: MessageRow & { id: number },
): Promise<MessageEvent[]> {
	const once = (type: EventType, first_at: Micros) => ({ type, first_at, count: 1, url: null, machine: 0 });
	const firsts = await sql.all<Omit<ReturnType<typeof once>, 'url'> & { url: string | null }>(
		`SELECT f.type, f.first_at, f.count, f.machine, (
			SELECT e.url FROM events e
			WHERE e.message_id = f.message_id AND e.type = f.type AND e.link = f.link AND e.url IS NOT NULL
			LIMIT 1
		) AS url
		FROM message_firsts f
		WHERE f.message_id = ?
		ORDER BY f.first_at, f.type, f.link, f.machine`,
		[id],
	);
	const all = [
		...(state === 'staged' ? [] : [once('CREATED', created_at)]),
		...(sent_at === null ? [] : [once('SENT', sent_at)]),
		...firsts,
	];
	// The sort is stable, so CREATED and SENT stay first among events of the same time.
	return all
		.sort((a, b) => a.first_at - b.first_at)
		.map(({ type, first_at, count, url, machine }) => ({
			...{ type, time: formatDateTime(first_at), count, link: url, machine: machine === 1 },
		}));
}

/** The reply comes from the event with the same time. Only counted bounces of the message's recipient have an event. */
async function reportsOf(sql: Sql, id: number): Promise<MessageReport[]> {
	const rows = await sql.all<Omit<MessageReport, 'at'> & { at: Micros }>(
		`SELECT r.at, r.event, e.smtp_code AS code, e.diagnostic
		FROM (
			SELECT sha256, at, message_id, CASE kind
				WHEN 'hard_bounce' THEN 'HARDBOUNCED'
				WHEN 'soft_bounce' THEN 'SOFTBOUNCED'
				ELSE 'COMPLAINED'
			END AS event
			FROM bounce_reports
			WHERE message_id = ?
		) r
		LEFT JOIN events e ON e.message_id = r.message_id AND e.type = r.event AND e.at = r.at
		ORDER BY r.at, r.sha256`,
		[id],
	);
	return rows.map((row) => ({ ...row, at: formatDateTime(row.at) }));
}

/** Leased messages count as due at the end of their lease. */
export async function nextDue(sql: Sql, scope: MessageScope | null): Promise<Micros | null> {
	const lanes =
		scope === null
			? `SELECT 0 AS seq, CAST(NULL AS BIGINT) AS opens_at UNION ALL SELECT -1, NULL
				UNION ALL SELECT seq, opens_at FROM campaigns WHERE has_open_work = 1 AND state = 'released'`
			: "SELECT seq, opens_at FROM campaigns WHERE id = ? AND state = 'released'";
	const [due = null] =
		scope !== null && 'submission' in scope
			? await column<Micros | null>(
					sql,
					`SELECT min(${leavesAt('m.wake_at')})
					FROM ${joinedMessages}
					WHERE s.id = ? AND (g.state IS NULL OR g.state = 'released')`,
					[scope.submission],
				)
			: await column<Micros | null>(
					sql,
					`SELECT min(${leavesAt('g.wakes')})
					FROM (
						SELECT l.opens_at,
							(SELECT min(wake_at) FROM messages WHERE lane = l.seq AND wake_at IS NOT NULL) AS wakes
						FROM (${lanes}) l
					) g
					WHERE g.wakes IS NOT NULL`,
					scope === null ? [] : [scope.campaign],
				);
	return due === setAside ? null : due;
}

/** A filtered count stops at this number. For a page beyond this number, it stops one message after the page. */
const mostCounted = 100_000;

const messageColumns = `m.uuid, m.to_email, s.envelope, c.subject, s.type, s.tag, s.campaign, m.list_id,
	${seenState} AS state, m.attempts, ${leavesAt('m.due_at')} AS due_at, coalesce(g.released_at, m.created_at) AS created_at,
	m.sent_at, m.last_reply, coalesce(g.key, (
		-- Messages of a send call show the key of the campaign whose UUID the call named.
		SELECT j.key FROM campaigns j WHERE j.id = s.campaign AND j.owner IS NOT DISTINCT FROM s.owner
	)) AS campaign_key, ${variablesOfSubject}`;

interface MessageRow {
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

function toMessage(row: MessageRow): Message {
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

/** Selects ids by the index of the narrowest filter. CROSS JOIN makes SQLite keep the order of the tables. */
async function selection(sql: Sql, filter: Filter, seen: Seen): Promise<Selection> {
	const { to_key, campaign_unique_id: campaign, tag, status, since_at } = filter;
	const { from, where = 'TRUE', byCall = false } = leadOf(sql, filter);
	const [table, key, column] = byCall ? ['submissions', 'seq', 's.seq'] : ['messages', 'id', 'm.id'];
	const first = since_at === undefined ? undefined : await firstSince(sql, table, key, since_at);
	const selected = conditionsOf([
		[where],
		['s.owner = ?', seen.only_of],
		['m.to_key = ?', to_key],
		['s.campaign = ?', campaign],
		['s.tag = ?', tag],
		[`${status === undefined || overStates.has(status) ? 'm.state' : seenState} = ?`, status],
		[`${column} >= ?`, first],
		['coalesce(g.released_at, m.created_at) >= ?', since_at],
	]);
	const needs = (alias: string) => selected.where.includes(`${alias}.`);
	const needsCall = needs('s');
	const campaigns = needs('g') ? 'LEFT JOIN campaigns g ON g.seq = m.lane' : '';
	return {
		from: `${from} ${needsCall && !byCall ? 'CROSS JOIN submissions s' : ''} ${campaigns}`,
		where: `${selected.where}${needsCall || byCall ? ' AND s.seq = m.submission_seq' : ''}`,
		values: selected.values,
		order: byCall ? ['s.seq', 'm.id'] : ['m.id'],
		byCall,
	};
}

function leadOf(
	{ dialect }: Sql,
	{ to_key, campaign_unique_id: campaign, tag, status }: Filter,
): { from: string; where?: string; byCall?: true } {
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

/** Ids may be out of creation order by up to this time, because clocks differ and transactions overlap. */
const disorder: Micros = microsPerDay;

/** Returns a lower bound for `key` of messages created after `since`. A campaign's messages count from its release. */
async function firstSince(sql: Sql, table: string, key: string, since: Micros): Promise<number> {
	const opened = await sql.get<{ at: Micros | null }>(
		'SELECT min(created_at) AS at FROM campaigns WHERE released_at >= ?',
		[since],
	);
	const from = Math.min(since, opened?.at ?? since) - disorder;
	return (await findSince(sql, table, key, from)).found;
}
