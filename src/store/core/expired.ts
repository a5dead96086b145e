/** What is kept for a time only: answers to repeated calls, uploads that nothing names, logs, heartbeats. */
import { type Micros, microsPerDay } from '../../api/datetime.js';
import { dropExpiredAttachments } from './attachments.js';
import type { Sql } from './sql.js';
import { dropDeliveries } from './webhooks.js';

interface Expiry {
	/** Deletes one slice of at most `limit` rows. */
	drop(sql: Sql, command: { now: Micros; limit: number }): Promise<{ changes: number }>;
	/** The rows that a transaction deletes at most, to keep it short. */
	slice: number;
}

/** The log of webhook deliveries stays for 30 days, all else for one. */
export const expiries: readonly Expiry[] = [
	{ drop: dropIdempotencyKeys, slice: 1_000 },
	// Each of up to 20 MiB.
	{ drop: dropExpiredAttachments, slice: 10 },
	{ drop: dropDeliveries, slice: 1_000 },
	{ drop: dropHeartbeats, slice: 1_000 },
];

async function dropIdempotencyKeys(sql: Sql, { now, limit }: { now: Micros; limit: number }) {
	return await sql.run(
		// idempotency_keys_by_time
		`DELETE FROM idempotency_keys
		WHERE (scope, key) IN (SELECT scope, key FROM idempotency_keys WHERE created_at <= ? LIMIT ?)`,
		now - microsPerDay,
		limit,
	);
}

/** Of processes that ended without removing theirs. */
async function dropHeartbeats(sql: Sql, { now }: { now: Micros; limit: number }) {
	return await sql.run('DELETE FROM processes WHERE heartbeat_at <= ?', now - microsPerDay);
}
