/**
 * The counters of a list, which change with its subscribers in the same transaction, and counts of its subscribers by other
 * filters.
 */
import { flag } from './rows.js';
import type { Sql, SqlValue } from './sql.js';

/** How many subscribers of each kind there are more now. */
export async function moveCounters(
	sql: Sql,
	list_id: number,
	{ active, inactive }: { active: number; inactive: number },
): Promise<void> {
	if (active === 0 && inactive === 0) return;
	await sql.run(
		'UPDATE lists SET active_count = active_count + ?, inactive_count = inactive_count + ? WHERE id = ?',
		active,
		inactive,
		list_id,
	);
}

/** The change of the counters when a subscriber's activity changes; null = does not exist. */
export function counterMove(before: boolean | null, after: boolean | null) {
	const change = (activity: boolean) => flag(after === activity) - flag(before === activity);
	return { active: change(true), inactive: change(false) };
}

/** Rows of `subscribers` that fulfil a condition. */
export type CountSubscribers = (where: string, values: readonly SqlValue[]) => Promise<number>;

/** Each is a filter of a listing in use. */
const mostCounts = 200;

/** Keeps each count until the data changes, by this connection or another. */
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
		const count = await sql.number(`SELECT count(*) FROM subscribers WHERE ${where}`, ...values);
		counts.set(key, count);
		return count;
	};
}
