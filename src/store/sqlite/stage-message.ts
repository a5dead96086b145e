/** One recipient of a mailing becomes one staged message, or is found suppressed or at fault. */
import type { AcceptCounts } from '../../api/capabilities.js';
import type { Micros } from '../../api/datetime.js';
import type { Uuid } from '../../api/records.js';
import { messageUuid } from '../../engine/rules/ids.js';
import { missingVariables, overlayVariables, type Person, personVariables } from '../../engine/rules/meta.js';
import { mayReceive } from '../../engine/rules/subscription.js';
import type { MailingRow } from './mailing-rows.js';
import { parseNames, parseTexts } from './rows.js';
import type { Sql } from './sql.js';
import { insertMessage } from './submissions.js';
import { findSuppressions } from './suppressions.js';

/** What all recipients of a mailing share. */
export interface Staging {
	mailing: MailingRow;
	/** Within it an address gets one message: the mailing's id, or that of one of its requests. */
	scope: Uuid;
	submission: { seq: number; type: 'TRANSACTIONAL' | 'BULK'; list_id: number | null };
	/** The variables the content uses. */
	used: string[];
	context: Record<string, string>;
	now: Micros;
}

export interface Candidate {
	person: Person;
	to_key: string;
	list_id: number | null;
	subscriber_id: number | null;
	/** Over the mailing's own context. */
	given: Readonly<Record<string, string>>;
}

export type RowOutcome =
	| { kind: 'staged'; message: number }
	| { kind: 'suppressed' }
	| { kind: 'rejected'; code: string; error: string };

/** Once for many rows, of a mailing with one submission: one of requests has many, and this would take any of them. */
export function readStaging(sql: Sql, mailing: MailingRow, now: Micros): Staging {
	const row = sql.get<{
		seq: number;
		type: 'TRANSACTIONAL' | 'BULK';
		list_id: number | null;
		variables: string;
		context: string;
	}>('SELECT seq, type, list_id, variables, context FROM submissions WHERE mailing_seq = ?', mailing.seq);
	if (row === undefined) throw new Error(`mailing ${mailing.seq} has no submission`);
	const { seq, type, list_id } = row;
	const submission = { seq, type, list_id };
	return {
		mailing,
		scope: mailing.id,
		submission,
		used: parseNames(row.variables),
		context: parseTexts(row.context),
		now,
	};
}

/**
 * In the transaction of the caller, who counts the outcome. A suppression is said before missing variables, both before
 * a duplicate.
 */
export function stageMessage(sql: Sql, staging: Staging, candidate: Candidate): RowOutcome {
	const { mailing, scope, submission, used, context, now } = staging;
	const { person, to_key, list_id, subscriber_id, given } = candidate;
	if (!mayReceive(submission.type, findSuppressions(sql, to_key, now))) return { kind: 'suppressed' };
	const variables = overlayVariables(personVariables(person, used, context), used, given);
	const missing = mailing.strict_vars === 1 ? missingVariables(variables, used, context) : [];
	if (missing.length > 0) {
		const names = missing.map((name) => `#${name}#`).join(', ');
		return { kind: 'rejected', code: 'missing_variable', error: `${person.email}: no value for ${names}.` };
	}
	const message = insertMessage(sql, {
		uuid: messageUuid(scope, to_key),
		submission_seq: submission.seq,
		lane: mailing.seq,
		to: person.email,
		to_key,
		list_id,
		subscriber_id,
		variables,
		state: 'staged',
		now,
	});
	if (message !== null) return { kind: 'staged', message };
	return { kind: 'rejected', code: 'duplicate', error: `${person.email} is in this mailing already.` };
}

/** Adds to what was found of a mailing's recipients. */
export function addToCounts(
	sql: Sql,
	mailing_seq: number,
	{ staged, suppressed, rejected }: AcceptCounts,
): void {
	sql.run(
		`UPDATE mailings
		SET staged = staged + ?, suppressed = suppressed + ?, rejected = rejected + ?
		WHERE seq = ?`,
		staged,
		suppressed,
		rejected,
		mailing_seq,
	);
}
