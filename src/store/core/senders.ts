import type { Sender } from '../../api/records.js';
import { notUnique } from '../../engine/rules/subscribers.js';
import type { Operations } from '../operations.js';
import { insertInto, type Sql, selectPage, timeOf, writtenOf } from './sql.js';

type SenderRow = Omit<Sender, 'is_verified' | 'date_created'> & { created_at: number };

const columns = 'id, full_name, email AS from_email, reply_to_email, created_at';

export function createSenders(sql: Sql) {
	return {
		pageSenders: (page) => selectPage(sql, { columns, from: 'senders', order: 'id' }, page, toSender),
		getSender: ({ id }) => find(sql, 'id', id),
		findSender: ({ email_key }) => findSender(sql, email_key),
		createSender: async ({ from_email: email, email_key, full_name = '', reply_to_email = '', now }) => {
			if ((await findSender(sql, email_key)) !== null)
				return { kind: 'refused', errors: notUnique('from_email') };
			insertInto(sql, 'senders', { full_name, email, email_key, reply_to_email, created_at: now });
			return writtenOf(await findSender(sql, email_key));
		},
		patchSender: async ({ id, patch, email_key }) => {
			const stored = await find(sql, 'id', id);
			if (stored === null) return { kind: 'not_found' };
			if (email_key !== undefined) {
				const taken = await findSender(sql, email_key);
				if (taken !== null && taken.id !== id) return { kind: 'refused', errors: notUnique('from_email') };
				sql.write('UPDATE senders SET email_key = ? WHERE id = ?', [email_key, id]);
			}
			const record = { ...stored, ...patch };
			const { full_name, from_email, reply_to_email } = record;
			sql.write('UPDATE senders SET full_name = ?, email = ?, reply_to_email = ? WHERE id = ?', [
				...[full_name, from_email, reply_to_email, id],
			]);
			return { kind: 'written', record };
		},
		deleteSender: async ({ id }) => (await sql.run('DELETE FROM senders WHERE id = ?', [id])).changes === 1,
	} satisfies Partial<Operations>;
}

export function findSender(sql: Sql, email_key: string): Promise<Sender | null> {
	return find(sql, 'email_key', email_key);
}

async function find(sql: Sql, key: string, value: string | number): Promise<Sender | null> {
	const row = await sql.get<SenderRow>(`SELECT ${columns} FROM senders WHERE ${key} = ?`, [value]);
	return row === undefined ? null : toSender(row);
}

function toSender({ created_at, ...row }: SenderRow): Sender {
	return { ...row, is_verified: true, date_created: timeOf(created_at) };
}
