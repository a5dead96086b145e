/** Messages as people look at them. A mailing's state decides what its rows are: release and cancel touch one row. */

import type { MessageScope } from '../../api/capabilities.js';
import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { MessageReport, MessageState } from '../../api/records.js';
import { joinVariables } from '../../engine/rules/meta.js';
import type { Leased } from '../queue.js';
import type { StoredSubmission } from '../submissions.js';
import {
	type AttemptRow,
	type MessageRow,
	parseNames,
	parseTexts,
	span,
	toAttempt,
	toMessage,
} from './rows.js';
import type { Sql, SqlValue } from './sql.js';
import { readEnvelope } from './stored-json.js';
import type { Operations } from './sync.js';

type MessageOperations = Pick<
	Operations,
	'pageMessages' | 'getMessage' | 'getSubmission' | 'countMessages' | 'nextDue'
>;

/**
 * A row's state as it is seen: a canceled mailing cancels what waits, a released one queues what is staged. Written
 * out row by row, a release of a million would be a million writes.
 */
export const seenState = `CASE
	WHEN m.state NOT IN ('staged', 'queued', 'deferred') OR g.state IS NULL THEN m.state
	WHEN g.state = 'canceled' THEN 'canceled'
	WHEN g.state = 'released' AND m.state = 'staged' THEN 'queued'
	ELSE m.state
END`;

const joined = `messages m
	JOIN submissions s ON s.seq = m.submission_seq
	LEFT JOIN mailings g ON g.seq = s.mailing_seq`;

const columns = `m.uuid, m.to_email, s.envelope, c.subject, s.type, s.tag, s.campaign, m.list_id,
	${seenState} AS state, m.attempts, m.due_at, coalesce(g.released_at, m.created_at) AS created_at,
	m.sent_at, m.last_reply`;

/** Reads alone. States are those that are seen (`seenState`), in filters and counts too. */
export function createMessages(sql: Sql): MessageOperations {
	return {
		pageMessages: ({ filter, ...page }) => {
			const { where, values } = conditions(filter);
			return {
				// Without a filter nothing is joined: the smallest index is counted.
				count: sql.number(
					values.length === 0
						? 'SELECT count(*) FROM messages'
						: `SELECT count(*) FROM ${joined} WHERE ${where}`,
					...values,
				),
				results: sql
					.all<MessageRow>(
						`SELECT ${columns}
						FROM ${joined}
						JOIN contents c ON c.sha256 = s.content_sha256
						WHERE ${where}
						ORDER BY m.id
						LIMIT ? OFFSET ?`,
						...values,
						...span(page),
					)
					.map(toMessage),
			};
		},
		getMessage: ({ id }) => getMessage(sql, id),
		getSubmission: ({ id }) => getSubmission(sql, id),
		countMessages: ({ scope }) => countByState(sql, scope),
		nextDue: ({ scope }) => nextDue(sql, scope),
	};
}

/** By the state that is seen; one without messages is absent. Walks all of the scope; null is everything. */
export function countByState(sql: Sql, scope: MessageScope | null): Partial<Record<MessageState, number>> {
	const { where, values } = scopeCondition(scope);
	const rows = sql.all<{ state: MessageState; count: number }>(
		`SELECT ${seenState} AS state, count(*) AS count
		FROM ${joined}
		WHERE ${where}
		GROUP BY 1`,
		...values,
	);
	return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
}

function scopeCondition(scope: MessageScope | null): { where: string; values: SqlValue[] } {
	if (scope === null) return { where: '1', values: [] };
	return 'submission' in scope
		? { where: 's.id = ?', values: [scope.submission] }
		: { where: 'g.id = ?', values: [scope.mailing] };
}

function conditions(filter: Parameters<Operations['pageMessages']>[0]['filter']) {
	const parts = ['1'];
	const values: SqlValue[] = [];
	const add = (condition: string, value: SqlValue | undefined) => {
		if (value === undefined) return;
		parts.push(condition);
		values.push(value);
	};
	add(`${seenState} = ?`, filter.status);
	add('m.to_key = ?', filter.to_key);
	add('s.campaign = ?', filter.campaign_unique_id);
	add('coalesce(g.released_at, m.created_at) >= ?', filter.since_at);
	return { where: parts.join(' AND '), values };
}

interface RenderingRow {
	id: number;
	submission: string;
	fence: number;
	variables: string;
	used: string;
	context: string;
}

function getMessage(sql: Sql, uuid: string): ReturnType<Operations['getMessage']> {
	const row = sql.get<MessageRow & RenderingRow>(
		`SELECT ${columns}, m.id, s.id AS submission, m.fence, m.variables, s.variables AS used, s.context
		FROM ${joined}
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE m.uuid = ?`,
		uuid,
	);
	if (row === undefined) return null;
	const attempts = sql
		.all<AttemptRow>(
			`SELECT number, at, outcome, phase, code, enhanced, text
			FROM attempts
			WHERE message_id = ?
			ORDER BY number`,
			row.id,
		)
		.map(toAttempt);
	return { message: toMessage(row), attempts, reports: reportsOf(sql, row.id), rendering: rendering(row) };
}

interface ReportRow {
	at: Micros;
	event: MessageReport['event'];
	smtp_code: string | null;
	diagnostic: string | null;
}

/** What a bounce said is in the event it was recorded as, at the same time; a copy's bounce and a complaint have none. */
function reportsOf(sql: Sql, id: number): MessageReport[] {
	const rows = sql.all<ReportRow>(
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
		id,
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
		variables: joinVariables(parseTexts(row.variables), parseNames(row.used), parseTexts(row.context)),
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
	content_sha256: string;
	subject: string;
	text: string | null;
	html: string | null;
	disable_inline: number;
}

function getSubmission(sql: Sql, id: string): StoredSubmission | null {
	const row = sql.get<SubmissionRow>(
		`SELECT s.id, s.type, s.envelope, s.tag, s.campaign, s.content_sha256,
			c.subject, c.text, c.html, c.disable_inline
		FROM submissions s
		JOIN contents c ON c.sha256 = s.content_sha256
		WHERE s.id = ?`,
		id,
	);
	if (row === undefined) return null;
	const { type, tag, campaign, content_sha256, subject, text, html } = row;
	const content = { subject, text, html, disable_inline: row.disable_inline === 1 };
	return { id, type, envelope: readEnvelope(row.envelope), tag, campaign, content, content_sha256 };
}

/** A lease counts too: it comes back when it ends. Lanes are few; each is one look into messages_due. */
export function nextDue(sql: Sql, scope: MessageScope | null): Micros | null {
	if (scope !== null && 'submission' in scope) return nextOfSubmission(sql, scope.submission);
	const lanes =
		scope === null
			? `SELECT 0 AS seq UNION ALL SELECT -1
				UNION ALL SELECT seq FROM mailings WHERE has_open_work = 1 AND state = 'released'`
			: "SELECT seq FROM mailings WHERE id = ? AND state = 'released'";
	const row = sql.get<{ due: Micros | null }>(
		`SELECT min((SELECT min(wake_at) FROM messages WHERE lane = l.seq AND wake_at IS NOT NULL)) AS due
		FROM (${lanes}) l`,
		...(scope === null ? [] : [scope.mailing]),
	);
	return row?.due ?? null;
}

function nextOfSubmission(sql: Sql, submission: string): Micros | null {
	const row = sql.get<{ due: Micros | null }>(
		`SELECT min(m.wake_at) AS due
		FROM ${joined}
		WHERE s.id = ? AND (g.state IS NULL OR g.state = 'released')`,
		submission,
	);
	return row?.due ?? null;
}
