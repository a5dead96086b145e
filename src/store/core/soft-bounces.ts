/**
 * Soft bounces in a row for one address, from reports that come back; `recipients.ts` counts those of replies of mail
 * servers. Enough of them over enough time disable the address (`isSoftBounceLimit`).
 */

import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { ReturnedReport } from '../../engine/rules/reported-recipients.js';
import { isSoftBounceLimit } from '../../engine/rules/subscription.js';
import { stopMail } from './recipients.js';
import type { Sql } from './sql.js';

/**
 * One more soft bounce in a row, from a report. The next server took each of these messages first, so the count that a
 * successful send ends does not apply here. The row is that of the messages to this address up to this one, back to the
 * last that arrived or that reached the limit before.
 */
export async function reportedSoftBounce(
	sql: Sql,
	{ id, to_key }: { id: number; to_key: EmailKey },
	{ sha256, at }: ReturnedReport,
): Promise<void> {
	const run = await sql.get<{ count: number; since: Micros | null }>(
		// messages_of_address
		`SELECT count(*) AS count, min(f.first_at) AS since
		FROM messages m
		JOIN message_firsts f ON f.message_id = m.id AND f.type = 'SOFTBOUNCED'
		WHERE m.to_key = ? AND m.id <= ? AND m.id > (
			SELECT coalesce(max(b.id), 0)
			FROM messages b
			WHERE b.to_key = ? AND b.id < ? AND (b.state = 'sent' OR EXISTS (
				SELECT 1 FROM bounce_reports r WHERE r.message_id = b.id AND r.ends_run = 1
			))
		)`,
		to_key,
		id,
		to_key,
		id,
	);
	if (run === undefined || !isSoftBounceLimit({ count: run.count, since: run.since ?? at }, at)) return;
	const isActive = 'SELECT EXISTS (SELECT 1 FROM subscribers WHERE email_key = ? AND is_active = 1)';
	if ((await sql.number(isActive, to_key)) === 0) return;
	await stopMail(sql, { address: to_key, list_id: null, reason: 'SOFTBOUNCED', source: 'BOUNCE', now: at });
	sql.write('UPDATE bounce_reports SET ends_run = 1 WHERE sha256 = ?', sha256);
}
