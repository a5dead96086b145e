/** Subscriptions to notifications. */
import type { Micros } from '../../api/datetime.js';
import { flag, span, toWebhook, type WebhookRow } from './rows.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';

type WebhookOperations = Pick<
	Operations,
	'pageWebhooks' | 'getWebhook' | 'stoppedWebhooks' | 'createWebhook' | 'patchWebhook' | 'deleteWebhook'
>;

const columns = 'id, url, type, is_auth_enabled, login, password, created_at';

/** Any change lets a webhook that was stopped (410) begin again. */
export function createWebhooks(sql: Sql): WebhookOperations {
	return {
		pageWebhooks: (page) => ({
			count: sql.number('SELECT count(*) FROM webhooks'),
			results: sql
				.all<WebhookRow>(`SELECT ${columns} FROM webhooks ORDER BY id LIMIT ? OFFSET ?`, ...span(page))
				.map(toWebhook),
		}),
		getWebhook: ({ id }) => findWebhook(sql, id),
		stoppedWebhooks: () =>
			sql.all<{ id: number; stopped_at: Micros; waiting: number }>(
				// webhook_deliveries_turn (webhook_id, due_at)
				`SELECT w.id, w.stopped_at, (
					SELECT count(*)
					FROM webhook_deliveries d
					WHERE d.webhook_id = w.id AND d.due_at IS NOT NULL
				) AS waiting
				FROM webhooks w
				WHERE w.stopped_at IS NOT NULL
				ORDER BY w.id`,
			),
		createWebhook: ({ input, now }) => {
			const { lastInsertRowid } = sql.run(
				`INSERT INTO webhooks (url, type, is_auth_enabled, login, password, created_at)
				VALUES (?, ?, ?, ?, ?, ?)`,
				input.url,
				input.type,
				flag(input.is_auth_enabled),
				input.login,
				input.password,
				now,
			);
			return written(sql, Number(lastInsertRowid));
		},
		patchWebhook: ({ id, patch }) => {
			const stored = findWebhook(sql, id);
			if (stored === null) return { kind: 'not_found' };
			const { url, type, is_auth_enabled, login, password } = { ...stored, ...patch };
			sql.run(
				`UPDATE webhooks
				SET url = ?, type = ?, is_auth_enabled = ?, login = ?, password = ?, stopped_at = NULL
				WHERE id = ?`,
				url,
				type,
				flag(is_auth_enabled),
				login,
				password,
				id,
			);
			return written(sql, id);
		},
		deleteWebhook: ({ id }) => sql.run('DELETE FROM webhooks WHERE id = ?', id).changes === 1,
	};
}

function findWebhook(sql: Sql, id: number) {
	const row = sql.get<WebhookRow>(`SELECT ${columns} FROM webhooks WHERE id = ?`, id);
	return row === undefined ? null : toWebhook(row);
}

function written(sql: Sql, id: number) {
	const record = findWebhook(sql, id);
	return record === null ? ({ kind: 'not_found' } as const) : ({ kind: 'written', record } as const);
}
