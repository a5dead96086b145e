/** Verified sender addresses. */
import { notUnique } from '../../engine/rules/errors.js';
import type { Operations } from '../operations.js';
import { type SenderRow, selectPage, toSender } from './rows.js';
import type { Sql } from './sql.js';

const columns = 'id, email, created_at';

/** Found by and unique in `email_key`, the address without regard to case. */
export function createSenders(sql: Sql) {
	return {
		pageSenders: async (page) => {
			const { count, rows } = await selectPage<SenderRow>(
				sql,
				{ columns, from: 'senders', order: 'id' },
				page,
			);
			return { count, results: rows.map(toSender) };
		},
		findSender: ({ email_key }) => findSender(sql, email_key),
		createSender: async ({ email, email_key, now }) => {
			if ((await findSender(sql, email_key)) !== null) return { kind: 'refused', errors: notUnique('email') };
			sql.write('INSERT INTO senders (email, email_key, created_at) VALUES (?, ?, ?)', email, email_key, now);
			const record = await findSender(sql, email_key);
			return record === null ? { kind: 'not_found' } : { kind: 'written', record };
		},
		deleteSender: async ({ id }) => (await sql.run('DELETE FROM senders WHERE id = ?', id)).changes === 1,
	} satisfies Partial<Operations>;
}

/** Null: not verified. `email_key` as `emailKey` makes it. */
export async function findSender(sql: Sql, email_key: string) {
	const row = await sql.get<SenderRow>(`SELECT ${columns} FROM senders WHERE email_key = ?`, email_key);
	return row === undefined ? null : toSender(row);
}
