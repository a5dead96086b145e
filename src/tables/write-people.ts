/**
 * Subscribers as a table or as lines of JSON that import again to the same subscribers. Pure. The columns are fixed
 * before the first row. Values without a cell form (numbers, null, empty texts, keys without a field) go into the last
 * column, `meta`, as the JSON of an object.
 */
import type { Subscriber } from '../api/records.js';
import { isRejectColumn } from './finding.js';
import { formatCsvRow } from './write-csv.js';

/** A column of the record, a field of the project, or the rest of meta. */
export type PeopleColumn =
	| { kind: 'record'; name: RecordKey }
	| { kind: 'field'; name: string; variable: string }
	| { kind: 'meta'; name: 'meta' };

type RecordKey = Exclude<keyof Subscriber, 'meta'>;

const usual: readonly RecordKey[] = ['email', 'name', 'is_active', 'disable_reason'];
/** They cannot be set, so an import skips them; an export has them only by name. */
const readOnly: readonly RecordKey[] = [
	'id',
	'list_id',
	'is_email_verified',
	'source',
	'opt_in_signed',
	'date_created',
];
const recordKeys = new Set<string>([...usual, ...readOnly, 'meta']);

/** The columns of an export without a choice, in their order. `variables` are the project's, in theirs. */
export function usualColumns(variables: readonly string[]): PeopleColumn[] {
	return [...usual.map(recordColumn), ...variables.map(fieldColumn), { kind: 'meta', name: 'meta' }];
}

/** All columns that can be named. */
export function allColumns(variables: readonly string[]): PeopleColumn[] {
	return [...usualColumns(variables), ...readOnly.map(recordColumn)];
}

/** The line of names. */
export function formatHeader(columns: readonly PeopleColumn[]): string {
	return formatCsvRow(columns.map(({ name }) => name));
}

/** One row of the table. `guard` changes a cell once more before it is written. */
export function csvFormat(
	columns: readonly PeopleColumn[],
	guard: (cell: string) => string = (cell) => cell,
): (person: Subscriber) => string {
	const cells = columns.map((column) => cellIn(column, variablesOf(columns)));
	return (person) => formatCsvRow(cells.map((cell) => guard(cell(person))));
}

/**
 * One line of JSON without its end: the record's keys, and the fields under `meta`. Joined from pieces: an object for
 * each person cost as much as reading them.
 */
export function jsonFormat(columns: readonly PeopleColumn[]): (person: Subscriber) => string {
	const own = variablesOf(columns);
	const keys = columns.flatMap((column) => (column.kind === 'record' ? [column.name] : []));
	const hasRest = columns.some(({ kind }) => kind === 'meta');
	const hasMeta = hasRest || own.size > 0;
	return (person) => {
		const parts = keys.map((key) => `"${key}":${JSON.stringify(person[key] ?? null)}`);
		if (hasMeta)
			parts.push(`"meta":{${metaParts(person, own, hasRest ? othersOf(person, own) : []).join(',')}}`);
		return `{${parts.join(',')}}`;
	};
}

function recordColumn(name: RecordKey): PeopleColumn {
	return { kind: 'record', name };
}

/** A field with the name of a column of the record, or of a rejects file, has a prefix. */
function fieldColumn(variable: string): PeopleColumn {
	const isTaken = recordKeys.has(variable) || isRejectColumn(variable);
	return { kind: 'field', variable, name: isTaken ? `meta.${variable}` : variable };
}

/** Of the columns that are fields, in their order. */
function variablesOf(columns: readonly PeopleColumn[]): ReadonlySet<string> {
	return new Set(columns.flatMap((column) => (column.kind === 'field' ? [column.variable] : [])));
}

/** The cell of a person in this column. */
function cellIn(column: PeopleColumn, own: ReadonlySet<string>): (person: Subscriber) => string {
	switch (column.kind) {
		case 'record':
			return (person) => String(person[column.name] ?? '');
		case 'field':
			return (person) => textOf(person, column.variable) ?? '';
		case 'meta':
			return (person) => restOf(person, own);
	}
}

/** Null: it has no cell form. */
function textOf({ meta }: Subscriber, variable: string): string | null {
	const value = Object.hasOwn(meta, variable) ? meta[variable] : null;
	return typeof value === 'string' && value !== '' ? value : null;
}

function restOf(person: Subscriber, own: ReadonlySet<string>): string {
	const unsaid = [...own].filter(
		(variable) => Object.hasOwn(person.meta, variable) && textOf(person, variable) === null,
	);
	const rest = metaParts(person, unsaid, othersOf(person, own));
	return rest.length === 0 ? '' : `{${rest.join(',')}}`;
}

/** In the order of the columns, then by name: the same subscribers give the same bytes whatever their input was. */
function metaParts({ meta }: Subscriber, first: Iterable<string>, others: readonly string[]): string[] {
	const parts: string[] = [];
	for (const variable of [...first, ...others]) {
		if (Object.hasOwn(meta, variable))
			parts.push(`${JSON.stringify(variable)}:${JSON.stringify(meta[variable])}`);
	}
	return parts;
}

/** Keys of meta without a column of their own. */
function othersOf({ meta }: Subscriber, own: ReadonlySet<string>): string[] {
	return Object.keys(meta)
		.filter((variable) => !own.has(variable))
		.sort();
}
