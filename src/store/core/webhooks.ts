/** Webhooks and their secrets: the newest secret signs calls, and for a time the previous secret does too. */
import { formatDateTime, type Micros, microsPerDay } from '../../api/datetime.js';
import type { DeliveryState, WebhookAttempt, WebhookDelivery } from '../../api/deliveries.js';
import type { Webhook } from '../../api/records.js';
import type { Operations } from '../operations.js';
import type { DeliveryConditions, ReplayDeliveries } from '../queue.js';
import { findKeys, insertKey } from './keys.js';
import {
	type Conditions,
	column,
	conditionsOf,
	type Dated,
	dated,
	flag,
	insertNumbered,
	type Sql,
	selectPage,
	timeOf,
	writtenOf,
} from './sql.js';

type WebhookRow = Omit<Dated<Webhook>, 'is_auth_enabled'> & { is_auth_enabled: number };

const webhookColumns = 'id, url, type, is_auth_enabled, login, password, created_at AS date_created';

export function createWebhooks(sql: Sql) {
	return {
		pageWebhooks: (page) =>
			selectPage(sql, { columns: webhookColumns, from: 'webhooks', order: 'id' }, page, (row: WebhookRow) =>
				toRecord(sql, row),
			),
		getWebhook: ({ id }) => findWebhook(sql, id),
		stoppedWebhooks: () =>
			sql.all<{ id: number; stopped_at: Micros; waiting: number }>(
				`SELECT w.id, w.stopped_at, (
					SELECT count(*)
					FROM webhook_deliveries d
					WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL
				) AS waiting
				FROM webhooks w
				WHERE w.stopped_at IS NOT NULL
				ORDER BY w.id`,
			),
		createWebhook: async ({ input, now }) => {
			const { url, type, login, password } = input;
			const is_auth_enabled = flag(input.is_auth_enabled);
			const row = { url, type, is_auth_enabled, login, password: '', created_at: now };
			const id = await insertNumbered(sql, 'webhooks', row);
			setPassword(sql, id, password);
			return writtenOf(await findWebhook(sql, id));
		},
		patchWebhook: async ({ id, patch }) => {
			const stored = await findWebhook(sql, id);
			if (stored === null) return { kind: 'not_found' };
			const { url, type, is_auth_enabled, login, password } = { ...stored, ...patch };
			sql.write(
				`UPDATE webhooks
				SET url = ?, type = ?, is_auth_enabled = ?, login = ?, stopped_at = NULL
				WHERE id = ?`,
				[url, type, flag(is_auth_enabled), login, id],
			);
			setPassword(sql, id, password);
			return writtenOf(await findWebhook(sql, id));
		},
		deleteWebhook: async ({ id }) => (await sql.run('DELETE FROM webhooks WHERE id = ?', [id])).changes === 1,
		ensureWebhookSecret: async ({ fresh, now }) => {
			const known = await findKeys(sql, 'webhooks', now);
			if (known.length > 0) return known;
			insertKey(sql, { purpose: 'webhooks', ...fresh, now });
			return await findKeys(sql, 'webhooks', now);
		},
		rotateWebhookSecret: async ({ fresh, now, retire_at }) => {
			// Keep the old secret valid for a time, because receivers do not switch at once.
			const retire = "UPDATE keyring SET retired_at = ? WHERE purpose = 'webhooks' AND";
			sql.write(`${retire} retired_at > ?`, [now, now]);
			sql.write(`${retire} retired_at IS NULL`, [retire_at]);
			insertKey(sql, { purpose: 'webhooks', ...fresh, now });
			return await findKeys(sql, 'webhooks', now);
		},
		pageDeliveries: async ({ page, page_size, ordering, ...conditions }) => {
			const order = `d.id ${ordering === '-date_created' ? 'DESC' : ''}`;
			const paged = { columns: deliveryColumns, from, joins, ...where(conditions), order };
			return await selectPage(sql, paged, { page, page_size }, toDelivery);
		},
		getDelivery: async ({ webhook_id, id }) => {
			const row = await sql.get<DeliveryRow & { payload: string; answer: string | null }>(
				`SELECT ${deliveryColumns}, d.payload, d.answer FROM ${from} ${joins} WHERE d.uuid = ? AND d.webhook_id = ?`,
				[id, webhook_id],
			);
			if (row === undefined) return null;
			const { payload, answer, ...delivery } = row;
			return { ...toDelivery(delivery), payload, answer, delivery_attempts: await attemptsOf(sql, row.seq) };
		},
		/** A waiting delivery keeps its attempts and becomes due sooner. A stopped or final delivery starts anew. */
		replayDeliveries: async (command) => {
			const { webhook_id, deliveries, now } = command;
			const ids: number[] = deliveries === null ? await slice(sql, command) : [];
			const found = await findNamed(sql, webhook_id, deliveries ?? []);
			for (const delivery of deliveries ?? []) {
				const { id, state } = found.get(delivery) ?? { id: 0, state: 'unknown' };
				if (state === 'unknown' || state === 'sending') return { kind: 'refused', delivery, why: state };
				ids.push(id);
			}
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
			const isLast = deliveries !== null || ids.length < command.limit;
			// Restart the webhook only after the last slice, because the next slices select deliveries that show as
			// `stopped`. A replay of failed deliveries restarts the webhook even if it finds no failed delivery.
			if (isLast && (ids.length > 0 || command.after > 0 || command.failed))
				sql.write('UPDATE webhooks SET stopped_at = NULL WHERE id = ?', [webhook_id]);
			return { kind: 'replayed', count: ids.length, last: isLast ? null : (ids.at(-1) ?? null) };
		},
	} satisfies Partial<Operations>;
}

function setPassword(sql: Sql, id: number, password: string): void {
	const stored = password === '' ? '' : sql.secrets.wrap(password, `webhooks ${id}`);
	sql.write('UPDATE webhooks SET password = ? WHERE id = ?', [stored, id]);
}

export function webhookPassword(
	{ secrets }: Sql,
	{ id, password }: { id: number; password: string },
): string {
	return secrets.unwrap(password, `webhooks ${id}`);
}

/** Returns the password in plain text, as the service document says. Commands that print it mask it. */
function toRecord(sql: Sql, row: WebhookRow): Webhook {
	return { ...dated(row), is_auth_enabled: row.is_auth_enabled === 1, password: webhookPassword(sql, row) };
}

async function findWebhook(sql: Sql, id: number) {
	const row = await sql.get<WebhookRow>(`SELECT ${webhookColumns} FROM webhooks WHERE id = ?`, [id]);
	return row === undefined ? null : toRecord(sql, row);
}

const keptFor: Micros = 30 * microsPerDay;

export async function dropDeliveries(
	sql: Sql,
	{ now, limit }: { now: Micros; limit: number },
): Promise<{ changes: number }> {
	const orphans = await column<number>(
		sql,
		// Steps through the index from webhook to webhook, because a log of millions of rows has few webhooks.
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
		[limit],
	);
	const expired = await column<number>(
		sql,
		`SELECT d.id
		FROM webhook_deliveries d
		JOIN webhooks w ON w.id = d.webhook_id
		WHERE d.created_at <= ? AND (d.due_at IS NULL OR w.stopped_at IS NOT NULL)
		ORDER BY d.created_at, d.id
		LIMIT ?`,
		[now - keptFor, limit],
	);
	const ids = [...orphans, ...expired].slice(0, limit);
	for (const id of ids) {
		sql.write('DELETE FROM webhook_attempts WHERE delivery_id = ?', [id]);
		sql.write('DELETE FROM webhook_deliveries WHERE id = ?', [id]);
	}
	return { changes: ids.length };
}

/** A webhook stops after it answers 410. Its waiting deliveries then show as `stopped`. */
const seenState = `CASE WHEN d.state = 'pending' AND w.stopped_at IS NOT NULL THEN 'stopped' ELSE d.state END`;

const from = 'webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id';
const joins = 'LEFT JOIN messages m ON m.id = d.message_id';
const deliveryColumns = `d.id AS seq, d.uuid AS id, d.webhook_id, d.type, m.uuid AS message_id, ${seenState} AS state,
	d.attempts, d.status_code AS last_status, d.error AS last_error, substr(d.answer, 1, 200) AS answer_excerpt, d.due_at,
	d.created_at AS date_created, d.attempted_at AS date_attempted, d.finished_at AS date_finished`;

type DeliveryRow = Omit<Dated<WebhookDelivery>, 'due_at' | 'date_attempted' | 'date_finished'> &
	Record<'due_at' | 'date_attempted' | 'date_finished', Micros | null> & { seq: number };

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
		// During a lease, `due_at` is the end of the lease, which is internal.
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

async function findNamed(sql: Sql, webhook_id: number, deliveries: readonly string[]) {
	const rows = await sql.all<{ uuid: string; id: number; state: DeliveryState }>(
		`SELECT d.uuid, d.id, d.state
		FROM ${sql.dialect.table({ delivery: 'TEXT' }, 'named')}
		CROSS JOIN webhook_deliveries d
		WHERE d.uuid = named.delivery AND d.webhook_id = ?`,
		[JSON.stringify(deliveries.map((delivery) => ({ delivery }))), webhook_id],
	);
	return new Map(rows.map((row) => [row.uuid, row]));
}

async function slice(
	sql: Sql,
	{ webhook_id, failed, since, after, limit }: ReplayDeliveries,
): Promise<number[]> {
	const selected = where({ webhook_id, state: null, since });
	const isWanted = `${seenState} IN ('failed', 'stopped'${failed ? '' : ", 'delivered'"})`;
	return await column<number>(
		sql,
		`SELECT d.id FROM ${from} WHERE ${selected.where} AND ${isWanted} AND d.id > ? ORDER BY d.id LIMIT ?`,
		[...selected.values, after, limit],
	);
}
