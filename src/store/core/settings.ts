import { limitSettings } from '../../engine/rules/limits.js';
import type { Operations } from '../operations.js';
import { sumDays, timeZone } from './figures/tally.js';
import { lookAtAll } from './limits/limits.js';
import { countByState } from './messages/messages.js';
import { forgetFault } from './queue-state.js';
import type { Sql } from './sql.js';

export function createSettings(sql: Sql) {
	return {
		getSettings: async () =>
			Object.fromEntries(
				(
					await sql.all<{ name: string; value: string }>('SELECT name, value FROM settings ORDER BY name')
				).map(({ name, value }) => [
					name,
					name === secret ? sql.secrets.unwrap(value, placeOf(name)) : value,
				]),
			),
		putSettings: async ({ values, now }) => {
			const zone = await timeZone(sql);
			for (const [name, value] of Object.entries(values)) putSetting(sql, { name, value, now });
			if ('smtp_url' in values || 'smtp_password' in values) forgetFault(sql);
			if ((await timeZone(sql)) !== zone) await sumDays(sql);
			if (Object.keys(values).some((name) => Object.hasOwn(limitSettings, name))) lookAtAll(sql);
		},
		takesWrites: async () => (await sql.number(sql.dialect.isReadOnly)) === 0,
		status: async () => ({
			schema_version: await sql.number('SELECT max(version) FROM migrations'),
			size_bytes: await sql.number(sql.dialect.databaseSize),
			lists: await sql.number('SELECT count(*) FROM lists'),
			subscribers: await sql.number('SELECT coalesce(sum(active + inactive), 0) FROM list_counters'),
			suppressions: await sql.number('SELECT count(*) FROM suppressions'),
			messages: await countByState(sql, null),
			stopped_webhooks: await sql.all<{ id: number; url: string; stopped_at: number }>(
				'SELECT id, url, stopped_at FROM webhooks WHERE stopped_at IS NOT NULL ORDER BY id',
			),
		}),
	} satisfies Partial<Operations>;
}

const secret = 'smtp_password';

function placeOf(name: string): string {
	return `settings ${name}`;
}

function putSetting(
	sql: Sql,
	{ name, value, now }: { name: string; value: string | null; now: number },
): void {
	if (value === null) sql.write('DELETE FROM settings WHERE name = ?', [name]);
	else {
		sql.write(
			`INSERT INTO settings (name, value, updated_at)
			VALUES (?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
			[name, name === secret ? sql.secrets.wrap(value, placeOf(name)) : value, now],
		);
	}
}
