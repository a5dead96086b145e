/** Cancels messages that wait for delivery. One in a worker's hands is past that: its outcome will be recorded. */
import type { Sql } from './sql.js';

// "Waiting" is the partial index messages_due (wake_at IS NOT NULL) without what is leased.
const cancel = `UPDATE messages SET state = 'canceled', wake_at = NULL, lease_owner = NULL`;
const isBulk = `submission_seq IN (SELECT seq FROM submissions WHERE type = 'BULK')`;

/** Bulk mail to the people of a list. Walks everything that waits: it is rare, an index would cost every send. */
export function cancelWaitingOfList(sql: Sql, list_id: number): void {
	sql.run(
		`${cancel}
		WHERE wake_at IS NOT NULL AND state <> 'leased' AND list_id = ? AND +${isBulk}`,
		list_id,
	);
}

/** Bulk mail to one person of a list; found by messages_of_address. */
export function cancelWaitingOfSubscriber(sql: Sql, person: { id: number; email_key: string }): void {
	sql.run(
		`${cancel}
		WHERE to_key = ? AND wake_at IS NOT NULL AND state <> 'leased' AND subscriber_id = ? AND +${isBulk}`,
		person.email_key,
		person.id,
	);
}

/** One message, found out to be unwanted at its lease. */
export function cancelMessage(sql: Sql, id: number): void {
	sql.run(`${cancel} WHERE id = ?`, id);
}
