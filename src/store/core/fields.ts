import type { Field } from '../../api/records.js';
import { notUnique } from '../../engine/rules/errors.js';
import type { Operations } from '../operations.js';
import { type FieldRow, parseRecord, selectPage, toField, writtenOf } from './rows.js';
import { exists, type Sql } from './sql.js';

const columns = 'id, variable, name, created_at';

export function createFields(sql: Sql) {
	return {
		pageFields: (page) => selectPage(sql, { columns, from: 'fields', order: 'id' }, page, toField),
		getField: ({ id }) => getField(sql, id),
		countFieldUses: async ({ id }) => {
			const row = await findField(sql, id);
			if (row === null) return 0;
			let uses = 0;
			await eachUse(sql, row.variable, async () => {
				uses += 1;
			});
			return uses;
		},
		createField: async ({ input, now }) => {
			if (await isVariableTaken(sql, input.variable, 0))
				return { kind: 'refused', errors: notUnique('variable') };
			const id = await sql.number(
				'INSERT INTO fields (variable, name, created_at) VALUES (?, ?, ?) RETURNING id',
				[input.variable, input.name, now],
			);
			return writtenOf(await getField(sql, id));
		},
		patchField: async ({ id, patch }) => {
			const row = await findField(sql, id);
			if (row === null) return { kind: 'not_found' };
			const variable = patch.variable ?? row.variable;
			if (await isVariableTaken(sql, variable, id)) return { kind: 'refused', errors: notUnique('variable') };
			sql.write('UPDATE fields SET variable = ?, name = ? WHERE id = ?', [
				variable,
				patch.name ?? row.name,
				id,
			]);
			if (variable !== row.variable)
				await eachUse(sql, row.variable, async (one, { [row.variable]: value, ...rest }) =>
					writeMeta(sql, one, { ...rest, [variable]: value }),
				);
			return writtenOf(await getField(sql, id));
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
			const { variable } = row;
			return await eachOfSlice(sql, { variable, after, limit }, without(sql, variable));
		},
	} satisfies Partial<Operations & FieldUses>;
}

export interface FieldUses {
	dropFieldUses(c: { id: number; after: number; limit: number }): Promise<number | null>;
}

export async function knownVariables(sql: Sql): Promise<Set<string>> {
	return new Set(
		(await sql.all<{ variable: string }>('SELECT variable FROM fields')).map(({ variable }) => variable),
	);
}

async function findField(sql: Sql, id: number): Promise<FieldRow | null> {
	return (await sql.get<FieldRow>(`SELECT ${columns} FROM fields WHERE id = ?`, [id])) ?? null;
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

const sliceRows = 1_000;

interface Slice {
	variable: string;
	after: number;
	limit: number;
}

type Use = (id: number, meta: Record<string, unknown>) => Promise<void>;

async function eachUse(sql: Sql, variable: string, use: Use): Promise<void> {
	let after: number | null = 0;
	while (after !== null) after = await eachOfSlice(sql, { variable, after, limit: sliceRows }, use);
}

async function eachOfSlice(sql: Sql, { variable, after, limit }: Slice, use: Use): Promise<number | null> {
	const rows = await sql.tuples<[id: number, meta: string]>(
		// The quoted name is searched for first: most rows are never parsed. Variables need no escaping.
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

async function getField(sql: Sql, id: number): Promise<Field | null> {
	const row = await findField(sql, id);
	return row === null ? null : toField(row);
}
