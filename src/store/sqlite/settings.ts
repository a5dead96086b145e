/** Settings of the database, its keys, and what it says about itself. */
import { limitSettings } from '../../engine/rules/limits.js';
import type { StoredKey } from '../keys.js';
import { recountFigures, timeZone } from './figures.js';
import { countByState } from './messages.js';
import { forgetFault } from './queue-pauses.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';
import { startWaking } from './wake-held.js';

type SettingOperations = Pick<Operations, 'getSettings' | 'putSettings' | 'ensureKey' | 'status'>;

/**
 * `putSettings` has its consequences in the same transaction: figures are recounted, a fault is forgotten, and the
 * waking of those who wait for a limit begins.
 */
export function createSettings(sql: Sql): SettingOperations {
	return {
		getSettings: () =>
			Object.fromEntries(
				sql
					.all<{ name: string; value: string }>('SELECT name, value FROM settings ORDER BY name')
					.map(({ name, value }) => [name, value]),
			),
		putSettings: ({ values, now }) => {
			const zone = timeZone(sql);
			for (const [name, value] of Object.entries(values)) putSetting(sql, { name, value, now });
			if ('smtp_url' in values || 'smtp_password' in values) forgetFault(sql);
			if (timeZone(sql) !== zone) recountFigures(sql, timeZone(sql));
			if (Object.keys(values).some((name) => Object.hasOwn(limitSettings, name))) startWaking(sql, now);
		},
		ensureKey: ({ purpose, fresh, rotateAfter, now }) => {
			const keys = findKeys(sql, purpose);
			const [newest] = keys;
			if (newest !== undefined && newest.created_at > now - rotateAfter) return keys;
			sql.run(
				'INSERT INTO keyring (purpose, id, secret, created_at) VALUES (?, ?, ?, ?)',
				purpose,
				fresh.id,
				fresh.secret,
				now,
			);
			return findKeys(sql, purpose);
		},
		status: () => ({
			schema_version: Number(sql.db.pragma('user_version', { simple: true })),
			size_bytes: sql.number('SELECT page_count * page_size FROM pragma_page_count, pragma_page_size'),
			lists: sql.number('SELECT count(*) FROM lists'),
			subscribers: sql.number('SELECT coalesce(sum(active_count + inactive_count), 0) FROM lists'),
			suppressions: sql.number('SELECT count(*) FROM suppressions'),
			messages: countByState(sql, null),
			stopped_webhooks: sql.all<{ id: number; url: string; stopped_at: number }>(
				'SELECT id, url, stopped_at FROM webhooks WHERE stopped_at IS NOT NULL ORDER BY id',
			),
		}),
	};
}

function putSetting(
	sql: Sql,
	{ name, value, now }: { name: string; value: string | null; now: number },
): void {
	if (value === null) sql.run('DELETE FROM settings WHERE name = ?', name);
	else {
		sql.run(
			`INSERT INTO settings (name, value, updated_at)
			VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
			name,
			value,
			now,
		);
	}
}

function findKeys(sql: Sql, purpose: string): StoredKey[] {
	return sql.all<StoredKey>(
		`SELECT id, secret, created_at
		FROM keyring
		WHERE purpose = ? AND retired_at IS NULL
		ORDER BY created_at DESC, id DESC`,
		purpose,
	);
}
