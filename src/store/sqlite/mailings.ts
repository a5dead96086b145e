/** Mailings: rows are staged under a mailing whose one row says whether they may be leased. */
import type { MailingSpec, MailingStatus, Session } from '../../api/capabilities.js';
import type { RequestsSpec } from '../../api/mailings.js';
import type { Uuid } from '../../api/records.js';
import { noSuch, unverifiedSender } from '../../engine/rules/errors.js';
import { canonicalJson } from '../../engine/rules/ids.js';
import { specIdentity } from '../../engine/rules/mailing-spec.js';
import { createTally } from './figures.js';
import { findList } from './lists.js';
import { dropAcks, putBatch } from './mailing-batches.js';
import { pageMailings, sliceResults } from './mailing-results.js';
import { type MailingRow, mailingColumns, type Slices } from './mailing-rows.js';
import { countByState } from './messages.js';
import { flag } from './rows.js';
import { findSender } from './senders.js';
import type { Sql } from './sql.js';
import { stageList } from './staging.js';
import { insertSubmission } from './submissions.js';
import type { Operations } from './sync.js';

type MailingOperations = Pick<
	Operations,
	| 'mailingStatus'
	| 'openMailing'
	| 'addListToMailing'
	| 'putMailingBatch'
	| 'completeMailing'
	| 'pageMailings'
	| 'sliceMailingResults'
	| 'releaseMailing'
	| 'cancelMailing'
> &
	Pick<Slices, 'stageSlice' | 'dropStaged'>;

/** Each in one transaction of the caller. `stageSlice` and `dropStaged` do a slice: call them until nothing is left. */
export function createMailings(sql: Sql): MailingOperations {
	return {
		mailingStatus: ({ id }) => {
			const row = findMailing(sql, id);
			return row === null ? null : status(sql, row);
		},
		openMailing: (command) => openMailing(sql, command),
		stageSlice: (command) => {
			const row = findMailing(sql, command.mailing);
			return row === null || !takesLists(row) ? null : stageList(sql, row, command);
		},
		addListToMailing: ({ mailing, list_id, now }) => {
			const row = findMailing(sql, mailing);
			if (row === null || !takesLists(row)) return null;
			return stageList(sql, row, { list_id, now, limit: Number.MAX_SAFE_INTEGER });
		},
		putMailingBatch: ({ mailing, ...batch }) => {
			const row = findMailing(sql, mailing);
			return row === null ? { kind: 'not_found' } : putBatch(sql, row, batch);
		},
		completeMailing: (command) => complete(sql, command),
		pageMailings: (command) => pageMailings(sql, command),
		sliceMailingResults: (command) => sliceResults(sql, command),
		releaseMailing: (command) => release(sql, command),
		cancelMailing: ({ mailing, now }) => {
			const row = findMailing(sql, mailing);
			if (row === null) return false;
			sql.run(
				`UPDATE mailings
				SET state = 'canceled', has_open_work = (released_at IS NOT NULL), canceled_at = coalesce(canceled_at, ?)
				WHERE seq = ?`,
				now,
				row.seq,
			);
			dropAcks(sql, row.seq);
			return true;
		},
		dropStaged: (command) => Math.max(dropMessages(sql, command), dropResults(sql, command)),
	};
}

/** By messages_due: what is staged waits in the lane of its mailing. */
function dropMessages(sql: Sql, { mailing, limit }: { mailing: Uuid; limit: number }): number {
	return sql.run(
		`DELETE FROM messages
				WHERE id IN (
					SELECT id FROM messages
					WHERE wake_at IS NOT NULL AND lane =
						(SELECT seq FROM mailings WHERE id = ? AND state = 'canceled' AND released_at IS NULL)
					LIMIT ?
				)`,
		mailing,
		limit,
	).changes;
}

function dropResults(sql: Sql, { mailing, limit }: { mailing: Uuid; limit: number }): number {
	return sql.run(
		`DELETE FROM mailing_results
		WHERE (mailing_seq, n) IN (
			SELECT mailing_seq, n FROM mailing_results
			WHERE mailing_seq =
				(SELECT seq FROM mailings WHERE id = ? AND state = 'canceled' AND released_at IS NULL)
			LIMIT ?
		)`,
		mailing,
		limit,
	).changes;
}

function findMailing(sql: Sql, id: Uuid): MailingRow | null {
	return sql.get<MailingRow>(`SELECT ${mailingColumns} FROM mailings WHERE id = ?`, id) ?? null;
}

function session(row: MailingRow): { kind: 'opened'; session: Session } {
	return { kind: 'opened', session: { id: row.id, position: row.position } };
}

function openMailing(
	sql: Sql,
	{ id, key, spec, strict_vars, submission, now }: Parameters<Operations['openMailing']>[0],
): ReturnType<Operations['openMailing']> {
	const known = sql.get<MailingRow>(`SELECT ${mailingColumns} FROM mailings WHERE key = ?`, key);
	if (known !== undefined && !freeKey(sql, known))
		return isSame(known, spec) ? session(known) : { kind: 'conflict' };
	if (submission !== null && findSender(sql, submission.from_key) === null)
		return { kind: 'refused', errors: unverifiedSender };
	const list_id = submission?.list_id ?? null;
	if (list_id !== null && findList(sql, list_id) === null) {
		return { kind: 'refused', errors: noSuch('list_id', list_id) };
	}
	if (findMailing(sql, id) !== null) {
		const message = 'Another job is this mailing already.';
		return { kind: 'refused', errors: { campaign_unique_id: [{ code: 'unique', message }] } };
	}
	const { lastInsertRowid } = sql.run(
		`INSERT INTO mailings (id, key, spec, strict_vars, requests, state, created_at)
		VALUES (?, ?, ?, ?, ?, 'staged', ?)`,
		id,
		key,
		canonicalJson(spec),
		flag(strict_vars),
		flag(submission === null),
		now,
	);
	if (submission !== null) insertSubmission(sql, { ...submission, campaign: id }, Number(lastInsertRowid));
	return { kind: 'opened', session: { id, position: 0 } };
}

/** Nobody got anything of a mailing that was canceled before its release: its name may stand for another. */
function freeKey(sql: Sql, { seq }: MailingRow): boolean {
	const freed = sql.run(
		`UPDATE mailings
		SET key = key || ' (canceled ' || seq || ')'
		WHERE seq = ? AND state = 'canceled' AND released_at IS NULL`,
		seq,
	);
	return freed.changes > 0;
}

/** A list has no content of its own: a mailing of requests takes none. */
function takesLists({ state, requests }: MailingRow): boolean {
	return state === 'staged' && requests === 0;
}

function isSame({ spec }: MailingRow, other: MailingSpec | RequestsSpec): boolean {
	// Written by openMailing and by nothing else.
	return specIdentity(JSON.parse(spec) as MailingSpec | RequestsSpec) === specIdentity(other);
}

function complete(
	sql: Sql,
	{ mailing, position }: Parameters<Operations['completeMailing']>[0],
): ReturnType<Operations['completeMailing']> {
	const row = findMailing(sql, mailing);
	if (row === null) return { kind: 'not_found' };
	if (row.state !== 'staged') return { kind: 'closed', state: row.state };
	if (row.position !== position) return { kind: 'gap', position: row.position };
	sql.run('UPDATE mailings SET is_complete = 1 WHERE seq = ?', row.seq);
	return { kind: 'complete' };
}

function release(
	sql: Sql,
	{ mailing, expect_count, now }: Parameters<Operations['releaseMailing']>[0],
): ReturnType<Operations['releaseMailing']> {
	const row = findMailing(sql, mailing);
	if (row === null) return { kind: 'not_found' };
	if (row.state === 'canceled') return { kind: 'canceled' };
	if (row.staged !== expect_count) return { kind: 'count_differs', count: row.staged };
	// A release whose answer was lost is asked for again.
	if (row.state === 'released') return { kind: 'released' };
	sql.run(
		"UPDATE mailings SET state = 'released', has_open_work = 1, released_at = ? WHERE seq = ?",
		now,
		row.seq,
	);
	dropAcks(sql, row.seq);
	// Until now nothing was created that anybody could get.
	const tally = createTally(sql);
	tally.add({ at: now, campaign: row.id, type: 'CREATED', audience: 'all', by: row.staged });
	tally.write();
	return { kind: 'released' };
}

function status(sql: Sql, row: MailingRow): MailingStatus {
	const { id, key, state, staged, suppressed, rejected } = row;
	const messages = countByState(sql, { mailing: id });
	return { id, key, state, messages, counts: { staged, suppressed, rejected } };
}
