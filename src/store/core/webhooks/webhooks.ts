/** Webhooks and the secrets that sign their deliveries: one signs, and for a time the previous one as well. */
import { type Micros, microsPerDay } from '../../../api/datetime.js';
import type { Webhook } from '../../../api/records.js';
import type { StoredSecret } from '../../notifications.js';
import type { Operations } from '../../operations.js';
import { insertKey, readKeys } from '../keys.js';
import { type Dated, dated, flag, selectPage, writtenOf } from '../rows.js';
import { column, insertNumbered, type Sql } from '../sql.js';

type WebhookRow = Omit<Dated<Webhook>, 'is_auth_enabled'> & { is_auth_enabled: number };

const columns = 'id, url, type, is_auth_enabled, login, password, created_at AS date_created';

export function createWebhooks(sql: Sql) {
	return {
		pageWebhooks: (page) =>
			selectPage(sql, { columns, from: 'webhooks', order: 'id' }, page, (row: WebhookRow) =>
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
			const known = await living(sql, now);
			if (known.length > 0) return known;
			insertKey(sql, { purpose: 'webhooks', ...fresh, now });
			return await living(sql, now);
		},
		rotateWebhookSecret: async ({ fresh, now, retire_at }) => {
			// Two at most: receivers get their new secret one at a time.
			const retire = "UPDATE keyring SET retired_at = ? WHERE purpose = 'webhooks' AND";
			sql.write(`${retire} retired_at > ?`, [now, now]);
			sql.write(`${retire} retired_at IS NULL`, [retire_at]);
			insertKey(sql, { purpose: 'webhooks', ...fresh, now });
			return await living(sql, now);
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

/** The password is the one that was set, as in the service document; a command that prints it masks it. */
function toRecord(sql: Sql, row: WebhookRow): Webhook {
	return { ...dated(row), is_auth_enabled: row.is_auth_enabled === 1, password: webhookPassword(sql, row) };
}

async function findWebhook(sql: Sql, id: number) {
	const row = await sql.get<WebhookRow>(`SELECT ${columns} FROM webhooks WHERE id = ?`, [id]);
	return row === undefined ? null : toRecord(sql, row);
}

export async function signingSecrets(sql: Sql, now: Micros): Promise<string[]> {
	return (await living(sql, now)).map(({ secret }) => secret);
}

async function living(sql: Sql, now: Micros): Promise<StoredSecret[]> {
	const stored = await sql.all<StoredSecret>(
		`SELECT id, secret, created_at, retired_at AS retires_at
		FROM keyring
		WHERE purpose = 'webhooks' AND (retired_at IS NULL OR retired_at > ?)
		ORDER BY retired_at IS NOT NULL, created_at DESC, id DESC`,
		[now],
	);
	return readKeys(sql, 'webhooks', stored);
}

const keptFor: Micros = 30 * microsPerDay;

export async function dropDeliveries(
	sql: Sql,
	{ now, limit }: { now: Micros; limit: number },
): Promise<{ changes: number }> {
	const orphans = await column<number>(
		sql,
		// Goes from webhook to webhook along the index (webhook_id): a log of millions of rows names few webhooks.
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
