/** Settings of the database, and facts about the database itself. */
import { limitSettings } from '../../engine/rules/limits.js';
import type { Operations } from '../operations.js';
import { recountFigures } from './figures.js';
import { startWaking } from './limits/turns.js';
import { countByState } from './messages.js';
import { forgetFault } from './queue-state.js';
import type { Sql } from './sql.js';
import { timeZone } from './tally.js';

/**
 * `putSettings` applies its consequences in the same transaction: it recounts figures, forgets a fault, and starts
 * waking messages that wait for a limit.
 */
export function createSettings(sql: Sql) {
	return {
		getSettings: () =>
			Object.fromEntries(
				sql
					.all<{ name: string; value: string }>(
						`SELECT name, CASE name WHEN 'smtp_password' THEN unwrap(value, 'settings ' || name) ELSE value END AS value
						FROM settings
						ORDER BY name`,
					)
					.map(({ name, value }) => [name, value]),
			),
		putSettings: ({ values, now }) => {
			const zone = timeZone(sql);
			for (const [name, value] of Object.entries(values)) putSetting(sql, { name, value, now });
			if ('smtp_url' in values || 'smtp_password' in values) forgetFault(sql);
			if (timeZone(sql) !== zone) recountFigures(sql, timeZone(sql));
			if (Object.keys(values).some((name) => Object.hasOwn(limitSettings, name))) startWaking(sql, now);
		},
		status: () => ({
			schema_version: sql.number('SELECT user_version FROM pragma_user_version'),
			size_bytes: sql.number('SELECT page_count * page_size FROM pragma_page_count, pragma_page_size'),
			lists: sql.number('SELECT count(*) FROM lists'),
			subscribers: sql.number('SELECT coalesce(sum(active_count + inactive_count), 0) FROM lists'),
			suppressions: sql.number('SELECT count(*) FROM suppressions'),
			messages: countByState(sql, null),
			stopped_webhooks: sql.all<{ id: number; url: string; stopped_at: number }>(
				'SELECT id, url, stopped_at FROM webhooks WHERE stopped_at IS NOT NULL ORDER BY id',
			),
		}),
	} satisfies Partial<Operations>;
}

function putSetting(
	sql: Sql,
	{ name, value, now }: { name: string; value: string | null; now: number },
): void {
	if (value === null) sql.run('DELETE FROM settings WHERE name = ?', name);
	else {
		sql.run(
			`INSERT INTO settings (name, value, updated_at)
			VALUES (?, ${name === 'smtp_password' ? "wrap(?, 'settings smtp_password')" : '?'}, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
			name,
			value,
			now,
		);
	}
}
