import type { Micros } from '../../api/datetime.js';
import { addTo, quarterHour } from './figures/tally.js';
import { flag, type Sql, type SqlValue } from './sql.js';

interface CounterMove {
	active: number;
	inactive: number;
}

const addToCounters = addTo('list_counters', ['list_id'], ['active', 'inactive']);
const addToJoined = addTo('list_joined', ['list_id', 'quarter']);

/** Adds to the counters of a list. `came`: when the new or deleted subscribers joined; null if there are none. */
export function moveCounters(
	sql: Sql,
	list_id: number,
	{ active, inactive }: CounterMove,
	came: Micros | null,
): void {
	if (active === 0 && inactive === 0) return;
	sql.write(addToCounters, [list_id, sql.shard, active, inactive]);
	if (came === null || active + inactive === 0) return;
	sql.write(addToJoined, [list_id, Math.floor(came / quarterHour), sql.shard, active + inactive]);
}

export function dropCounters(sql: Sql, list_id: number): void {
	for (const table of ['list_counters', 'list_joined'])
		sql.write(`DELETE FROM ${table} WHERE list_id = ?`, [list_id]);
}

export function counterMove(before: boolean | null, after: boolean | null): CounterMove {
	const change = (activity: boolean) => flag(after === activity) - flag(before === activity);
	return { active: change(true), inactive: change(false) };
}

export type CountSubscribers = (where: string, values: readonly SqlValue[]) => Promise<number>;

const mostCounts = 200;

/** Caches counts until data changes, because pages of one search ask for the same count. */
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
