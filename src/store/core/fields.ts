import type { Field } from '../../api/records.js';
import { notUnique } from '../../engine/rules/subscribers.js';
import type { Operations } from '../operations.js';
import {
	column,
	type Dated,
	dated,
	exists,
	insertNumbered,
	parseRecord,
	type Sql,
	selectPage,
	writtenOf,
} from './sql.js';

const columns = 'id, variable, name, created_at AS date_created';

export function createFields(sql: Sql) {
	return {
		pageFields: (page) =>
			selectPage(sql, { columns, from: 'fields', order: 'id' }, page, (row: Dated<Field>) => dated(row)),
		getField: ({ id }) => findField(sql, id),
		countFieldUses: async ({ id }) => {
			const row = await findField(sql, id);
			let uses = 0;
			if (row !== null)
				await eachUse(sql, row.variable, async () => {
					uses += 1;
				});
			return uses;
		},
		createField: async ({ input: { variable, name }, now }) => {
			if (await isVariableTaken(sql, variable, 0)) return { kind: 'refused', errors: notUnique('variable') };
			const id = await insertNumbered(sql, 'fields', { variable, name, created_at: now });
			return writtenOf(await findField(sql, id));
		},
		patchField: async ({ id, patch }) => {
			const stored = await findField(sql, id);
			if (stored === null) return { kind: 'not_found' };
			const { variable, name } = { ...stored, ...patch };
			if (await isVariableTaken(sql, variable, id)) return { kind: 'refused', errors: notUnique('variable') };
			sql.write('UPDATE fields SET variable = ?, name = ? WHERE id = ?', [variable, name, id]);
			if (variable !== stored.variable)
				await eachUse(sql, stored.variable, async (one, { [stored.variable]: value, ...rest }) =>
					writeMeta(sql, one, { ...rest, [variable]: value }),
				);
			return writtenOf(await findField(sql, id));
		},
		deleteField: async ({ id }) => {
			const row = await findField(sql, id);
			if (row === null) return false;
			sql.write('DELETE FROM fields WHERE id = ?', [id]);
			await eachUse(sql, row.variable, without(sql, row.variable));
			return true;
		},
		dropFieldUses: async ({ id, after, limit }) => {
			const row = await findField(sql, id);
			if (row === null) return null;
			return await eachOfSlice(sql, { ...row, after, limit }, without(sql, row.variable));
		},
	} satisfies Partial<Operations>;
}

export async function knownVariables(sql: Sql): Promise<Set<string>> {
	return new Set(await column<string>(sql, 'SELECT variable FROM fields'));
}

async function findField(sql: Sql, id: number): Promise<Field | null> {
	const row = await sql.get<Dated<Field>>(`SELECT ${columns} FROM fields WHERE id = ?`, [id]);
	return row === undefined ? null : dated(row);
}

export async function isVariableTaken(sql: Sql, variable: string, exceptId: number): Promise<boolean> {
	return await exists(sql, 'SELECT 1 FROM fields WHERE variable = ? AND id <> ?', [variable, exceptId]);
}

function without(sql: Sql, variable: string): Use {
	return async (id, { [variable]: _, ...rest }) => writeMeta(sql, id, rest);
}

function writeMeta(sql: Sql, id: number, meta: Record<string, unknown>): void {
	sql.write('UPDATE subscribers SET meta = ? WHERE id = ?', [JSON.stringify(meta), id]);
}

type Use = (id: number, meta: Record<string, unknown>) => Promise<void>;

async function eachUse(sql: Sql, variable: string, use: Use): Promise<void> {
	let after: number | null = 0;
	while (after !== null) after = await eachOfSlice(sql, { variable, after, limit: 1_000 }, use);
}

async function eachOfSlice(
	sql: Sql,
	{ variable, after, limit }: { variable: string; after: number; limit: number },
	use: Use,
): Promise<number | null> {
	const rows = await sql.tuples<[id: number, meta: string]>(
		// Search the text for the quoted name, so that few rows are parsed. Names of variables need no JSON escapes.
		`SELECT id, meta
		FROM subscribers
		WHERE id > ? AND ${sql.dialect.position}(meta, ?) > 0
		ORDER BY id
		LIMIT ?`,
		[after, `"${variable}"`, limit],
	);
	for (const [id, text] of rows) {
		const meta = parseRecord(text);
		if (Object.hasOwn(meta, variable)) await use(id, meta);
	}
	return rows.length < limit ? null : (rows.at(-1)?.[0] ?? null);
}
