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
		pageFields: (page) => ({
			count: sql.number('SELECT count(*) FROM fields'),
			results: sql
				.all<FieldRow>(`SELECT ${columns} FROM fields ORDER BY id LIMIT ? OFFSET ?`, ...span(page))
				.map(toField),
		}),
		getField: ({ id }) => {
			const row = findField(sql, id);
			return row === null ? null : toField(row);
		},
		countFieldUses: ({ id }) => {
			const row = findField(sql, id);
			if (row === null) return 0;
			return sql.number(
				`SELECT count(*) FROM subscribers WHERE ${usesVariable}`,
				quoted(row.variable),
				path(row.variable),
			);
		},
		createField: ({ input, now }) => {
			if (isVariableTaken(sql, input.variable, 0)) return { kind: 'refused', errors: notUnique('variable') };
			const { lastInsertRowid } = sql.run(
				'INSERT INTO fields (variable, name, created_at) VALUES (?, ?, ?)',
				input.variable,
				input.name,
				now,
			);
			return written(sql, Number(lastInsertRowid));
		},
		patchField: ({ id, patch }) => {
			const row = findField(sql, id);
			if (row === null) return { kind: 'not_found' };
			const variable = patch.variable ?? row.variable;
			if (isVariableTaken(sql, variable, id)) return { kind: 'refused', errors: notUnique('variable') };
			sql.run('UPDATE fields SET variable = ?, name = ? WHERE id = ?', variable, patch.name ?? row.name, id);
			if (variable !== row.variable) renameInMeta(sql, row.variable, variable);
			return written(sql, id);
		},
		deleteField: ({ id }) => {
			const row = findField(sql, id);
			if (row === null) return false;
			sql.run('DELETE FROM fields WHERE id = ?', id);
			removeFromMeta(sql, row.variable);
			return true;
		},
	} satisfies Partial<Operations>;
}

/** Reads the set at each call. A caller that checks many rows keeps it within its transaction. */
export function knownVariables(sql: Sql): Set<string> {
	return new Set(
		sql.all<{ variable: string }>('SELECT variable FROM fields').map(({ variable }) => variable),
	);
}

function findField(sql: Sql, id: number): FieldRow | null {
	return sql.get<FieldRow>(`SELECT ${columns} FROM fields WHERE id = ?`, id) ?? null;
}

/** Whether another field has this variable. */
export function isVariableTaken(sql: Sql, variable: string, exceptId: number): boolean {
	const taken = 'SELECT EXISTS (SELECT 1 FROM fields WHERE variable = ? AND id <> ?)';
	return sql.number(taken, variable, exceptId) === 1;
}

// `->` and json(): json_extract would turn true into 1.
function renameInMeta(sql: Sql, from: string, to: string): void {
	sql.run(
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

function removeFromMeta(sql: Sql, variable: string): void {
	sql.run(
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

function written(sql: Sql, id: number) {
	const row = findField(sql, id);
	return row === null
		? ({ kind: 'not_found' } as const)
		: ({ kind: 'written', record: toField(row) } as const);
}
