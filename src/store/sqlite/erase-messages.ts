/**
 * The messages to an erased person: they stay as figures, without address, variables, replies or who opened them
 * where. A submission that went to nobody else loses its context, its copies and its content too.
 */
import type { EmailKey } from '../../api/address.js';
import { erasedAddress } from '../../engine/rules/erasure.js';
import type { Sql } from './sql.js';
import { readEnvelope } from './stored-json.js';

/** How many there are, and how many of them were waiting. */
export interface ErasedMessages {
	messages: number;
	canceled: number;
}

/**
 * A message in a worker's hands is canceled too: its fence moves on, so that the outcome, whose reply may quote the
 * address, is recorded nowhere. It may have arrived all the same.
 */
export function eraseMessages(sql: Sql, address: EmailKey): ErasedMessages {
	const own = sql.all<{ id: number; submission_seq: number; wake_at: number | null }>(
		// messages_of_address
		'SELECT id, submission_seq, wake_at FROM messages WHERE to_key = ?',
		address,
	);
	for (const { id } of own) eraseMessage(sql, id);
	for (const seq of new Set(own.map(({ submission_seq }) => submission_seq))) eraseSubmission(sql, seq);
	return { messages: own.length, canceled: own.filter(({ wake_at }) => wake_at !== null).length };
}

function eraseMessage(sql: Sql, id: number): void {
	sql.run(
		// The id of a mailing's message is a hash of the address that anybody can make: another one takes its place.
		`UPDATE messages
		SET uuid = CASE WHEN lane > 0 THEN ${randomUuid} ELSE uuid END,
			to_email = ?, to_key = ?, subscriber_id = NULL, variables = '{}', last_reply = NULL,
			state = CASE WHEN wake_at IS NULL THEN state ELSE 'canceled' END,
			wake_at = NULL, lease_owner = NULL, fence = fence + 1
		WHERE id = ?`,
		erasedAddress,
		erasedAddress,
		id,
	);
	sql.run("UPDATE attempts SET text = '' WHERE message_id = ?", id);
	sql.run(
		'UPDATE events SET ip = NULL, user_agent = NULL, url = NULL, diagnostic = NULL WHERE message_id = ?',
		id,
	);
	eraseDeliveries(sql, id);
}

/** Notifications name the address, and what was answered may too: they go, sent or not. */
function eraseDeliveries(sql: Sql, message_id: number): void {
	sql.run(
		`DELETE FROM webhook_attempts
		WHERE delivery_id IN (SELECT id FROM webhook_deliveries WHERE message_id = ?)`,
		message_id,
	);
	// webhook_deliveries_of_message
	sql.run('DELETE FROM webhook_deliveries WHERE message_id = ?', message_id);
}

const randomUuid = `lower(
	hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) ||
	'-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))
)`;

/**
 * Nothing happens to a submission with other recipients: its context and its content are everybody's. So is that of a
 * mailing, which others may still be put into, unless its rows are requests of their own.
 */
function eraseSubmission(sql: Sql, seq: number): void {
	const isShared = sql.number(
		'SELECT EXISTS (SELECT 1 FROM messages WHERE submission_seq = ? AND to_key <> ?)',
		seq,
		erasedAddress,
	);
	const row = sql.get<{ envelope: string; content_sha256: string }>(
		`SELECT s.envelope, s.content_sha256
		FROM submissions s
		LEFT JOIN mailings g ON g.seq = s.mailing_seq
		WHERE s.seq = ? AND (g.seq IS NULL OR g.requests = 1)`,
		seq,
	);
	if (row === undefined || isShared === 1) return;
	sql.run(
		`INSERT INTO contents (sha256, subject, text, html, disable_inline)
		VALUES ('erased', '(erased)', '(erased)', NULL, 0)
		ON CONFLICT DO NOTHING`,
	);
	const { from } = readEnvelope(row.envelope);
	sql.run(
		"UPDATE submissions SET context = '{}', envelope = ?, content_sha256 = 'erased' WHERE seq = ?",
		JSON.stringify({ from, reply_to: [], cc: [], bcc: [], headers: {} }),
		seq,
	);
	// Walks all submissions: it is rare, an index would cost every send.
	sql.run(
		`DELETE FROM contents
		WHERE sha256 = ? AND sha256 <> 'erased'
			AND NOT EXISTS (SELECT 1 FROM submissions WHERE content_sha256 = contents.sha256)`,
		row.content_sha256,
	);
}
