/** Lists. Their counters change with their subscribers. */

import type { ListDetails } from '../../api/lists.js';
import type { Operations } from '../operations.js';
import { cancelWaitingOfList } from './message-actions.js';
import { type ListRow, span, toList } from './rows.js';
import type { Sql } from './sql.js';
import { widenToAllLists } from './suppressions.js';

const columns = 'id, name, email_reason, active_count, inactive_count, created_at';

/** Deleting and clearing cancel waiting messages of the list, in the same transaction of the caller. */
export function createLists(sql: Sql) {
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
		getListDetails: ({ id }) => findDetails(sql, id),
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
		patchListDetails: ({ id, patch: { public_name } }) => {
			if (public_name !== undefined)
				sql.run('UPDATE lists SET public_name = ? WHERE id = ?', public_name, id);
			const record = findDetails(sql, id);
			return record === null ? { kind: 'not_found' } : { kind: 'written', record };
		},
		deleteList: ({ id, now }) => {
			if (findList(sql, id) === null) return false;
			emptyList(sql, id);
			widenToAllLists(sql, { list_id: id, now });
			sql.run('DELETE FROM lists WHERE id = ?', id);
			return true;
		},
		clearList: ({ id }) => (findList(sql, id) === null ? null : emptyList(sql, id)),
	} satisfies Partial<Operations>;
}

/** Null: no such list. Its counters are those of the caller’s transaction. */
export function findList(sql: Sql, id: number): ListRow | null {
	return sql.get<ListRow>(`SELECT ${columns} FROM lists WHERE id = ?`, id) ?? null;
}

function findDetails(sql: Sql, id: number): ListDetails | null {
	return sql.get<ListDetails>('SELECT id, public_name FROM lists WHERE id = ?', id) ?? null;
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
