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
		getSettings: async () =>
			Object.fromEntries(
				(
					await sql.all<{ name: string; value: string }>(
						`SELECT name, CASE name WHEN 'smtp_password' THEN unwrap(value, 'settings ' || name) ELSE value END AS value
						FROM settings
						ORDER BY name`,
					)
				).map(({ name, value }) => [name, value]),
			),
		putSettings: async ({ values, now }) => {
			const zone = await timeZone(sql);
			for (const [name, value] of Object.entries(values)) await putSetting(sql, { name, value, now });
			if ('smtp_url' in values || 'smtp_password' in values) await forgetFault(sql);
			if ((await timeZone(sql)) !== zone) await recountFigures(sql, await timeZone(sql));
			if (Object.keys(values).some((name) => Object.hasOwn(limitSettings, name))) await startWaking(sql, now);
		},
		status: async () => ({
			schema_version: await sql.number('SELECT user_version FROM pragma_user_version'),
			size_bytes: await sql.number('SELECT page_count * page_size FROM pragma_page_count, pragma_page_size'),
			lists: await sql.number('SELECT count(*) FROM lists'),
			subscribers: await sql.number('SELECT coalesce(sum(active_count + inactive_count), 0) FROM lists'),
			suppressions: await sql.number('SELECT count(*) FROM suppressions'),
			messages: await countByState(sql, null),
			stopped_webhooks: await sql.all<{ id: number; url: string; stopped_at: number }>(
				'SELECT id, url, stopped_at FROM webhooks WHERE stopped_at IS NOT NULL ORDER BY id',
			),
		}),
	} satisfies Partial<Operations>;
}

async function putSetting(
	sql: Sql,
	{ name, value, now }: { name: string; value: string | null; now: number },
): Promise<void> {
	if (value === null) await sql.run('DELETE FROM settings WHERE name = ?', name);
	else {
		await sql.run(
			`INSERT INTO settings (name, value, updated_at)
			VALUES (?, ${name === 'smtp_password' ? "wrap(?, 'settings smtp_password')" : '?'}, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
			name,
			value,
			now,
		);
	}
}
