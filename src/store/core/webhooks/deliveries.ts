import { formatDateTime, type Micros } from '../../../api/datetime.js';
import type { DeliveryState, WebhookAttempt, WebhookDelivery } from '../../../api/deliveries.js';
import type { DeliveryConditions, ReplayDeliveries, Replayed } from '../../notifications.js';
import type { Operations } from '../../operations.js';
import { type Dated, dated, selectPage, timeOf } from '../rows.js';
import { type Conditions, column, conditionsOf, type Sql } from '../sql.js';

/** The state that readers see: a delivery that waits for a webhook that answered 410 is stopped. */
const seenState = `CASE WHEN d.state = 'pending' AND w.stopped_at IS NOT NULL THEN 'stopped' ELSE d.state END`;

const from = 'webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id';
const joins = 'LEFT JOIN messages m ON m.id = d.message_id';
const columns = `d.id AS seq, d.uuid AS id, d.webhook_id, d.type, m.uuid AS message_id, ${seenState} AS state,
	d.attempts, d.status_code AS last_status, d.error AS last_error, substr(d.answer, 1, 200) AS answer_excerpt, d.due_at,
	d.created_at AS date_created, d.attempted_at AS date_attempted, d.finished_at AS date_finished`;

type DeliveryRow = Omit<Dated<WebhookDelivery>, 'due_at' | 'date_attempted' | 'date_finished'> &
	Record<'due_at' | 'date_attempted' | 'date_finished', Micros | null> & { seq: number };

export function createDeliveries(sql: Sql) {
	return {
		pageDeliveries: async ({ page, page_size, ordering, ...conditions }) => {
			const order = `d.id ${ordering === '-date_created' ? 'DESC' : ''}`;
			const paged = { columns, from, joins, ...where(conditions), order };
			return await selectPage(sql, paged, { page, page_size }, toDelivery);
		},
		getDelivery: async ({ webhook_id, id }) => {
			const row = await sql.get<DeliveryRow & { payload: string; answer: string | null }>(
				`SELECT ${columns}, d.payload, d.answer FROM ${from} ${joins} WHERE d.uuid = ? AND d.webhook_id = ?`,
				[id, webhook_id],
			);
			if (row === undefined) return null;
			const { payload, answer, ...delivery } = row;
			return { ...toDelivery(delivery), payload, answer, delivery_attempts: await attemptsOf(sql, row.seq) };
		},
		replayDeliveries: (command) => replay(sql, command),
	} satisfies Partial<Operations>;
}

function where({ webhook_id, state, since }: DeliveryConditions): Conditions {
	return conditionsOf([
		['d.webhook_id = ?', webhook_id],
		[`${seenState} = ?`, state ?? undefined],
		['d.created_at >= ?', since ?? undefined],
	]);
}

function toDelivery({ seq: _, ...row }: DeliveryRow): WebhookDelivery {
	return {
		...dated(row),
		// While a row is leased this is the end of the lease, which is internal.
		due_at: row.state === 'pending' ? timeOf(row.due_at) : null,
		date_attempted: timeOf(row.date_attempted),
		date_finished: timeOf(row.date_finished),
	};
}

async function attemptsOf(sql: Sql, delivery: number): Promise<WebhookAttempt[]> {
	const rows = await sql.all<Omit<WebhookAttempt, 'at'> & { at: Micros }>(
		`SELECT number, at, status_code AS status, error, duration_ms
		FROM webhook_attempts
		WHERE delivery_id = ?
		ORDER BY number`,
		[delivery],
	);
	return rows.map((attempt) => ({ ...attempt, at: formatDateTime(attempt.at) }));
}

/** States in which a delivery may be replayed without being named: all in which it does not wait. */
const isFinal = `${seenState} IN ('delivered', 'failed', 'stopped')`;

async function replay(sql: Sql, command: ReplayDeliveries): Promise<Replayed> {
	const named = command.deliveries === null ? null : await findNamed(sql, command, command.deliveries);
	if (named?.refused) return named.refused;
	const ids = named?.ids ?? (await slice(sql, command));
	makeDue(sql, ids, command.now);
	const isLast = command.deliveries !== null || ids.length < command.limit;
	// Only in the last slice: until then nothing is sent, and `stopped` shows what is still to be found. A replay of
	// failed deliveries also restarts a webhook whose log is gone by now.
	if (isLast && (ids.length > 0 || command.after > 0 || command.failed)) {
		sql.write('UPDATE webhooks SET stopped_at = NULL WHERE id = ?', [command.webhook_id]);
	}
	return { kind: 'replayed', count: ids.length, last: isLast ? null : (ids.at(-1) ?? null) };
}

/** A waiting delivery keeps its place in the schedule and is due sooner. A stopped or final one begins anew. */
function makeDue(sql: Sql, ids: readonly number[], now: Micros): void {
	sql.write(
		`UPDATE webhook_deliveries AS d
		SET state = 'pending',
			due_at = ${sql.dialect.least}(coalesce(due_at, ?), ?),
			attempts_before = CASE WHEN ${seenState} = 'pending' THEN attempts_before ELSE attempts END,
			finished_at = NULL
		FROM webhooks w
		WHERE w.id = d.webhook_id AND ${sql.dialect.oneOf('d.id')}`,
		[now, now, JSON.stringify(ids)],
	);
}

interface Named {
	refused: Replayed | null;
	ids: number[];
}

async function findNamed(
	sql: Sql,
	{ webhook_id }: ReplayDeliveries,
	deliveries: readonly string[],
): Promise<Named> {
	const rows = await sql.all<{ uuid: string; id: number; state: DeliveryState }>(
		`SELECT d.uuid, d.id, d.state
		FROM ${sql.dialect.table({ delivery: 'TEXT' }, 'named')}
		CROSS JOIN webhook_deliveries d
		WHERE d.uuid = named.delivery AND d.webhook_id = ?`,
		[JSON.stringify(deliveries.map((delivery) => ({ delivery }))), webhook_id],
	);
	const found = new Map(rows.map((row) => [row.uuid, row]));
	const ids: number[] = [];
	for (const delivery of deliveries) {
		const row = found.get(delivery);
		if (row === undefined) return { refused: { kind: 'refused', delivery, why: 'unknown' }, ids };
		if (row.state === 'sending') return { refused: { kind: 'refused', delivery, why: 'sending' }, ids };
		ids.push(row.id);
	}
	return { refused: null, ids };
}

async function slice(
	sql: Sql,
	{ webhook_id, failed, since, after, limit }: ReplayDeliveries,
): Promise<number[]> {
	const selected = where({ webhook_id, state: null, since });
	const isWanted = failed ? `${seenState} IN ('failed', 'stopped')` : isFinal;
	return await column<number>(
		sql,
		`SELECT d.id FROM ${from} WHERE ${selected.where} AND ${isWanted} AND d.id > ? ORDER BY d.id LIMIT ?`,
		[...selected.values, after, limit],
	);
}
