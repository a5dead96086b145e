import { withZone } from '../../api/datetime.js';
import { isRecord } from '../../api/json.js';
import type { Command } from '../frame/command.js';
import { type Format, isMachine, isTable, type RawGlobals } from '../frame/globals.js';
import { type Io, type OutStream, printPage } from '../frame/io.js';
import { clean, cleanJson, cleanJsonLines } from './clean.js';
import { answer, type Column, type Columns, parseFields, selectColumns, selectKeys } from './columns.js';
import type { Layout } from './table.js';
import type { Times } from './times.js';
import { numberText } from './units.js';

interface OutParts {
	io: Io;
	globals: RawGlobals;
	command: Pick<Command, 'columns' | 'writes'>;
	format: Format;
	strong: (text: string) => string;
	times: Times;
	note: (text: string) => Promise<void>;
	listed: Shown[];
}

interface OutOptions extends Pick<OutParts, 'format' | 'strong' | 'times'> {
	fields: readonly string[] | null;
	header: boolean;
	truncate: boolean;
	show: (text: string) => Promise<void>;
}

interface RowsOptions {
	total?: number | (() => number | undefined);
	all?: boolean;
}

export interface Shown {
	shown: number;
	cut: boolean;
	total: number | undefined;
	leftOut: readonly string[];
}

const terminalRows = 50;

export interface Out {
	readonly format: Format;
	readonly isBare: boolean;
	record<T>(record: T, columns: Columns<T>): Promise<void>;
	created<T extends { id: number | string }>(record: T, columns: Columns<T>): Promise<void>;
	rows<T>(rows: Iterable<T> | AsyncIterable<T>, columns: Columns<T>, options?: RowsOptions): Promise<Shown>;
	document(document: object, sentence?: string): Promise<void>;
	parts(document: object): Promise<void>;
	plan(plan: object, sentence: string): Promise<void>;
	page(text: string): Promise<void>;
	raw(text: string | Uint8Array): Promise<void>;
}

/** Escapes C1 and bidi controls in JSON for a terminal, because `JSON.stringify` does not. */
function harmless(stream: OutStream, { format }: OutOptions): OutStream {
	if (!stream.isTTY || (format !== 'json' && format !== 'ndjson')) return stream;
	const { isTTY, columns, raw } = stream;
	const write = (text: string | Uint8Array) =>
		stream.write(typeof text === 'string' ? cleanJsonLines(text) : text);
	return { isTTY, columns, raw, write };
}

export function createOut({ io, globals, command, ...parts }: OutParts): Out {
	const { format, times, strong, note, listed } = parts;
	const { columns: ofCommand, writes } = command;
	const options: OutOptions = {
		...{ format, strong, times },
		fields: ofCommand === 'own' ? null : parseFields(globals.fields),
		header: globals.noHeader !== true,
		truncate: globals.noTruncate !== true,
		show: (text) => printPage(io, text, globals.noPager !== true),
	};
	const stream = harmless(io.stdout, options);
	const known = ofCommand === 'own' || writes !== true ? [] : (ofCommand ?? []).map(({ key }) => key);
	const withKnown = <T>(columns: Columns<T>): Columns<T> => {
		if (options.fields === null) return columns;
		return [...columns, ...answer(...known.filter((key) => !columns.some((one) => one.key === key)))];
	};
	const isBare = globals.quiet === true && !isMachine(format);
	const record = <T>(value: T, columns: Columns<T>) =>
		writeRecord(stream, options, value, withKnown(columns));
	const document = async (what: object, sentence?: string, fields = options.fields) => {
		if (isTable(format) && sentence !== undefined) return note(sentence);
		return writeRecord(stream, { ...options, fields }, what, withKnown(ownColumns(what)));
	};
	return {
		format,
		isBare,
		record,
		created: (value, columns) =>
			isBare ? stream.write(`${clean(String(value.id))}\n`) : record(value, columns),
		async rows(rows, columns, more = {}) {
			const found = isTable(format)
				? await writeTable(stream, options, rows, withKnown(columns), more)
				: await writeRows(stream, { ...options, format }, rows, withKnown(columns));
			listed.push(found);
			const { shown, cut, total, leftOut } = found;
			if (shown === 0 && io.stdout.isTTY && !isMachine(format)) await note('nothing to show');
			if (cut)
				await note(
					`showing ${numberText(shown)} of ${total === undefined ? 'more' : numberText(total)}; --all`,
				);
			if (leftOut.length > 0)
				await note(`columns left out: ${leftOut.join(', ')}; use a wider terminal, --fields or -o wide`);
			return found;
		},
		document,
		parts: (what) =>
			format === 'tsv' && options.fields === null ? stream.write(namedLines(what)) : document(what),
		plan: (plan, sentence) =>
			format === 'tsv' ? stream.write(namedLines(plan)) : document(plan, sentence, null),
		page: options.show,
		raw: (text) => io.stdout.write(text),
	};
}

async function writeRecord<T>(
	stream: OutStream,
	options: OutOptions,
	record: T,
	columns: Columns<T>,
): Promise<void> {
	const { format, fields } = options;
	if (format === 'json') {
		const text = `${JSON.stringify(chosen(record, columns, fields), null, 2)}\n`;
		return options.show(stream.isTTY ? cleanJsonLines(text) : text);
	}
	if (isTable(format)) {
		const { card } = await import('./table.js');
		return options.show(card(record, visibleColumns(columns, 'wide', fields), layoutOf(stream, options)));
	}
	await writeRows(stream, { ...options, format }, [record], columns);
}

/**
 * Characters per write. A write per row would cost a system call each, and a single write would keep all rows in
 * memory.
 */
const chunkLength = 32_768;

async function writeRows<T>(
	stream: OutStream,
	options: OutOptions & { format: Exclude<Format, 'table' | 'wide'> },
	rows: Iterable<T> | AsyncIterable<T>,
	columns: Columns<T>,
): Promise<Shown> {
	let shown = 0;
	async function* counted() {
		for await (const row of rows) {
			shown += 1;
			yield row;
		}
	}
	let waiting = '';
	for await (const piece of linesOf(counted(), columns, options)) {
		waiting += piece;
		if (waiting.length < chunkLength) continue;
		await stream.write(waiting);
		waiting = '';
	}
	if (waiting !== '') await stream.write(waiting);
	return { shown, cut: false, total: undefined, leftOut: [] };
}

async function writeTable<T>(
	stream: OutStream,
	options: OutOptions,
	rows: Iterable<T> | AsyncIterable<T>,
	columns: Columns<T>,
	{ total, all = false }: RowsOptions,
): Promise<Shown> {
	const limit = all || !stream.isTTY ? Number.POSITIVE_INFINITY : terminalRows;
	const kept: T[] = [];
	let cut = false;
	for await (const row of rows) {
		cut = kept.length >= limit;
		if (cut) break;
		kept.push(row);
	}
	const visible = visibleColumns(columns, options.format, options.fields);
	const { table } = await import('./table.js');
	const { text, leftOut } = await table(kept, visible, layoutOf(stream, options));
	if (text !== '') await options.show(text);
	return { shown: kept.length, cut, total: typeof total === 'function' ? total() : total, leftOut };
}

function layoutOf(stream: OutStream, { header, truncate, strong, times }: OutOptions): Layout {
	return {
		width: stream.isTTY ? stream.columns : Number.POSITIVE_INFINITY,
		header,
		truncate: truncate && stream.isTTY,
		strong,
		times,
	};
}

function ownColumns(document: object): Columns<object> {
	return Object.entries(document).map(([key, value]) => ({
		key,
		header: key,
		value: () => value,
		...(timeKeys.test(key) && { time: 'text' as const }),
	}));
}

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
 * Formats an object as TSV lines of name and value. The name of a nested value is its path (`messages.sent`). An array
 * has a line for each item, and a text has a line for each of its lines.
 */
function namedLines(value: unknown, path = ''): string {
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

const timeKeys = /^date_|_at$|^(?:since|oldest|next_due|newest|next|last|heard)$/;

function valuesOf(record: Readonly<Record<string, unknown>>): unknown[] {
	return Object.entries(record).map(([key, value]) =>
		typeof value === 'string' && timeKeys.test(key) ? withZone(value) : value,
	);
}

function visibleColumns<T>(
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
		// Do not use /^/gm: it treats U+2028 and U+2029 as line ends and would change texts that contain them.
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

/** TSV has no header, because scripts read it with `cut` and `while read`. The CSV header has the keys. */
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

export function tsvCell(value: unknown): string {
	const text = plainText(value);
	return isJson(value) ? cleanJson(text) : clean(text);
}

export function csvCell(value: unknown): string {
	const text = plainText(value);
	return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A URL becomes an autolink, because escapes would become part of the URL. */
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
