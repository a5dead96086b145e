import { withZone } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import type { Format } from '../frame/globals.js';
import { clean, cleanJson } from './clean.js';
import { type Column, type Columns, selectColumns, selectKeys } from './columns.js';
import type { Times } from './times.js';

interface LineOptions {
	format: Exclude<Format, 'table' | 'wide'>;
	fields: readonly string[] | null;
	header: boolean;
	times: Times;
}

export function linesOf<T>(
	rows: AsyncIterable<T>,
	columns: Columns<T>,
	options: LineOptions,
): AsyncGenerator<string> {
	if (options.format === 'json') return jsonArray(rows, columns, options.fields);
	if (options.format === 'ndjson') return jsonLines(rows, columns, options.fields);
	return textLines(rows, columns, { ...options, format: options.format });
}

/**
 * An answer with parts, in TSV: a name and a value a line. The parts of an object are named by their path
 * (`messages.sent`), an item of an array has its values in one line, and each line of a text stands apart.
 */
export function namedLines(value: unknown, path = ''): string {
	const line = (cells: readonly unknown[]) => `${[path, ...cells.map(tsvCell)].join('\t')}\n`;
	if (Array.isArray(value))
		return value.map((item) => line(isRecord(item) ? valuesOf(item) : [item])).join('');
	if (!isRecord(value)) {
		const lines = plainText(value)
			.replace(/\r?\n$/, '')
			.split(/\r?\n/);
		return lines.map((one) => line([one])).join('');
	}
	const values = valuesOf(value);
	const named = (key: string) => (path === '' ? key : `${path}.${key}`);
	return Object.keys(value)
		.map((key, at) => namedLines(values[at], named(key)))
		.join('');
}

export const timeKeys = /^date_|_at$|^(?:since|oldest|next_due|newest|next|last|heard)$/;

function valuesOf(record: Readonly<Record<string, unknown>>): unknown[] {
	return Object.entries(record).map(([key, value]) =>
		typeof value === 'string' && timeKeys.test(key) ? withZone(value) : value,
	);
}

export function visibleColumns<T>(
	columns: Columns<T>,
	format: Format,
	fields: readonly string[] | null,
): Columns<T> {
	if (fields !== null) return selectColumns(columns, fields).map((one) => ({ ...one, isOptional: false }));
	if (format === 'wide' || format === 'csv') return columns;
	if (format !== 'name') return columns.filter((one) => one.wide !== true);
	const marked = columns.find((one) => one.isName === true) ?? columns[0];
	return marked === undefined ? [] : [marked];
}

export function chosen<T>(record: T, columns: Columns<T>, fields: readonly string[] | null): unknown {
	return fields === null ? record : selectKeys(record, columns, fields);
}

async function* jsonArray<T>(rows: AsyncIterable<T>, columns: Columns<T>, fields: readonly string[] | null) {
	let isFirst = true;
	for await (const row of rows) {
		// Not by /^/gm: that takes U+2028 and U+2029 for line ends, and a text that holds them would be changed.
		const json = `  ${JSON.stringify(chosen(row, columns, fields), null, 2).replaceAll('\n', '\n  ')}`;
		yield `${isFirst ? '[\n' : ',\n'}${json}`;
		isFirst = false;
	}
	yield isFirst ? '[]\n' : '\n]\n';
}

async function* jsonLines<T>(rows: AsyncIterable<T>, columns: Columns<T>, fields: readonly string[] | null) {
	for await (const row of rows) yield `${JSON.stringify(chosen(row, columns, fields))}\n`;
}

type TextFormat = 'tsv' | 'csv' | 'markdown' | 'name';

async function* textLines<T>(
	rows: AsyncIterable<T>,
	columns: Columns<T>,
	{ format, fields, header, times }: LineOptions & { format: TextFormat },
) {
	const shown = visibleColumns(columns, format, fields);
	const { cell, line, head } = textFormats[format];
	const cells =
		format === 'markdown'
			? (row: T) => shown.map((column) => readCellOf(row, column, { times, cell }))
			: (row: T) => cellsOf(row, shown, cell);
	if (header) yield head(shown);
	for await (const row of rows) yield line(cells(row));
	const caption = header && format === 'markdown' ? times.caption() : null;
	if (caption !== null) yield `\n${caption}\n`;
}

interface TextRules {
	cell: (value: unknown) => string;
	line: (cells: readonly string[]) => string;
	head: (columns: readonly { key: string; header: string }[]) => string;
}

/** TSV has no header, so that `cut` and `while read` work; CSV has one, of keys, so that it can be read back. */
const textFormats: Readonly<Record<TextFormat, TextRules>> = {
	tsv: { cell: tsvCell, line: (cells) => `${cells.join('\t')}\n`, head: () => '' },
	csv: {
		cell: csvCell,
		line: (cells) => `${cells.join(',')}\r\n`,
		head: (columns) => `${columns.map(({ key }) => csvCell(key)).join(',')}\r\n`,
	},
	markdown: {
		cell: markdownCell,
		line: (cells) => `| ${cells.join(' | ')} |\n`,
		head: (columns) =>
			`| ${columns.map(({ header }) => header).join(' | ')} |\n|${columns.map(() => ' --- |').join('')}\n`,
	},
	name: { cell: humanCell, line: (cells) => `${cells.join('\t')}\n`, head: () => '' },
};

export function humanCell(value: unknown): string {
	if (value === null || value === undefined) return '';
	if (typeof value === 'boolean') return value ? 'yes' : 'no';
	return clean(plainText(value));
}

function plainText(value: unknown): string {
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

export function csvCell(value: unknown): string {
	const text = plainText(value);
	return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Escapes a text for a line or cell of Markdown. A web address becomes an autolink, because escapes would count as part of
 * the address.
 */
export function markdownCell(value: unknown): string {
	const text = humanCell(value);
	if (/^https?:\/\/[^\s<>\\`]+$/.test(text)) return `<${text.replaceAll('|', '\\|')}>`;
	return text.replace(/[\\|`*_<>[\]&~#]/g, (char) => `\\${char}`);
}

function cellsOf<T>(record: T, columns: Columns<T>, cell: (value: unknown) => string): string[] {
	return columns.map((column) => {
		const value = column.value(record);
		return cell(column.time !== undefined && typeof value === 'string' ? withZone(value) : value);
	});
}

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
