/** The log of notifications is kept for 30 days; what is left of deleted webhooks goes at once. */
import { type Micros, microsPerDay } from '../../api/datetime.js';
import type { Sql } from './sql.js';

const keptFor: Micros = 30 * microsPerDay;

/** One slice of at most `limit` rows; how many there were. What still waits to be sent stays, however old. */
export function dropDeliveries(
	sql: Sql,
	{ now, limit }: { now: Micros; limit: number },
): { changes: number } {
	const ids = [...ofDeletedWebhooks(sql, limit), ...expired(sql, { now, limit })].slice(0, limit);
	for (const id of ids) {
		sql.run('DELETE FROM webhook_attempts WHERE delivery_id = ?', id);
		sql.run('DELETE FROM webhook_deliveries WHERE id = ?', id);
	}
	return { changes: ids.length };
}

function expired(sql: Sql, { now, limit }: { now: Micros; limit: number }): number[] {
	return idsOf(
		sql,
		// webhook_deliveries_by_time
		`SELECT d.id
		FROM webhook_deliveries d
		JOIN webhooks w ON w.id = d.webhook_id
		WHERE d.created_at <= ? AND (d.due_at IS NULL OR w.stopped_at IS NOT NULL)
		ORDER BY d.created_at, d.id
		LIMIT ?`,
		now - keptFor,
		limit,
	);
}

/** Goes from webhook to webhook along the index (webhook_id): a log of millions names few of them. */
function ofDeletedWebhooks(sql: Sql, limit: number): number[] {
	return idsOf(
		sql,
		`WITH RECURSIVE named (id) AS (
			SELECT min(webhook_id) FROM webhook_deliveries
			UNION ALL
			SELECT (SELECT min(webhook_id) FROM webhook_deliveries WHERE webhook_id > named.id)
			FROM named
			WHERE named.id IS NOT NULL
		)
		SELECT d.id
		FROM webhook_deliveries d
		WHERE d.webhook_id IN (SELECT id FROM named WHERE id IS NOT NULL AND id NOT IN (SELECT id FROM webhooks))
		LIMIT ?`,
		limit,
	);
}

function idsOf(sql: Sql, text: string, ...values: number[]): number[] {
	return sql.all<{ id: number }>(text, ...values).map(({ id }) => id);
}
