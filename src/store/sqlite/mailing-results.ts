/** What became of the rows put into a mailing: kept row by row, read with what their messages have come to. */

import { formatDateTime, type Micros } from '../../api/datetime.js';
import type { Mailing, MailingResult, MailingResults } from '../../api/mailings.js';
import type { MessageState, Uuid } from '../../api/records.js';
import { type MailingRow, mailingColumns } from './mailing-rows.js';
import { seenState } from './messages.js';
import { span } from './rows.js';
import type { Sql } from './sql.js';
import type { RowOutcome } from './stage-message.js';
import type { Operations } from './sync.js';

/** Writes down the recipients of one batch, in their order. */
export interface ResultLog {
	add(row: { line: number | null; to: string; outcome: RowOutcome }): void;
}

/** Numbers go on behind all that was counted: what a list added leaves a gap. */
export function createResultLog(sql: Sql, mailing: MailingRow): ResultLog {
	let n = mailing.staged + mailing.suppressed + mailing.rejected;
	return {
		add: ({ line, to, outcome }) => {
			n += 1;
			const isStaged = outcome.kind === 'staged';
			sql.run(
				`INSERT INTO mailing_results (mailing_seq, n, line, message_id, to_email, code, error)
				VALUES (?, ?, ?, ?, ?, ?, ?)`,
				mailing.seq,
				n,
				line,
				isStaged ? outcome.message : null,
				isStaged ? null : to,
				isStaged ? null : outcome.kind === 'rejected' ? outcome.code : 'suppressed',
				outcome.kind === 'rejected' ? outcome.error : null,
			);
		},
	};
}

interface ResultRow {
	n: number;
	line: number | null;
	to_email: string;
	uuid: Uuid | null;
	state: MessageState | null;
	code: string | null;
	text: string | null;
	attempts: number | null;
}

/** Rows behind `after`; one more than asked for tells whether any follows. */
export function sliceResults(
	sql: Sql,
	{ id, after, limit, only }: Parameters<Operations['sliceMailingResults']>[0],
): MailingResults | null {
	const mailing = sql.get<{ seq: number }>('SELECT seq FROM mailings WHERE id = ?', id);
	if (mailing === undefined) return null;
	const findings = only === 'findings' ? "AND r.code IS NOT NULL AND r.code <> 'suppressed'" : '';
	const rows = sql.all<ResultRow>(
		`SELECT r.n, r.line, coalesce(r.to_email, m.to_email, '') AS to_email, m.uuid,
			CASE WHEN m.id IS NULL THEN NULL ELSE ${seenState} END AS state,
			r.code, coalesce(r.error, m.last_reply) AS text, m.attempts
		FROM mailing_results r
		JOIN mailings g ON g.seq = r.mailing_seq
		LEFT JOIN messages m ON m.id = r.message_id
		WHERE r.mailing_seq = ? AND r.n > ? ${findings}
		ORDER BY r.n
		LIMIT ?`,
		mailing.seq,
		after,
		limit + 1,
	);
	const shown = rows.slice(0, limit);
	return {
		results: shown.map(toResult),
		next: rows.length > limit ? (shown.at(-1)?.n ?? null) : null,
	};
}

function toResult({ line, to_email, uuid, state, code, text, attempts }: ResultRow): MailingResult {
	const without = code === 'suppressed' ? 'suppressed' : 'rejected';
	return {
		line,
		to: to_email,
		id: uuid,
		// A message that is gone was staged for nobody.
		state: state ?? (code === null ? 'canceled' : without),
		code,
		text,
		attempts: attempts ?? 0,
	};
}

interface ListedRow extends MailingRow {
	created_at: Micros;
	type: 'TRANSACTIONAL' | 'BULK' | null;
	subject: string | null;
	list_id: number | null;
	source: string | null;
}

/** Mailings as they are listed, in the order they were opened. */
export function pageMailings(
	sql: Sql,
	{ key, ...page }: Parameters<Operations['pageMailings']>[0],
): ReturnType<Operations['pageMailings']> {
	const where = key === undefined ? '' : 'WHERE g.key = ?';
	const values = key === undefined ? [] : [key];
	return {
		count: sql.number(`SELECT count(*) FROM mailings g ${where}`, ...values),
		results: sql
			.all<ListedRow>(
				`SELECT ${mailingColumns}, created_at, spec ->> 'source' AS source,
					spec ->> 'type' AS type, spec ->> 'list_id' AS list_id,
					(SELECT c.subject
					FROM submissions s
					JOIN contents c ON c.sha256 = s.content_sha256
					WHERE s.mailing_seq = g.seq AND g.requests = 0
					LIMIT 1) AS subject
				FROM mailings g
				${where}
				ORDER BY g.seq
				LIMIT ? OFFSET ?`,
				...values,
				...span(page),
			)
			.map(toMailing),
	};
}

function toMailing(row: ListedRow): Mailing {
	const { id, key, state, staged, suppressed, rejected, position, subject, list_id } = row;
	return {
		id,
		key,
		state,
		counts: { staged, suppressed, rejected },
		position,
		is_complete: row.is_complete === 1,
		type: row.type ?? 'TRANSACTIONAL',
		subject,
		list_id,
		// Part of a spec, checked when it came in.
		source: row.source === null ? null : (JSON.parse(row.source) as Record<string, string>),
		requests: row.requests === 1,
		date_created: formatDateTime(row.created_at),
	};
}
