/** A value as one cell of each format. */

import { clean, cleanJson } from './clean.js';
import type { Columns } from './columns.js';

/** For people: yes and no, nothing for null, JSON for objects; cleaned. */
export function humanCell(value: unknown): string {
	if (value === null || value === undefined) return '';
	if (typeof value === 'boolean') return value ? 'yes' : 'no';
	return clean(plainText(value));
}

/** As `humanCell`, and the microseconds of a wire date-time left out: they say nothing and take half a narrow table. */
export function tableCell(value: unknown): string {
	const text = humanCell(value);
	const [, day, time] = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}\.\d{6}$/.exec(text) ?? [];
	return day === undefined ? text : `${day} ${time}`;
}

/** For programs: true and false, plain values of an array separated by commas, JSON for the rest; exact. */
export function plainText(value: unknown): string {
	if (value === null || value === undefined) return '';
	if (Array.isArray(value) && !isJson(value)) return value.join(',');
	return isJson(value) ? JSON.stringify(value) : String(value);
}

function isJson(value: unknown): boolean {
	if (Array.isArray(value)) return value.some((one) => typeof one === 'object');
	return typeof value === 'object';
}

/**
 * One TSV cell, cleaned: a tab or a line break in a value cannot become one of the file. JSON stays JSON, with the
 * escapes of JSON.
 */
export function tsvCell(value: unknown): string {
	const text = plainText(value);
	return isJson(value) ? cleanJson(text) : clean(text);
}

/** RFC 4180: quoted when it holds a comma, a quote, a line break or outer spaces. */
export function csvCell(value: unknown): string {
	const text = plainText(value);
	return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A cell of a pipe table; characters of Markdown markup and links stay text. */
export function markdownCell(value: unknown): string {
	return humanCell(value).replace(/[\\|`*_<>[\]]/g, (char) => `\\${char}`);
}

/** The cells of a record, for programs. */
export function cellsOf<T>(record: T, columns: Columns<T>, cell: (value: unknown) => string): string[] {
	return columns.map((column) => cell(column.value(record)));
}

/** The cells of a record, for people: its lines where it has some. */
export function readCellsOf<T>(record: T, columns: Columns<T>, cell: (value: unknown) => string): string[] {
	return columns.map((column) => cell(column.lines?.(record).join('; ') ?? column.value(record)));
}
