import { notUnique } from '../../engine/rules/errors.js';
import type { Operations } from '../operations.js';
import { selectPage, type TemplateRow, toTemplate, writtenOf } from './rows.js';
import { exists, type Sql } from './sql.js';

const columns = 'id, name, text_body, html_body, created_at, updated_at';

export function createTemplates(sql: Sql) {
	return {
		// In the order of creation: ids are random.
		pageTemplates: (page) => selectPage(sql, { columns, from: 'templates', order: 'seq' }, page, toTemplate),
		getTemplate: ({ id }) => findTemplate(sql, id),
		createTemplate: async ({ id, input, now }) => {
			if (await isNameTaken(sql, input.name, '')) return { kind: 'refused', errors: notUnique('name') };
			sql.write(
				`INSERT INTO templates (id, name, text_body, html_body, created_at, updated_at)
				VALUES (?, ?, ?, ?, ?, ?)`,
				[id, input.name, input.text_body, input.html_body, now, now],
			);
			return writtenOf(await findTemplate(sql, id));
		},
		patchTemplate: async ({ id, patch, now }) => {
			const stored = await findTemplate(sql, id);
			if (stored === null) return { kind: 'not_found' };
			const { name, text_body, html_body } = { ...stored, ...patch };
			if (await isNameTaken(sql, name, id)) return { kind: 'refused', errors: notUnique('name') };
			sql.write('UPDATE templates SET name = ?, text_body = ?, html_body = ?, updated_at = ? WHERE id = ?', [
				name,
				text_body,
				html_body,
				now,
				id,
			]);
			return writtenOf(await findTemplate(sql, id));
		},
		deleteTemplate: async ({ id }) =>
			(await sql.run('DELETE FROM templates WHERE id = ?', [id])).changes === 1,
	} satisfies Partial<Operations>;
}

async function findTemplate(sql: Sql, id: string) {
	const row = await sql.get<TemplateRow>(`SELECT ${columns} FROM templates WHERE id = ?`, [id]);
	return row === undefined ? null : toTemplate(row);
}

export async function isNameTaken(sql: Sql, name: string, exceptId: string): Promise<boolean> {
	return await exists(sql, 'SELECT 1 FROM templates WHERE name = ? AND id <> ?', [name, exceptId]);
}
