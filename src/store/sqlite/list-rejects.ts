/**
 * Who of a list was left out of a mailing: the first of them, until the mailing is released or canceled. Kept beside the
 * answers to batches and not among the results: whoever may send reads those, and may not read a list.
 */
import type { Reject } from '../../api/capabilities.js';
import type { Sql } from './sql.js';

/** As many as an earlier slice or call has kept, in the order they were met. */
export function keptRejects(sql: Sql, mailing_seq: number, list_id: number): Reject[] {
	const row = sql.get<{ ack: string }>(
		'SELECT ack FROM mailing_acks WHERE mailing_seq = ? AND first = ?',
		mailing_seq,
		placeOf(list_id),
	);
	// Written by keepRejects and by nothing else.
	return row === undefined ? [] : (JSON.parse(row.ack) as Reject[]);
}

/** In place of those kept before. */
export function keepRejects(
	sql: Sql,
	{ mailing_seq, list_id }: { mailing_seq: number; list_id: number },
	rejects: readonly Reject[],
): void {
	sql.run(
		`INSERT INTO mailing_acks (mailing_seq, first, ack)
		VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET ack = excluded.ack`,
		mailing_seq,
		placeOf(list_id),
		JSON.stringify(rejects),
	);
}

/** Batches begin at row 0: below it a list takes no place of theirs. */
function placeOf(list_id: number): number {
	return -list_id;
}
