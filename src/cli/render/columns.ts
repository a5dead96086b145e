import { isRecord } from '../../api/json.js';
import { UsageError } from '../frame/errors.js';
import { didYouMean } from '../frame/words.js';
import type { Times } from './times.js';

export interface Column<T> {
	key: string;
	header: string;
	value(record: T): unknown;
	lines?(record: T, times: Times): readonly string[];
	/** A time of the API, shown in the local zone. In a table, `recent` shows how long ago it was. */
	time?: 'text' | 'recent' | 'day';
	/** Shown only in `wide`, in CSV and on cards, unless `--fields` names it. */
	wide?: boolean;
	align?: 'left' | 'right';
	isWhole?: boolean;
	/** A narrow table shortens names first, then ids, then addresses. A card does not wrap a column with this key. */
	isKept?: 'id' | 'name' | 'address';
	/** Omitted from a table that is too wide: empty columns first, then the widest. */
	isOptional?: boolean;
	isCount?: boolean;
	isName?: boolean;
}

export type Columns<T> = readonly Column<T>[];

/** Columns for the keys of a single object, so that `--fields` can name them. */
export function answer(...keys: readonly string[]): Columns<never> {
	return keys.map((key) => ({ key, header: key, value: () => undefined }));
}

/**
 * `object` describes the printed object: only its keys, or its keys with sample values. The help shows `more` after the
 * object.
 */
export function answers(
	object: readonly string[] | Readonly<Record<string, string>>,
	more = '',
): { columns: Columns<never>; output: string } {
	const values = Array.isArray(object) ? Object.fromEntries(object.map((key) => [key, ''])) : object;
	const shown = Object.entries(values).map(([key, value]) => `"${key}"${value === '' ? '' : `: ${value}`}`);
	return { columns: answer(...Object.keys(values)), output: `{${shown.join(', ')}}${more}` };
}

export function column<T, K extends keyof T & string>(
	key: K,
	header: string,
	more: Partial<Omit<Column<T>, 'key' | 'header'>> = {},
): Column<T> {
	return { key, header, value: (record) => record[key], ...more };
}

export function parseFields(text: string | undefined): readonly string[] | null {
	return text === undefined ? null : text.split(',').map((field) => field.trim());
}

export function selectColumns<T>(columns: Columns<T>, fields: readonly string[]): Columns<T> {
	return fields.map((field) => {
		const found = findColumn(columns, field);
		if (found === undefined)
			throw unknownField(
				field,
				columns.map((column) => column.key),
			);
		return found;
	});
}

export function findColumn<T>(columns: Columns<T>, field: string): Column<T> | undefined {
	const found = columns.find(({ key }) => key === field);
	if (found !== undefined) return found;
	const key = field.startsWith('meta.') ? field.slice('meta.'.length) : '';
	const whole = columns.find((column) => column.key === 'meta');
	if (whole === undefined || key === '') return undefined;
	return {
		key: field,
		header: key.toUpperCase(),
		value: (record) => {
			const value = whole.value(record);
			return isRecord(value) && Object.hasOwn(value, key) ? value[key] : null;
		},
	};
}

export function selectKeys<T>(record: T, columns: Columns<T>, fields: readonly string[]): object {
	const source = new Map(Object.entries(record ?? {}));
	const known = new Set([...columns.map((column) => column.key), ...source.keys()]);
	const wrong = fields.find((field) => !known.has(field) && findColumn(columns, field) === undefined);
	if (wrong !== undefined) throw unknownField(wrong, [...known]);
	return Object.fromEntries(
		fields.flatMap((field) => {
			if (source.has(field)) return [[field, source.get(field)]];
			const column = findColumn(columns, field);
			const value = column?.value(record);
			return value === undefined ? [] : [[field, value]];
		}),
	);
}

export function unknownField(field: string, valid: readonly string[]): UsageError {
	const near = didYouMean(field, valid);
	return new UsageError(`--fields: unknown field "${field}"`, {
		hint: `${near === undefined ? '' : `${near} `}valid: ${valid.join(', ')}`,
	});
}
