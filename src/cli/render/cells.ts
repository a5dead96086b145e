/** A value as one cell of each format. */

import { withZone } from '../../api/datetime.js';
import { clean, cleanJson } from './clean.js';
import type { Column, Columns } from './columns.js';
import type { Times } from './times.js';

/** For people: yes and no, nothing for null, JSON for objects; cleaned. */
export function humanCell(value: unknown): string {
	if (value === null || value === undefined) return '';
	if (typeof value === 'boolean') return value ? 'yes' : 'no';
	return clean(plainText(value));
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

/**
 * Text within a line or a cell of Markdown, shown as it is: no markup, no HTML, no entity. An address of the web is a
 * link of the angle form, for others take marks before their characters for a part of the address.
 */
export function markdownCell(value: unknown): string {
	const text = humanCell(value);
	if (/^https?:\/\/[^\s<>\\`]+$/.test(text)) return `<${text.replaceAll('|', '\\|')}>`;
	return text.replace(/[\\|`*_<>[\]&~#]/g, (char) => `\\${char}`);
}

/** The cells of a record, for programs: a time says that it is one of UTC. */
export function cellsOf<T>(record: T, columns: Columns<T>, cell: (value: unknown) => string): string[] {
	return columns.map((column) => {
		const value = column.value(record);
		// Times of others may be no times of the wire, and stay as they are.
		return cell(column.time !== undefined && typeof value === 'string' ? withZone(value) : value);
	});
}

/** The cell of a column, for people: its lines where it has some, a time in their zone. Cleaned by `cell`. */
export function readCellOf<T>(
	record: T,
	column: Column<T>,
	{ times, cell }: { times: Times; cell: (value: unknown) => string },
): string {
	const lines = column.lines?.(record, times);
	if (lines !== undefined) return cell(lines.join('; '));
	const value = column.value(record);
	return cell(column.time !== undefined && typeof value === 'string' ? times[column.time](value) : value);
}
