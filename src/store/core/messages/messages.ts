/**
 * Messages as people see them. The state of a campaign decides that of its messages: release and cancel change one row.
 */

import type { MessageScope } from '../../../api/capabilities.js';
import { formatDateTime, type Micros } from '../../../api/datetime.js';
import type {
	EventType,
	MessageEvent,
	MessageReport,
	MessageState,
	Tracking,
	Uuid,
} from '../../../api/records.js';
import { joinVariables } from '../../../engine/rules/meta.js';
import { parseStored } from '../../errors.js';
import type { Operations } from '../../operations.js';
import type { Leased } from '../../queue.js';
import type { Seen } from '../../store.js';
import type { StoredCall, StoredSubmission } from '../../submissions.js';
import { attachmentsOf } from '../attachments.js';
import { attemptsOf } from '../attempts.js';
import { countStates, leavesAt, seenState, type WaitingLane, waitingLanes } from '../campaign-windows.js';
import { type CampaignRow, seenRows } from '../campaigns/rows.js';
import { deletedStates } from '../retention/sums.js';
import { type MessageRow, parseTexts, parseUsed, readEnvelope, setAside, toMessage } from '../rows.js';
import type { Sql, SqlValue } from '../sql.js';
import { messageCount } from '../submissions.js';
import { messageColumns, pageMessages, sliceMessages } from './listing.js';

const joined = `messages m
	JOIN submissions s ON s.seq = m.submission_seq
	LEFT JOIN campaigns g ON g.seq = s.campaign_seq`;

export function createMessages(sql: Sql) {
	return {
		pageMessages: (command) => pageMessages(sql, command),
		sliceMessages: (command) => sliceMessages(sql, command),
		getMessage: ({ id, ...seen }) => getMessage(sql, id, seen),
		getSubmission: ({ id }) => getSubmission(sql, id),
		countMessages: ({ scope, ...seen }) => countByState(sql, scope, seen),
		countWaiting: async () => Object.fromEntries(countStates(await waitingLanes(sql, null))),
		nextDue: ({ scope }) => nextDue(sql, scope),
	} satisfies Partial<Operations>;
}

/**
 * Counts by visible state; a state without messages is absent. Walks all of a submission, and of a campaign that
 * retention has begun to delete; of others what waits and what failed, by their indexes. Null is everything. A campaign
 * has the states of those that retention has deleted, too.
 */
export async function countByState(
	sql: Sql,
	scope: MessageScope | null,
	seen: Seen = {},
): Promise<Partial<Record<MessageState, number>>> {
	if (scope === null && seen.only_of === undefined) return await countAll(sql, await waitingLanes(sql, null));
	const campaign =
		scope !== null && 'campaign' in scope ? await wholeCampaign(sql, scope.campaign, seen) : null;
	if (campaign !== null) return await countCampaign(sql, campaign);
	const { where, values } = scopeCondition(scope);
	const own = seenRows('s.owner', seen);
	const rows = await sql.all<{ state: MessageState; count: number }>(
		`SELECT ${seenState} AS state, count(*) AS count
		FROM ${joined}
		WHERE ${where} AND ${own.where}
		GROUP BY 1
		ORDER BY 1`,
		[...values, ...own.values],
	);
	const deleted = scope !== null && 'campaign' in scope ? await deletedStates(sql, scope.campaign, seen) : [];
	return sumsOf([...rows, ...deleted]);
}

export function sumsOf(
	rows: readonly { state: MessageState; count: number }[],
): Partial<Record<MessageState, number>> {
	const counts = new Map<MessageState, number>();
	for (const { state, count } of rows) counts.set(state, (counts.get(state) ?? 0) + count);
	return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

interface WholeCampaign extends Pick<CampaignRow, 'seq' | 'state' | 'released_at' | 'staged'> {}

async function wholeCampaign(sql: Sql, id: Uuid, seen: Seen): Promise<WholeCampaign | null> {
	const own = seenRows('g.owner', seen);
	const row = await sql.get<WholeCampaign>(
		`SELECT seq, state, released_at, staged FROM campaigns g WHERE id = ? AND dropped_at IS NULL AND ${own.where}`,
		[id, ...own.values],
	);
	return row ?? null;
}

/** What neither waits nor failed was sent: each message that was staged is there. */
async function countCampaign(
	sql: Sql,
	{ seq, state, released_at, staged }: WholeCampaign,
): Promise<Partial<Record<MessageState, number>>> {
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
			sql.all<{ state: MessageState; count: number }>(
				`SELECT state, count(*) AS count
				FROM messages ${using('messages_over_of_lane')}
				WHERE lane = ? AND wake_at IS NULL AND state <> 'sent'
				GROUP BY state`,
				[seq],
			),
	]);
	const counts = countStates(waiting.map((lane) => ({ ...lane, state })));
	for (const one of over) counts.set(one.state, (counts.get(one.state) ?? 0) + one.count);
	const sent = [...counts.values()].reduce((left, count) => left - count, staged);
	if (released_at !== null && sent > 0) counts.set('sent', sent);
	return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Of all messages: the time for it grows with those that wait and those that failed, not with those that were sent. */
export async function countAll(
	sql: Sql,
	waiting: readonly WaitingLane[],
): Promise<Partial<Record<MessageState, number>>> {
	const over = await sql.all<{ state: MessageState; count: number }>(
		`SELECT state, count(*) AS count
		FROM messages ${sql.dialect.using('messages_over')}
		WHERE wake_at IS NULL AND state <> 'sent'
		GROUP BY state`,
	);
	const counts = new Map(over.map(({ state, count }) => [state, count]));
	for (const [state, count] of countStates(waiting)) counts.set(state, (counts.get(state) ?? 0) + count);
	const sent = [...counts.values()].reduce((left, count) => left - count, await messageCount(sql));
	if (sent > 0) counts.set('sent', sent);
	return Object.fromEntries([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function scopeCondition(scope: MessageScope | null): { where: string; values: SqlValue[] } {
	if (scope === null) return { where: 'TRUE', values: [] };
	return 'submission' in scope
		? { where: 's.id = ?', values: [scope.submission] }
		: { where: 'g.id = ?', values: [scope.campaign] };
}

interface RenderingRow {
	id: number;
	submission: string;
	content_sha256: string;
	fence: number;
	variables: string;
	used: string;
	context: string;
	tracking: Tracking;
}

export async function getMessage(sql: Sql, uuid: string, seen: Seen): ReturnType<Operations['getMessage']> {
	const own = seenRows('s.owner', seen);
	const row = await sql.get<MessageRow & RenderingRow & { courier: string | null }>(
		`SELECT ${messageColumns}, g.courier, m.id, s.id AS submission, s.content_sha256, m.fence, m.variables, s.variables AS used, s.context, s.tracking
		FROM ${joined}
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE m.uuid = ? AND ${own.where}`,
		[uuid, ...own.values],
	);
	if (row === undefined) return null;
	return {
		message: toMessage(row),
		attempts: await attemptsOf(sql, row),
		events: await eventsOf(sql, row),
		reports: await reportsOf(sql, row.id),
		tracking: row.tracking,
		rendering: rendering(row),
		attachments: await attachmentsOf(sql, row.content_sha256),
	};
}

interface FirstRow {
	type: EventType;
	first_at: Micros;
	count: number;
	url: string | null;
	machine: number;
}

/** CREATED and SENT are columns of the message; a staged message has no CREATED yet. */
async function eventsOf(
	sql: Sql,
	{ id, state, created_at, sent_at }: MessageRow & RenderingRow,
): Promise<MessageEvent[]> {
	const once = (type: EventType, first_at: Micros) => ({ type, first_at, count: 1, url: null, machine: 0 });
	const firsts = await sql.all<FirstRow>(
		`SELECT f.type, f.first_at, f.count, f.machine, (
			-- events_of_message
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
	// A stable sort: at the same moment CREATED and SENT stay first.
	return all
		.sort((a, b) => a.first_at - b.first_at)
		.map(({ type, first_at, count, url, machine }) => ({
			...{ type, time: formatDateTime(first_at), count, link: url, machine: machine === 1 },
		}));
}

interface ReportRow {
	at: Micros;
	event: MessageReport['event'];
	smtp_code: string | null;
	diagnostic: string | null;
}

/** A bounce's reply is in the event recorded at the same time; a bounce of a copy and a complaint have none. */
async function reportsOf(sql: Sql, id: number): Promise<MessageReport[]> {
	const rows = await sql.all<ReportRow>(
		// bounce_reports_of_message, events_of_message
		`SELECT r.at, r.event, e.smtp_code, e.diagnostic
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
	return rows.map(({ at, event, smtp_code, diagnostic }) => ({
		at: formatDateTime(at),
		event,
		code: smtp_code,
		diagnostic,
	}));
}

function rendering(row: MessageRow & RenderingRow): Leased {
	return {
		message: row.uuid,
		fence: row.fence,
		submission: row.submission,
		to: row.to_email,
		list_id: row.list_id,
		variables: joinVariables(parseTexts(row.variables), parseUsed(row.used), parseTexts(row.context)),
		attempts: row.attempts,
		created_at: row.created_at,
	};
}

interface SubmissionRow {
	id: string;
	type: 'TRANSACTIONAL' | 'BULK';
	envelope: string;
	tag: string | null;
	campaign: string | null;
	tracking: Tracking;
	content_sha256: string;
	subject: string;
	text: string | null;
	html: string | null;
	disable_inline: number;
	dropped_at: Micros | null;
	request: string | null;
	requests: number | null;
}

async function getSubmission(sql: Sql, id: string): Promise<StoredSubmission | null> {
	const row = await sql.get<SubmissionRow>(
		`SELECT s.id, s.type, s.envelope, s.tag, s.campaign, s.tracking, s.content_sha256,
			c.subject, c.text, c.html, c.disable_inline, c.dropped_at, s.request, g.requests
		FROM submissions s
		JOIN contents c ON c.sha256 = s.content_sha256
		LEFT JOIN campaigns g ON g.seq = s.campaign_seq
		WHERE s.id = ?`,
		[id],
	);
	if (row === undefined) return null;
	const { type, tag, campaign, tracking, content_sha256, subject, text, html } = row;
	const files = (await attachmentsOf(sql, content_sha256)).map(({ size: _, ...file }) => file);
	const content = {
		...{ subject, text, html, disable_inline: row.disable_inline === 1 },
		...(files.length > 0 && { attachments: files }),
	};
	const envelope = readEnvelope(row.envelope);
	const stored = { id, type, envelope, tag, campaign, tracking, content, content_sha256, ...callOf(row) };
	return row.dropped_at === null ? stored : { ...stored, is_dropped: true };
}

function callOf({ request, requests }: SubmissionRow): Pick<StoredSubmission, 'call'> {
	if (request === null) return {};
	const stored = parseStored(request) as StoredCall['request'];
	return { call: { request: stored, content: requests === 1 ? 'own' : 'shared' } };
}

/** Leases count too: the message comes back when its lease ends. Lanes are few; each is one look-up in messages_due. */
export async function nextDue(sql: Sql, scope: MessageScope | null): Promise<Micros | null> {
	if (scope !== null && 'submission' in scope) return await nextOfSubmission(sql, scope.submission);
	const lanes =
		scope === null
			? `SELECT 0 AS seq, CAST(NULL AS BIGINT) AS opens_at UNION ALL SELECT -1, NULL
				UNION ALL SELECT seq, opens_at FROM campaigns WHERE has_open_work = 1 AND state = 'released'`
			: "SELECT seq, opens_at FROM campaigns WHERE id = ? AND state = 'released'";
	const row = await sql.get<{ due: Micros | null }>(
		`SELECT min(${leavesAt('g.wakes')}) AS due
		FROM (
			SELECT l.opens_at,
				(SELECT min(wake_at) FROM messages WHERE lane = l.seq AND wake_at IS NOT NULL) AS wakes
			FROM (${lanes}) l
		) g
		WHERE g.wakes IS NOT NULL`,
		scope === null ? [] : [scope.campaign],
	);
	return dueOf(row);
}

function dueOf(row: { due: Micros | null } | undefined): Micros | null {
	const due = row?.due ?? null;
	return due === setAside ? null : due;
}

async function nextOfSubmission(sql: Sql, submission: string): Promise<Micros | null> {
	const row = await sql.get<{ due: Micros | null }>(
		`SELECT min(${leavesAt('m.wake_at')}) AS due
		FROM ${joined}
		WHERE s.id = ? AND (g.state IS NULL OR g.state = 'released')`,
		[submission],
	);
	return dueOf(row);
}
