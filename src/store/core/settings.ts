import { limitSettings } from '../../engine/rules/settings.js';
import type { Operations } from '../operations.js';
import { sumDays, timeZone } from './figures/tally.js';
import { countByState } from './messages/messages.js';
import { insertInto, type Sql } from './sql.js';

const secret = 'smtp_password';
const secretPlace = `settings ${secret}`;

export function createSettings(sql: Sql) {
	return {
		getSettings: async () => {
			const rows = await sql.tuples<[name: string, value: string]>(
				'SELECT name, value FROM settings ORDER BY name',
			);
			return Object.fromEntries(
				rows.map(([name, value]) => [name, name === secret ? sql.secrets.unwrap(value, secretPlace) : value]),
			);
		},
		putSettings: async ({ values, now: updated_at }) => {
			const zone = await timeZone(sql);
			for (const [name, value] of Object.entries(values)) {
				if (value === null) sql.write('DELETE FROM settings WHERE name = ?', [name]);
				else
					insertInto(
						sql,
						'settings',
						{ name, value: name === secret ? sql.secrets.wrap(value, secretPlace) : value, updated_at },
						'ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at',
					);
			}
			if ('smtp_url' in values || 'smtp_password' in values)
				sql.write("DELETE FROM queue_pauses WHERE kind <> 'manual'");
			if ((await timeZone(sql)) !== zone) await sumDays(sql);
			if (Object.keys(values).some((name) => Object.hasOwn(limitSettings, name)))
				sql.write('UPDATE limit_rooms SET room_at = 0');
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
