import { type SubscriberTuple, type TupleKeys, tupleKeys } from '../api/exports.js';
import type { Subscriber } from '../api/records.js';
import { isRejectColumn } from './finding.js';
import { formatCell, formatCsvRow } from './write-csv.js';

export type PeopleColumn =
	| { kind: 'record'; name: RecordKey }
	| { kind: 'field'; name: string; variable: string }
	| { kind: 'meta'; name: 'meta' };

type RecordKey = Exclude<keyof Subscriber, 'meta'>;
type Meta = Subscriber['meta'];

const usual: readonly RecordKey[] = ['email', 'name', 'is_active', 'disable_reason'];
/** Imports skip these columns, and exports contain them only if the user names them. */
const readOnly: readonly RecordKey[] = [
	'id',
	'list_id',
	'is_email_verified',
	'source',
	'opt_in_signed',
	'date_created',
];
const recordKeys = new Set<string>([...usual, ...readOnly, 'meta']);

export function usualColumns(variables: readonly string[]): PeopleColumn[] {
	return [...usual.map(recordColumn), ...variables.map(fieldColumn), { kind: 'meta', name: 'meta' }];
}

export function allColumns(variables: readonly string[]): PeopleColumn[] {
	return [...usualColumns(variables), ...readOnly.map(recordColumn)];
}

export function formatHeader(columns: readonly PeopleColumn[]): string {
	return formatCsvRow(columns.map(({ name }) => name));
}

export function keysOf(columns: readonly PeopleColumn[]): TupleKeys {
	const isImported = columns.every(
		({ kind, name }) => kind !== 'record' || usual.some((key) => key === name),
	);
	return isImported ? 'imported' : 'all';
}

/** Loops over column indexes: a function per column and an array per row would cost a tenth of an export's time. */
export function csvFormat(
	columns: readonly PeopleColumn[],
	guard: (cell: string) => string = (cell) => cell,
): (tuple: SubscriberTuple) => string {
	const places = placesOf(columns);
	const metaAt = tupleKeys[keysOf(columns)].indexOf('meta');
	const own = variablesOf(columns);
	const valueAt = (tuple: SubscriberTuple, place: number | string | null): unknown => {
		if (typeof place === 'number') return tuple[place];
		const meta = tuple[metaAt] as Meta;
		return place === null ? restOf(meta, own) : textOf(meta, place);
	};
	return (tuple) => {
		let line = '';
		let comma = '';
		for (const place of places) {
			const value = valueAt(tuple, place) ?? '';
			line += `${comma}${typeof value === 'string' ? formatCell(guard(value)) : value}`;
			comma = ',';
		}
		return line === '' ? '""\n' : `${line}\n`;
	};
}

function placesOf(columns: readonly PeopleColumn[]): (number | string | null)[] {
	const keys: readonly string[] = tupleKeys[keysOf(columns)];
	return columns.map((column) => {
		if (column.kind === 'record') return keys.indexOf(column.name);
		return column.kind === 'field' ? column.variable : null;
	});
}

/** Joins strings, because creating an object per subscriber takes as long as reading the subscriber. */
export function jsonFormat(columns: readonly PeopleColumn[]): (tuple: SubscriberTuple) => string {
	const keys: readonly string[] = tupleKeys[keysOf(columns)];
	const metaAt = keys.indexOf('meta');
	const own = variablesOf(columns);
	const named = columns.flatMap(({ kind, name }) =>
		kind === 'record' ? [{ name, at: keys.indexOf(name) }] : [],
	);
	const hasRest = columns.some(({ kind }) => kind === 'meta');
	const hasMeta = hasRest || own.size > 0;
	return (tuple) => {
		const parts = named.map(({ name, at }) => `"${name}":${JSON.stringify(tuple[at] ?? null)}`);
		const meta = tuple[metaAt] as Meta;
		if (hasMeta) parts.push(`"meta":{${metaParts(meta, own, hasRest ? othersOf(meta, own) : []).join(',')}}`);
		return `{${parts.join(',')}}`;
	};
}

function recordColumn(name: RecordKey): PeopleColumn {
	return { kind: 'record', name };
}

function fieldColumn(variable: string): PeopleColumn {
	const isTaken = recordKeys.has(variable) || isRejectColumn(variable);
	return { kind: 'field', variable, name: isTaken ? `meta.${variable}` : variable };
}

function variablesOf(columns: readonly PeopleColumn[]): ReadonlySet<string> {
	return new Set(columns.flatMap((column) => (column.kind === 'field' ? [column.variable] : [])));
}

/** Accepts only non-empty strings, so inherited properties such as `constructor` give null. */
function textOf(meta: Meta, variable: string): string | null {
	const value = meta[variable];
	return typeof value === 'string' && value !== '' ? value : null;
}

function restOf(meta: Meta, own: ReadonlySet<string>): string {
	if (isSaid(meta, own)) return '';
	const unsaid = [...own].filter(
		(variable) => Object.hasOwn(meta, variable) && textOf(meta, variable) === null,
	);
	return `{${metaParts(meta, unsaid, othersOf(meta, own)).join(',')}}`;
}

function isSaid(meta: Meta, own: ReadonlySet<string>): boolean {
	for (const variable in meta) {
		if (!own.has(variable) || textOf(meta, variable) === null) return false;
	}
	return true;
}

/** Orders variables by column, then by name, so that equal subscribers give equal bytes. */
function metaParts(meta: Meta, first: Iterable<string>, others: readonly string[]): string[] {
	const parts: string[] = [];
	for (const variable of [...first, ...others]) {
		if (Object.hasOwn(meta, variable))
			parts.push(`${JSON.stringify(variable)}:${JSON.stringify(meta[variable])}`);
	}
	return parts;
}

function othersOf(meta: Meta, own: ReadonlySet<string>): string[] {
	return Object.keys(meta)
		.filter((variable) => !own.has(variable))
		.sort();
}
