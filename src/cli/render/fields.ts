/** `--fields a,b`: which columns, or which keys of the JSON. */
import { isRecord } from '../../api/json.js';
import { UsageError } from '../frame/errors.js';
import { didYouMean } from '../frame/help.js';
import type { Column, Columns } from './columns.js';

/** `null` when not given. */
export function parseFields(text: string | undefined): readonly string[] | null {
	if (text === undefined) return null;
	const fields = text.split(',').map((field) => field.trim());
	if (fields.some((field) => field === '')) throw new UsageError('--fields: an empty name');
	return fields;
}

/** The columns in the order asked for. An unknown one is exit 2 with the valid ones. */
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

/** The column of that key, or, by `meta.city`, of one key of the objects of a column. */
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

/** The record's own keys in the order asked for; a column's key that the record lacks is left out. */
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

/** An error for the caller to throw. Names similar fields, and all of `valid` in their order. */
export function unknownField(field: string, valid: readonly string[]): UsageError {
	const near = didYouMean(field, valid);
	return new UsageError(`--fields: there is no "${field}"`, {
		hint: `${near === undefined ? '' : `${near} `}valid: ${valid.join(', ')}`,
	});
}
