/** Rows as text, one piece a row: the formats that stream. */
import type { Format } from '../frame/globals.js';
import { cellsOf, csvCell, humanCell, markdownCell, readCellOf, tsvCell } from './cells.js';
import type { Columns } from './columns.js';
import { selectColumns, selectKeys } from './fields.js';
import type { Times } from './times.js';

export interface LineOptions {
	format: Exclude<Format, 'table' | 'wide'>;
	fields: readonly string[] | null;
	header: boolean;
	times: Times;
}

/** The whole output in pieces; nothing is held back. */
export function linesOf<T>(
	rows: AsyncIterable<T>,
	columns: Columns<T>,
	options: LineOptions,
): AsyncGenerator<string> {
	if (options.format === 'json') return jsonArray(rows, columns, options.fields);
	if (options.format === 'ndjson') return jsonLines(rows, columns, options.fields);
	return textLines(rows, columns, { ...options, format: options.format });
}

/** The columns a format shows without `--fields`. */
export function visibleColumns<T>(
	columns: Columns<T>,
	format: Format,
	fields: readonly string[] | null,
): Columns<T> {
	// What is asked for by name is shown.
	if (fields !== null) return selectColumns(columns, fields).map((one) => ({ ...one, isOptional: false }));
	if (format === 'wide' || format === 'csv') return columns;
	if (format !== 'name') return columns.filter((one) => one.wide !== true);
	const marked = columns.find((one) => one.isName === true) ?? columns[0];
	return marked === undefined ? [] : [marked];
}

/** The record itself, or the keys of it that `--fields` names. */
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
