import type { Micros } from '../../api/datetime.js';
import { quarterHour } from './figures/tally.js';
import { flag } from './rows.js';
import type { Sql, SqlValue } from './sql.js';

export const listCounts =
	'(SELECT list_id, sum(active) AS active, sum(inactive) AS inactive FROM list_counters GROUP BY list_id)';

/** How many subscribers of each kind there are more now. `came`: when those came who are new or gone; null: there are none. */
export function moveCounters(
	sql: Sql,
	list_id: number,
	{ active, inactive }: { active: number; inactive: number },
	came: Micros | null,
): void {
	if (active === 0 && inactive === 0) return;
	sql.write(
		`INSERT INTO list_counters (list_id, shard, active, inactive)
		VALUES (?, ?, ?, ?)
		ON CONFLICT (list_id, shard) DO UPDATE SET active = list_counters.active + excluded.active,
			inactive = list_counters.inactive + excluded.inactive`,
		[list_id, sql.shard, active, inactive],
	);
	if (came === null || active + inactive === 0) return;
	sql.write(
		`INSERT INTO list_joined (list_id, quarter, shard, count)
		VALUES (?, ?, ?, ?)
		ON CONFLICT (list_id, quarter, shard) DO UPDATE SET count = list_joined.count + excluded.count`,
		[list_id, Math.floor(came / quarterHour), sql.shard, active + inactive],
	);
}

export function dropCounters(sql: Sql, list_id: number): void {
	sql.write('DELETE FROM list_counters WHERE list_id = ?', [list_id]);
	sql.write('DELETE FROM list_joined WHERE list_id = ?', [list_id]);
}

/** Of lists whose counts by time are not those of their subscribers, the ids. */
export async function wrongJoined(sql: Sql): Promise<number[]> {
	const rows = await sql.all<{ list_id: number }>(
		`SELECT DISTINCT list_id
		FROM (
			SELECT list_id, quarter, sum(count) AS count
			FROM (
				SELECT list_id, quarter, count FROM list_joined
				UNION ALL
				SELECT list_id, created_at / ${quarterHour}, -count(*) FROM subscribers GROUP BY 1, 2
			) a
			GROUP BY list_id, quarter
		) b
		WHERE count <> 0
		ORDER BY list_id`,
	);
	return rows.map(({ list_id }) => list_id);
}

export function recountJoined(sql: Sql, list_id: number): void {
	sql.write('DELETE FROM list_joined WHERE list_id = ?', [list_id]);
	sql.write(
		`INSERT INTO list_joined (list_id, quarter, shard, count)
		SELECT list_id, created_at / ${quarterHour} AS quarter, ?, count(*)
		FROM subscribers
		WHERE list_id = ?
		GROUP BY list_id, quarter`,
		[sql.shard, list_id],
	);
}

export function counterMove(before: boolean | null, after: boolean | null) {
	const change = (activity: boolean) => flag(after === activity) - flag(before === activity);
	return { active: change(true), inactive: change(false) };
}

export type CountSubscribers = (where: string, values: readonly SqlValue[]) => Promise<number>;

const mostCounts = 200;

export function createFilteredCounts(sql: Sql): CountSubscribers {
	const counts = new Map<string, number>();
	let seen = '';
	return async (where, values) => {
		const [[state] = ['']] = await sql.tuples<[string]>(sql.dialect.seenState);
		if (state !== seen || counts.size >= mostCounts) counts.clear();
		seen = state;
		const key = JSON.stringify([where, values]);
		const known = counts.get(key);
		if (known !== undefined) return known;
		const count = await sql.number(`SELECT count(*) FROM subscribers WHERE ${where}`, values);
		counts.set(key, count);
		return count;
	};
}
