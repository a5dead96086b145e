/** Counts that need a scan, remembered while nobody changes the database: turning pages counts once. */
import type { Sql, SqlValue } from './sql.js';

/** Rows of `subscribers` that fulfil a condition. */
export type CountSubscribers = (where: string, values: readonly SqlValue[]) => number;

/** Each is a filter somebody turns the pages of. */
const mostCounts = 200;

/**
 * `data_version` changes with the first read after a commit of another connection, `total_changes()` with each row
 * that this one changes: together they name what a read sees.
 */
export function createFilteredCounts(sql: Sql): CountSubscribers {
	const counts = new Map<string, number>();
	let seen = '';
	return (where, values) => {
		const state = `${sql.number('PRAGMA data_version')} ${sql.number('SELECT total_changes()')}`;
		if (state !== seen || counts.size >= mostCounts) counts.clear();
		seen = state;
		const key = JSON.stringify([where, values]);
		const known = counts.get(key);
		if (known !== undefined) return known;
		const count = sql.number(`SELECT count(*) FROM subscribers WHERE ${where}`, ...values);
		counts.set(key, count);
		return count;
	};
}
