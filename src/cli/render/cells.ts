/** A value as one cell of each format. */

import { clean } from './clean.js';
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
	if (Array.isArray(value) && value.every((one) => typeof one !== 'object')) return value.join(',');
	return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** One TSV cell: cleaned, so that a tab or a line break in a value cannot become one of the file. */
export function tsvCell(value: unknown): string {
	return clean(plainText(value));
}

/** RFC 4180: quoted when it holds a comma, a quote, a line break or outer spaces. */
export function csvCell(value: unknown): string {
	const text = plainText(value);
	return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A cell of a pipe table; what Markdown would read as markup or as a link stays text. */
export function markdownCell(value: unknown): string {
	return humanCell(value).replace(/[\\|`*_<>[\]]/g, (char) => `\\${char}`);
}

/** The cells of a record. */
export function cellsOf<T>(record: T, columns: Columns<T>, cell: (value: unknown) => string): string[] {
	return columns.map((column) => cell(column.value(record)));
}
