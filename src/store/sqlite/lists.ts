/** Lists, and the counters they carry. */
import { flag, type ListRow, span, toList } from './rows.js';
import type { Sql } from './sql.js';
import type { Operations } from './sync.js';
import { cancelWaitingOfList } from './waiting.js';

type ListOperations = Pick<
	Operations,
	'pageLists' | 'getList' | 'createList' | 'patchList' | 'deleteList' | 'clearList'
>;

const columns = 'id, name, email_reason, active_count, inactive_count, created_at';

/** Deleting and clearing cancel what waits for the list, in the same transaction of the caller. */
export function createLists(sql: Sql): ListOperations {
	return {
		pageLists: (page) => ({
			count: sql.number('SELECT count(*) FROM lists'),
			results: sql
				.all<ListRow>(`SELECT ${columns} FROM lists ORDER BY id LIMIT ? OFFSET ?`, ...span(page))
				.map(toList),
		}),
		getList: ({ id }) => {
			const row = findList(sql, id);
			return row === null ? null : toList(row);
		},
		createList: ({ input, now }) => {
			const { lastInsertRowid } = sql.run(
				'INSERT INTO lists (name, email_reason, created_at) VALUES (?, ?, ?)',
				input.name,
				input.email_reason,
				now,
			);
			return written(sql, Number(lastInsertRowid));
		},
		patchList: ({ id, patch }) => {
			sql.run(
				`UPDATE lists
				SET name = coalesce(?, name), email_reason = coalesce(?, email_reason)
				WHERE id = ?`,
				patch.name ?? null,
				patch.email_reason ?? null,
				id,
			);
			return written(sql, id);
		},
		deleteList: ({ id }) => {
			if (findList(sql, id) === null) return false;
			emptyList(sql, id);
			sql.run('DELETE FROM lists WHERE id = ?', id);
			return true;
		},
		clearList: ({ id }) => (findList(sql, id) === null ? null : emptyList(sql, id)),
	};
}

/** Null: no such list. Its counters are those of the caller’s transaction. */
export function findList(sql: Sql, id: number): ListRow | null {
	return sql.get<ListRow>(`SELECT ${columns} FROM lists WHERE id = ?`, id) ?? null;
}

/** How many subscribers of each kind there are more now. */
export function moveCounters(
	sql: Sql,
	list_id: number,
	{ active, inactive }: { active: number; inactive: number },
): void {
	if (active === 0 && inactive === 0) return;
	sql.run(
		'UPDATE lists SET active_count = active_count + ?, inactive_count = inactive_count + ? WHERE id = ?',
		active,
		inactive,
		list_id,
	);
}

/** The counters' change when one subscriber goes from one activity to another; null = is not there. */
export function counterMove(before: boolean | null, after: boolean | null) {
	const change = (activity: boolean) => flag(after === activity) - flag(before === activity);
	return { active: change(true), inactive: change(false) };
}

function emptyList(sql: Sql, id: number): number {
	cancelWaitingOfList(sql, id);
	const { changes } = sql.run('DELETE FROM subscribers WHERE list_id = ?', id);
	sql.run('UPDATE lists SET active_count = 0, inactive_count = 0 WHERE id = ?', id);
	return changes;
}

function written(sql: Sql, id: number) {
	const row = findList(sql, id);
	return row === null
		? ({ kind: 'not_found' } as const)
		: ({ kind: 'written', record: toList(row) } as const);
}
