import type { Template } from '../../api/records.js';
import { notUnique } from '../../engine/rules/subscribers.js';
import type { Operations } from '../operations.js';
import { type Dated, dated, exists, insertInto, type Sql, selectPage, timeOf, writtenOf } from './sql.js';

type TemplateRow = Dated<Template> & { date_updated: number };

const columns = 'id, name, text_body, html_body, created_at AS date_created, updated_at AS date_updated';

export function createTemplates(sql: Sql) {
	return {
		pageTemplates: (page) => selectPage(sql, { columns, from: 'templates', order: 'seq' }, page, toTemplate),
		getTemplate: ({ id }) => findTemplate(sql, id),
		createTemplate: async ({ id, input: { name, text_body, html_body }, now }) => {
			if (await isNameTaken(sql, name, '')) return { kind: 'refused', errors: notUnique('name') };
			insertInto(sql, 'templates', { id, name, text_body, html_body, created_at: now, updated_at: now });
			return writtenOf(await findTemplate(sql, id));
		},
		patchTemplate: async ({ id, patch, now }) => {
			const stored = await findTemplate(sql, id);
			if (stored === null) return { kind: 'not_found' };
			const { name, text_body, html_body } = { ...stored, ...patch };
			if (await isNameTaken(sql, name, id)) return { kind: 'refused', errors: notUnique('name') };
			const changed = [name, text_body, html_body, now, id];
			sql.write(
				'UPDATE templates SET name = ?, text_body = ?, html_body = ?, updated_at = ? WHERE id = ?',
				changed,
			);
			return writtenOf(await findTemplate(sql, id));
		},
		deleteTemplate: async ({ id }) =>
			(await sql.run('DELETE FROM templates WHERE id = ?', [id])).changes === 1,
	} satisfies Partial<Operations>;
}

async function findTemplate(sql: Sql, id: string): Promise<Template | null> {
	const row = await sql.get<TemplateRow>(`SELECT ${columns} FROM templates WHERE id = ?`, [id]);
	return row === undefined ? null : toTemplate(row);
}

function toTemplate(row: TemplateRow): Template {
	return { ...dated(row), date_updated: timeOf(row.date_updated) };
}

export async function isNameTaken(sql: Sql, name: string, exceptId: string): Promise<boolean> {
	return await exists(sql, 'SELECT 1 FROM templates WHERE name = ? AND id <> ?', [name, exceptId]);
}
