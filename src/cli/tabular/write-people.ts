/**
 * Subscribers as a table or as lines of JSON that import again to the same people. Pure. Which columns there are is
 * settled before the first row: what a column's cell cannot say (numbers, null, empty texts, keys without a field)
 * goes into the last one, `meta`, as the JSON of an object.
 */
import type { Subscriber } from '../../api/records.js';
import { isRejectColumn } from './finding.js';
import { formatCsvRow } from './write-csv.js';

/** A column of the record, a field of the project, or what is left of meta. */
export type PeopleColumn =
	| { kind: 'record'; name: RecordKey }
	| { kind: 'field'; name: string; variable: string }
	| { kind: 'meta'; name: 'meta' };

type RecordKey = Exclude<keyof Subscriber, 'meta'>;

const usual: readonly RecordKey[] = ['email', 'name', 'is_active', 'disable_reason'];
/** Nobody can set these, so an import passes over them: they are there when they are named. */
const readOnly: readonly RecordKey[] = [
	'id',
	'list_id',
	'is_email_verified',
	'source',
	'opt_in_signed',
	'date_created',
];
const recordKeys = new Set<string>([...usual, ...readOnly, 'meta']);

/** Those of an export that names none, in their order. `variables` are the project's, in theirs. */
export function usualColumns(variables: readonly string[]): PeopleColumn[] {
	return [...usual.map(recordColumn), ...variables.map(fieldColumn), { kind: 'meta', name: 'meta' }];
}

/** All that can be named. */
export function allColumns(variables: readonly string[]): PeopleColumn[] {
	return [...usualColumns(variables), ...readOnly.map(recordColumn)];
}

/** The line of names. */
export function formatHeader(columns: readonly PeopleColumn[]): string {
	return formatCsvRow(columns.map(({ name }) => name));
}

/** `guard` changes a cell once more before it is written. */
export function formatPerson(
	columns: readonly PeopleColumn[],
	person: Subscriber,
	guard: (cell: string) => string = (cell) => cell,
): string {
	return formatCsvRow(columns.map((column) => guard(cellOf(columns, column, person))));
}

/** One line of JSON without its end: the record's keys, and the fields under `meta`. */
export function formatPersonJson(columns: readonly PeopleColumn[], person: Subscriber): string {
	const entries = columns.flatMap((column): [string, unknown][] =>
		column.kind === 'record' ? [[column.name, person[column.name] ?? null]] : [],
	);
	const ofMeta = columns.filter(({ kind }) => kind !== 'record');
	if (ofMeta.length > 0) entries.push(['meta', Object.fromEntries(metaEntries(columns, person))]);
	return JSON.stringify(Object.fromEntries(entries));
}

/**
 * A spreadsheet takes cells that begin so for formulas, also behind an apostrophe of its own making (OWASP, "CSV
 * Injection"). The apostrophe is text: such a file is to be looked at, not to be imported.
 */
export function guardFormula(cell: string): string {
	return /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
}

function recordColumn(name: RecordKey): PeopleColumn {
	return { kind: 'record', name };
}

/** A field that is called like a column of the record, or like one of a rejects file, is told from it by its prefix. */
function fieldColumn(variable: string): PeopleColumn {
	const isTaken = recordKeys.has(variable) || isRejectColumn(variable);
	return { kind: 'field', variable, name: isTaken ? `meta.${variable}` : variable };
}

function cellOf(columns: readonly PeopleColumn[], column: PeopleColumn, person: Subscriber): string {
	switch (column.kind) {
		case 'record':
			return String(person[column.name] ?? '');
		case 'field':
			return textOf(person, column.variable) ?? '';
		case 'meta':
			return restOf(columns, person);
	}
}

/** Null: no cell can say it. */
function textOf({ meta }: Subscriber, variable: string): string | null {
	const value = Object.hasOwn(meta, variable) ? meta[variable] : null;
	return typeof value === 'string' && value !== '' ? value : null;
}

function restOf(columns: readonly PeopleColumn[], person: Subscriber): string {
	if (Object.keys(person.meta).length === 0) return '';
	const rest = metaEntries(columns, person).filter(
		([variable]) => !hasColumn(columns, variable) || textOf(person, variable) === null,
	);
	return rest.length === 0 ? '' : JSON.stringify(Object.fromEntries(rest));
}

/** In the order of the columns, then by name: the same people give the same bytes however they were written. */
function metaEntries(columns: readonly PeopleColumn[], { meta }: Subscriber): [string, unknown][] {
	const ordered = columns.flatMap((column): [string, unknown][] =>
		column.kind === 'field' && Object.hasOwn(meta, column.variable)
			? [[column.variable, meta[column.variable]]]
			: [],
	);
	if (!columns.some(({ kind }) => kind === 'meta')) return ordered;
	const others = Object.entries(meta).filter(([variable]) => !hasColumn(columns, variable));
	return [...ordered, ...others.sort(([a], [b]) => (a < b ? -1 : 1))];
}

function hasColumn(columns: readonly PeopleColumn[], variable: string): boolean {
	return columns.some((column) => column.kind === 'field' && column.variable === variable);
}
