import { notUnique } from '../../engine/rules/errors.js';
import type { Operations } from '../operations.js';
import { type SenderRow, selectPage, toSender, writtenOf } from './rows.js';
import type { Sql } from './sql.js';

const columns = 'id, full_name, email AS from_email, reply_to_email, created_at';

export function createSenders(sql: Sql) {
	return {
		pageSenders: (page) => selectPage(sql, { columns, from: 'senders', order: 'id' }, page, toSender),
		getSender: ({ id }) => getSender(sql, id),
		findSender: ({ email_key }) => findSender(sql, email_key),
		createSender: async ({ from_email, email_key, full_name = '', reply_to_email = '', now }) => {
			if ((await findSender(sql, email_key)) !== null)
				return { kind: 'refused', errors: notUnique('from_email') };
			sql.write(
				`INSERT INTO senders (full_name, email, email_key, reply_to_email, created_at)
				VALUES (?, ?, ?, ?, ?)`,
				[full_name, from_email, email_key, reply_to_email, now],
			);
			return writtenOf(await findSender(sql, email_key));
		},
		patchSender: async ({ id, patch, email_key }) => {
			const stored = await getSender(sql, id);
			if (stored === null) return { kind: 'not_found' };
			if (email_key !== undefined) {
				const taken = await findSender(sql, email_key);
				if (taken !== null && taken.id !== id) return { kind: 'refused', errors: notUnique('from_email') };
				sql.write('UPDATE senders SET email_key = ? WHERE id = ?', [email_key, id]);
			}
			const record = { ...stored, ...patch };
			sql.write('UPDATE senders SET full_name = ?, email = ?, reply_to_email = ? WHERE id = ?', [
				record.full_name,
				record.from_email,
				record.reply_to_email,
				id,
			]);
			return { kind: 'written', record };
		},
		deleteSender: async ({ id }) => (await sql.run('DELETE FROM senders WHERE id = ?', [id])).changes === 1,
	} satisfies Partial<Operations>;
}

async function getSender(sql: Sql, id: number) {
	const row = await sql.get<SenderRow>(`SELECT ${columns} FROM senders WHERE id = ?`, [id]);
	return row === undefined ? null : toSender(row);
}

export async function findSender(sql: Sql, email_key: string) {
	const row = await sql.get<SenderRow>(`SELECT ${columns} FROM senders WHERE email_key = ?`, [email_key]);
	return row === undefined ? null : toSender(row);
}
