import { type Micros, microsPerDay } from '../../../api/datetime.js';
import { type Retention, retentionOf, retentionSettings } from '../../../engine/rules/retention.js';
import type { Sql } from '../sql.js';

/** What is as old as this, or older, goes; null: nothing does. */
export async function cutoffs(sql: Sql, now: Micros): Promise<Retention> {
	const rows = await sql.all<{ name: string; value: string }>(
		`SELECT name, value FROM settings WHERE name IN (${retentionSettings.map((name) => `'${name}'`).join(', ')})`,
	);
	return cutoffsOf(Object.fromEntries(rows.map(({ name, value }) => [name, value])), now);
}

export function cutoffsOf(values: Readonly<Record<string, string>>, now: Micros): Retention {
	const { messages, events, bodies } = retentionOf(values);
	const before = (kept: Micros | null) => (kept === null ? null : now - kept);
	// The time of a body's last send is exact to a day.
	const sent = bodies === null ? null : bodies + microsPerDay;
	return { messages: before(messages), events: before(events), bodies: before(sent) };
}
