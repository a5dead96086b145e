/** The counters of a list: they change with its subscribers, in the same transaction. */
import { flag } from './rows.js';
import type { Sql } from './sql.js';

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
