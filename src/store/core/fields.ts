/**
 * Additional fields: the variables that meta may hold. Renaming or deleting a field changes the meta of every
 * subscriber.
 */
import { notUnique } from '../../engine/rules/errors.js';
import type { Operations } from '../operations.js';
import { type FieldRow, span, toField } from './rows.js';
import type { Sql } from './sql.js';

const columns = 'id, variable, name, created_at';
// Searches for the quoted name first: parsing the JSON of every subscriber costs five times as much.
const usesVariable = `instr(meta, ?) > 0 AND json_type(meta, ?) IS NOT NULL`;

/** Renaming and deleting walk all subscribers in one transaction of the caller. */
export function createFields(sql: Sql) {
	return {
		pageFields: async (page) => ({
			count: await sql.number('SELECT count(*) FROM fields'),
			results: (
				await sql.all<FieldRow>(`SELECT ${columns} FROM fields ORDER BY id LIMIT ? OFFSET ?`, ...span(page))
			).map(toField),
		}),
		getField: async ({ id }) => {
			const row = await findField(sql, id);
			return row === null ? null : toField(row);
		},
		countFieldUses: async ({ id }) => {
			const row = await findField(sql, id);
			if (row === null) return 0;
			return await sql.number(
				`SELECT count(*) FROM subscribers WHERE ${usesVariable}`,
				quoted(row.variable),
				path(row.variable),
			);
		},
		createField: async ({ input, now }) => {
			if (await isVariableTaken(sql, input.variable, 0))
				return { kind: 'refused', errors: notUnique('variable') };
			const { lastInsertRowid } = await sql.run(
				'INSERT INTO fields (variable, name, created_at) VALUES (?, ?, ?)',
				input.variable,
				input.name,
				now,
			);
			return await written(sql, Number(lastInsertRowid));
		},
		patchField: async ({ id, patch }) => {
			const row = await findField(sql, id);
			if (row === null) return { kind: 'not_found' };
			const variable = patch.variable ?? row.variable;
			if (await isVariableTaken(sql, variable, id)) return { kind: 'refused', errors: notUnique('variable') };
			await sql.run(
				'UPDATE fields SET variable = ?, name = ? WHERE id = ?',
				variable,
				patch.name ?? row.name,
				id,
			);
			if (variable !== row.variable) await renameInMeta(sql, row.variable, variable);
			return await written(sql, id);
		},
		deleteField: async ({ id }) => {
			const row = await findField(sql, id);
			if (row === null) return false;
			await sql.run('DELETE FROM fields WHERE id = ?', id);
			await removeFromMeta(sql, row.variable);
			return true;
		},
	} satisfies Partial<Operations>;
}

/** Reads the set at each call. A caller that checks many rows keeps it within its transaction. */
export async function knownVariables(sql: Sql): Promise<Set<string>> {
	return new Set(
		(await sql.all<{ variable: string }>('SELECT variable FROM fields')).map(({ variable }) => variable),
	);
}

async function findField(sql: Sql, id: number): Promise<FieldRow | null> {
	return (await sql.get<FieldRow>(`SELECT ${columns} FROM fields WHERE id = ?`, id)) ?? null;
}

/** Whether another field has this variable. */
export async function isVariableTaken(sql: Sql, variable: string, exceptId: number): Promise<boolean> {
	const taken = 'SELECT EXISTS (SELECT 1 FROM fields WHERE variable = ? AND id <> ?)';
	return (await sql.number(taken, variable, exceptId)) === 1;
}

// `->` and json(): json_extract would turn true into 1.
async function renameInMeta(sql: Sql, from: string, to: string): Promise<void> {
	await sql.run(
		`UPDATE subscribers
		SET meta = json_remove(json_set(meta, ?, json(meta -> ?)), ?)
		WHERE ${usesVariable}`,
		path(to),
		path(from),
		path(from),
		quoted(from),
		path(from),
	);
}

async function removeFromMeta(sql: Sql, variable: string): Promise<void> {
	await sql.run(
		`UPDATE subscribers SET meta = json_remove(meta, ?) WHERE ${usesVariable}`,
		path(variable),
		quoted(variable),
		path(variable),
	);
}

// Variables are letters, digits and underscores: nothing to escape.
function quoted(variable: string): string {
	return `"${variable}"`;
}

function path(variable: string): string {
	return `$."${variable}"`;
}

async function written(sql: Sql, id: number) {
	const row = await findField(sql, id);
	return row === null
		? ({ kind: 'not_found' } as const)
		: ({ kind: 'written', record: toField(row) } as const);
}
