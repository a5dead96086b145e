/** Cancels messages that wait for delivery. One in a worker's hands is past that: its outcome will be recorded. */
import type { Sql } from './sql.js';

// "Waiting" is the partial index messages_due (wake_at IS NOT NULL) without what is leased.
const cancel = `UPDATE messages SET state = 'canceled', wake_at = NULL, lease_owner = NULL`;
const isBulk = `submission_seq IN (SELECT seq FROM submissions WHERE type = 'BULK')`;

/** Bulk mail to the people of a list. Walks everything that waits: it is rare, an index would cost every send. */
export function cancelWaitingOfList(sql: Sql, list_id: number): void {
	sql.run(
		`${cancel}, last_reply = 'not sent: the subscriber was deleted'
		WHERE wake_at IS NOT NULL AND state <> 'leased' AND list_id = ? AND +${isBulk}`,
		list_id,
	);
}

/** Bulk mail to one person of a list; found by messages_of_address. */
export function cancelWaitingOfSubscriber(sql: Sql, person: { id: number; email_key: string }): void {
	sql.run(
		`${cancel}, last_reply = 'not sent: the subscriber was deleted'
		WHERE to_key = ? AND wake_at IS NOT NULL AND state <> 'leased' AND subscriber_id = ? AND +${isBulk}`,
		person.email_key,
		person.id,
	);
}

/** One message. `why`: what is to be read of it afterwards; null keeps what the last server said. */
export function cancelMessage(sql: Sql, id: number, why: string | null): void {
	sql.run(`${cancel}, last_reply = coalesce(?, last_reply) WHERE id = ?`, why, id);
}
