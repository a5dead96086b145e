import type { Micros } from '../../api/datetime.js';
import type { ListDetails } from '../../api/inputs.js';
import type { List } from '../../api/records.js';
import type { Operations } from '../operations.js';
import { moveCounters, quarterHour } from './figures/tally.js';
import { findKey, rememberKey } from './idempotency.js';
import { cancelWaitingOfList } from './messages/actions.js';
import { widenToAllLists } from './recipients.js';
import { exists, insertNumbered, type Sql, selectPage, timeOf, writtenOf } from './sql.js';

export interface ListRow {
	id: number;
	name: string;
	email_reason: string;
	active_count: number;
	inactive_count: number;
	created_at: Micros;
}

const columns = `id, name, email_reason, created_at,
	(SELECT coalesce(sum(active), 0) FROM list_counters WHERE list_id = lists.id) AS active_count,
	(SELECT coalesce(sum(inactive), 0) FROM list_counters WHERE list_id = lists.id) AS inactive_count`;

export function createLists(sql: Sql) {
	const getList = async (id: number) => {
		const row = await findList(sql, id);
		return row === null ? null : toList(row);
	};
	return {
		pageLists: (page) => selectPage(sql, { columns, from: 'lists', order: 'id' }, page, toList),
		getList: ({ id }) => getList(id),
		getListDetails: ({ id }) => findDetails(sql, id),
		createList: async ({ input: { name, email_reason }, now, unless_named, key = null }) => {
			const earlier = key === null ? null : await findKey<{ list: number }>(sql, key, now);
			if (earlier?.kind === 'key_conflict') return earlier;
			const added = earlier === null ? null : await getList(earlier.answer.list);
			if (added !== null) return { kind: 'written', record: added };
			const named = `SELECT ${columns} FROM lists WHERE name = ? ORDER BY id LIMIT 1`;
			const there = unless_named ? await sql.get<ListRow>(named, [name]) : undefined;
			if (there !== undefined) return { kind: 'written', record: toList(there), was_there: true };
			const list = await insertNumbered(sql, 'lists', { name, email_reason, created_at: now });
			if (key !== null) rememberKey(sql, key, { answer: { list }, now });
			return writtenOf(await getList(list));
		},
		patchList: async ({ id, patch: { name = null, email_reason = null } }) => {
			sql.write(
				'UPDATE lists SET name = coalesce(?, name), email_reason = coalesce(?, email_reason) WHERE id = ?',
				[name, email_reason, id],
			);
			return writtenOf(await getList(id));
		},
		patchListDetails: async ({ id, patch: { public_name } }) => {
			if (public_name !== undefined)
				sql.write('UPDATE lists SET public_name = ? WHERE id = ?', [public_name, id]);
			return writtenOf(await findDetails(sql, id));
		},
		deleteList: async ({ id, now }) => {
			if (!(await hasList(sql, id))) return false;
			await emptyList(sql, id);
			await widenToAllLists(sql, { list_id: id, now });
			sql.write('DELETE FROM lists WHERE id = ?', [id]);
			return true;
		},
		clearList: async ({ id }) => ((await hasList(sql, id)) ? await emptyList(sql, id) : null),
		dropSubscribers: async ({ list_id, limit, isFirst }) => {
			if (isFirst && !(await hasList(sql, list_id))) return 0;
			if (isFirst) cancelWaitingOfList(sql, list_id);
			const gone = await sql.tuples<[is_active: number, created_at: Micros]>(
				`DELETE FROM subscribers
				WHERE id IN (SELECT id FROM subscribers WHERE list_id = ? ORDER BY id LIMIT ?)
				RETURNING is_active, created_at`,
				[list_id, limit],
			);
			const moves = new Map<number, { active: number; inactive: number }>();
			for (const [is_active, created_at] of gone) {
				const quarter = Math.floor(created_at / quarterHour);
				const { active = 0, inactive = 0 } = moves.get(quarter) ?? {};
				moves.set(quarter, { active: active - is_active, inactive: inactive - 1 + is_active });
			}
			for (const [quarter, move] of moves) moveCounters(sql, list_id, move, quarter * quarterHour);
			return gone.length;
		},
	} satisfies Partial<Operations>;
}

export async function findList(sql: Sql, id: number): Promise<ListRow | null> {
	return (await sql.get<ListRow>(`SELECT ${columns} FROM lists WHERE id = ?`, [id])) ?? null;
}

export async function hasList(sql: Sql, id: number): Promise<boolean> {
	return await exists(sql, 'SELECT 1 FROM lists WHERE id = ?', [id]);
}

async function findDetails(sql: Sql, id: number): Promise<ListDetails | null> {
	return (await sql.get<ListDetails>('SELECT id, public_name FROM lists WHERE id = ?', [id])) ?? null;
}

async function emptyList(sql: Sql, id: number): Promise<number> {
	cancelWaitingOfList(sql, id);
	const { changes } = await sql.run('DELETE FROM subscribers WHERE list_id = ?', [id]);
	for (const table of ['list_counters', 'list_joined'])
		sql.write(`DELETE FROM ${table} WHERE list_id = ?`, [id]);
	return changes;
}

function toList({ active_count, inactive_count, created_at, ...row }: ListRow): List {
	return {
		...row,
		active_subscribers_count: active_count,
		inactive_subscribers_count: inactive_count,
		overall_subscribers_count: active_count + inactive_count,
		date_created: timeOf(created_at),
	};
}
