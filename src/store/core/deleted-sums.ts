import type { Uuid } from '../../api/records.js';
import type { Seen } from '../store.js';
import { seenRows, seenState } from './campaigns/rows.js';
import { bouncedGroups, bouncedRows, clickedRows, countedRows } from './figures/tally.js';
import type { StateCount } from './messages/messages.js';
import { joinedMessages, type Sql } from './sql.js';

/** A send call may name a campaign by a UUID that no campaign of this database has: `deleted_joined` counts its messages. */
const sumsOfStates = [
	{ table: 'deleted_states', campaign: 'g.id', where: 'g.id IS NOT NULL' },
	{ table: 'deleted_joined', campaign: 's.campaign', where: 's.campaign IS NOT NULL AND g.id IS NULL' },
] as const;

export function addToSums(sql: Sql, ids: string): void {
	const only = (id: string) => `AND ${sql.dialect.oneOf(id)}`;
	add(sql, 'deleted_links', clickedRows(only), [ids]);
	add(sql, 'deleted_bounced', bouncedGroups(only), [ids]);
	const figures = `SELECT coalesce(tag, '') AS tag, coalesce(campaign, '') AS campaign, type, audience, quarter, count
		FROM (${countedRows(only)}) f`;
	add(sql, 'deleted_figures', figures, [ids, ids, ids, ids]);
	const bounces = `SELECT coalesce(campaign, '') AS campaign, quarter, domain, type, code, count
		FROM (${bouncedRows(sql.dialect, only)}) b`;
	add(sql, 'deleted_bounces', bounces, [ids]);
	for (const { table, campaign, where } of sumsOfStates) {
		const states = `SELECT ${campaign} AS campaign, ${seenState} AS state, 1 AS count
			FROM ${joinedMessages}
			WHERE ${sql.dialect.oneOf('m.id')} AND ${where}`;
		add(sql, table, states, [ids]);
	}
}

const sums: Readonly<Record<string, { key: string; counts: readonly string[] }>> = {
	deleted_links: { key: 'campaign, content_sha256, link, audience', counts: ['clicks', 'messages'] },
	deleted_bounced: { key: 'tag, campaign, sent, soft, hard', counts: ['count'] },
	deleted_figures: { key: 'tag, campaign, type, audience, quarter', counts: ['count'] },
	deleted_bounces: { key: 'campaign, quarter, domain, type, code', counts: ['count'] },
	deleted_states: { key: 'campaign, state', counts: ['count'] },
	deleted_joined: { key: 'campaign, state', counts: ['count'] },
};

function add(sql: Sql, table: keyof typeof sums, rows: string, values: readonly string[]): void {
	const { key = '', counts = [] } = sums[table] ?? {};
	sql.write(
		`INSERT INTO ${table} (${key}, ${counts.join(', ')})
		SELECT ${key}, ${counts.map((name) => `sum(${name})`).join(', ')}
		FROM (${rows}) d
		WHERE TRUE
		GROUP BY ${key}
		ON CONFLICT (${key}) DO UPDATE SET ${counts.map((name) => `${name} = ${table}.${name} + excluded.${name}`).join(', ')}`,
		values,
	);
}

export async function deletedStates(sql: Sql, campaign: Uuid, seen: Seen): Promise<StateCount[]> {
	const own = seenRows('g.owner', seen);
	return await sql.all(
		`SELECT d.state, d.count
		FROM deleted_states d
		JOIN campaigns g ON g.id = d.campaign
		WHERE d.campaign = ? AND ${own.where}
		ORDER BY d.state`,
		[campaign, ...own.values],
	);
}

/** These sums have no owner, so a client sees them only if all calls with the UUID belong to it. */
export async function deletedJoined(sql: Sql, campaign: Uuid, seen: Seen = {}): Promise<StateCount[]> {
	const client = seen.only_of ?? null;
	return await sql.all(
		`SELECT state, count
		FROM deleted_joined
		WHERE campaign = ? AND (CAST(? AS TEXT) IS NULL OR NOT EXISTS (
			SELECT 1 FROM submissions WHERE campaign = ? AND owner IS DISTINCT FROM ?
		))
		ORDER BY state`,
		[campaign, client, campaign, client],
	);
}
