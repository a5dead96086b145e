/** How a record is laid out for people; machines get the record itself. */
import type { Times } from './times.js';

export interface Column<T> {
	/** The wire's key where there is one: `--fields` selects by it. */
	key: string;
	header: string;
	/** `null` and `undefined` show as nothing. */
	value(record: T): unknown;
	/** For people, instead of an array of objects: a line each on a card, one after the other in a table. */
	lines?(record: T, times: Times): readonly string[];
	/** A date-time of the wire: in the zone of the reader; of a row, `recent` shows how long ago it was. */
	time?: 'text' | 'recent' | 'day';
	/** Not in a plain table or a pipe: in `wide`, in `csv`, on cards, and when named by `--fields`. */
	wide?: boolean;
	align?: 'left' | 'right';
	/** Never shortened or broken for a terminal: half a key is useless. */
	isWhole?: boolean;
	/**
	 * Never broken on a card, and shortened in its middle in a table: a name as early as texts, an id and then an address where
	 * no column is left to leave out.
	 */
	isKept?: 'id' | 'name' | 'address';
	/** Left out of a table where a terminal has no room for it: those without anything in them first, then the widest. */
	isOptional?: boolean;
	/** A number of things, not a name: a table groups its digits. */
	isCount?: boolean;
	/** The column of `-o name`; the first column if none is marked. */
	isName?: boolean;
}

export type Columns<T> = readonly Column<T>[];

/** The keys of a command's answer that is one object and no record: `--fields` may name them. */
export function answer(...keys: readonly string[]): Columns<never> {
	return keys.map((key) => ({ key, header: key, value: () => undefined }));
}

/** A column of a key of the record: `column('id', 'ID')`. */
export function column<T, K extends keyof T & string>(
	key: K,
	header: string,
	more: Partial<Omit<Column<T>, 'key' | 'header'>> = {},
): Column<T> {
	return { key, header, value: (record) => record[key], ...more };
}
