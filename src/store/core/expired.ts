import { type Micros, microsPerDay } from '../../api/datetime.js';
import { dropExpiredAttachments } from './attachments.js';
import { dropBodies } from './retention/bodies.js';
import { dropEvents, dropLeftOut, dropMessages, dropOfCampaigns } from './retention/messages.js';
import type { Sql } from './sql.js';
import { dropDeliveries } from './webhooks/webhooks.js';

export interface SliceOfExpired {
	now: Micros;
	limit: number;
	after: number;
	/** See `onlyLinks` of the contents; the caller loads the HTML parser, and only while it deletes. */
	onlyLinks: (html: string) => string | null;
}

export interface Expiry {
	drop(sql: Sql, command: SliceOfExpired): Promise<{ next: number | null }>;
	slice: number;
}

/** The log of webhook deliveries stays for 30 days, heartbeats, answers and uploads for one; settings say how long messages do. */
export const expiries: readonly Expiry[] = [
	{ drop: whileFull(dropIdempotencyKeys), slice: 1_000 },
	{ drop: whileFull(dropExpiredAttachments), slice: 10 },
	{ drop: whileFull(dropDeliveries), slice: 1_000 },
	{ drop: whileFull(dropHeartbeats), slice: 1_000 },
	{ drop: dropEvents, slice: 2_000 },
	{ drop: dropOfCampaigns, slice: 1_000 },
	{ drop: whileFull(dropLeftOut), slice: 1_000 },
	{ drop: dropMessages, slice: 200 },
	{ drop: dropBodies, slice: 20 },
];

export function whileFull(
	drop: (sql: Sql, command: { now: Micros; limit: number }) => Promise<{ changes: number }>,
): Expiry['drop'] {
	return async (sql, command) => ({
		next: (await drop(sql, command)).changes >= command.limit ? 0 : null,
	});
}

async function dropIdempotencyKeys(sql: Sql, { now, limit }: { now: Micros; limit: number }) {
	return await sql.run(
		`DELETE FROM idempotency_keys
		WHERE (scope, key) IN (SELECT scope, key FROM idempotency_keys WHERE created_at <= ? LIMIT ?)`,
		[now - microsPerDay, limit],
	);
}

async function dropHeartbeats(sql: Sql, { now }: { now: Micros }) {
	return await sql.run('DELETE FROM processes WHERE heartbeat_at <= ?', [now - microsPerDay]);
}
