/** Expands a list into staged messages, beside the data, in bounded slices. */
import type { AcceptCounts, Reject } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import { messageUuid } from '../../engine/rules/ids.js';
import { missingVariables, personVariables } from '../../engine/rules/meta.js';
import { mayReceive } from '../../engine/rules/subscription.js';
import { findList } from './lists.js';
import { type MailingRow, maxListedRejects, positionOf, type StagedSlice } from './mailing-rows.js';
import { parseNames, parseRecord, parseTexts, type SubscriberRow, subscriberColumns } from './rows.js';
import type { Sql } from './sql.js';
import { insertMessage } from './submissions.js';
import { findSuppressions } from './suppressions.js';

interface Expansion {
	mailing: MailingRow;
	submission: { seq: number; type: 'TRANSACTIONAL' | 'BULK' };
	used: string[];
	context: Record<string, string>;
	list_id: number;
	email_reason: string;
	now: Micros;
}

type RowOutcome =
	| { kind: 'staged' }
	| { kind: 'suppressed' }
	| { kind: 'rejected'; code: string; error: string };

/** Goes on after the last subscriber it has seen, so that adding a list again adds who came since. */
export function stageList(
	sql: Sql,
	mailing: MailingRow,
	{ list_id, now, limit }: { list_id: number; now: Micros; limit: number },
): StagedSlice | null {
	const list = findList(sql, list_id);
	if (list === null) return null;
	const expansion: Expansion = {
		...readSubmission(sql, mailing.seq),
		mailing,
		list_id,
		email_reason: list.email_reason,
		now,
	};
	const people = nextPeople(sql, expansion, limit);
	const counts: AcceptCounts = { staged: 0, suppressed: 0, rejected: 0 };
	const rejects: Reject[] = [];
	const first = positionOf(mailing);
	people.forEach((person, index) => {
		const outcome = stagePerson(sql, expansion, person);
		counts[outcome.kind] += 1;
		if (outcome.kind !== 'rejected' || rejects.length >= maxListedRejects) return;
		rejects.push({ row: first + index, code: outcome.code, error: outcome.error });
	});
	keepPlace(sql, expansion, people.at(-1)?.id ?? null, counts);
	return { position: first + people.length, counts, rejects, isDone: people.length < limit };
}

function readSubmission(sql: Sql, mailing_seq: number): Pick<Expansion, 'submission' | 'used' | 'context'> {
	const row = sql.get<{
		seq: number;
		type: 'TRANSACTIONAL' | 'BULK';
		variables: string;
		context: string;
	}>('SELECT seq, type, variables, context FROM submissions WHERE mailing_seq = ?', mailing_seq);
	if (row === undefined) throw new Error(`mailing ${mailing_seq} has no submission`);
	const { seq, type } = row;
	return {
		submission: { seq, type },
		used: parseNames(row.variables),
		context: parseTexts(row.context),
	};
}

function nextPeople(sql: Sql, { mailing, list_id }: Expansion, limit: number): SubscriberRow[] {
	const after = sql.number(
		'SELECT coalesce(max(after_id), 0) FROM mailing_lists WHERE mailing_seq = ? AND list_id = ?',
		mailing.seq,
		list_id,
	);
	return sql.all<SubscriberRow>(
		`SELECT ${subscriberColumns}
		FROM subscribers
		WHERE list_id = ? AND id > ? AND is_active = 1
		ORDER BY id
		LIMIT ?`,
		list_id,
		after,
		limit,
	);
}

function stagePerson(sql: Sql, expansion: Expansion, row: SubscriberRow): RowOutcome {
	const { mailing, submission, used, context, email_reason, now, list_id } = expansion;
	if (!mayReceive(submission.type, findSuppressions(sql, row.email_key, now))) return { kind: 'suppressed' };
	const person = { email: row.email, name: row.name, email_reason, meta: parseRecord(row.meta) };
	const variables = personVariables(person, used, context);
	const missing = mailing.strict_vars === 1 ? missingVariables(variables, used, context) : [];
	if (missing.length > 0) {
		const names = missing.map((name) => `#${name}#`).join(', ');
		return { kind: 'rejected', code: 'missing_variable', error: `${row.email}: no value for ${names}.` };
	}
	const isNew = insertMessage(sql, {
		uuid: messageUuid(mailing.id, row.email_key),
		submission_seq: submission.seq,
		lane: mailing.seq,
		to: row.email,
		to_key: row.email_key,
		list_id,
		subscriber_id: row.id,
		variables,
		state: 'staged',
		now,
	});
	if (isNew) return { kind: 'staged' };
	return { kind: 'rejected', code: 'duplicate', error: `${row.email} is in this mailing already.` };
}

function keepPlace(
	sql: Sql,
	{ mailing, list_id }: Expansion,
	lastId: number | null,
	{ staged, suppressed, rejected }: AcceptCounts,
): void {
	if (lastId === null) return;
	sql.run(
		`INSERT INTO mailing_lists (mailing_seq, list_id, after_id)
		VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET after_id = excluded.after_id`,
		mailing.seq,
		list_id,
		lastId,
	);
	sql.run(
		`UPDATE mailings
		SET staged = staged + ?, suppressed = suppressed + ?, rejected = rejected + ?
		WHERE seq = ?`,
		staged,
		suppressed,
		rejected,
		mailing.seq,
	);
}
