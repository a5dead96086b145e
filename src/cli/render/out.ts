/** stdout: records in the format asked for, and nothing else. */
import type { Format } from '../globals.js';
import type { OutStream } from '../io.js';
import { clean } from './clean.js';
import type { Columns } from './columns.js';
import { chosen, linesOf, visibleColumns } from './lines.js';
import type { Layout } from './table.js';

export interface OutOptions {
	format: Format;
	fields: readonly string[] | null;
	/** False: `--no-header`. */
	header: boolean;
	truncate: boolean;
	quiet: boolean;
	strong: (text: string) => string;
}

export interface RowsOptions {
	/** How many there are in all, once known: for "showing 50 of 1,240". */
	total?: number | (() => number | undefined);
	/** `--all` or an explicit `--limit` was given: a terminal shows all of what comes. */
	all?: boolean;
}

/** What became of a list, told to whoever talks to people and picks the exit code. */
export interface Shown {
	shown: number;
	/** More was there than a terminal shows. */
	cut: boolean;
	total: number | undefined;
}

/** A terminal shows so many rows unless told otherwise. */
export const terminalRows = 50;

export interface Out {
	readonly format: Format;
	/** One object: JSON as it is, a card on a terminal. */
	record<T>(record: T, columns: Columns<T>): Promise<void>;
	/** As `record`; with `-q` the id alone. */
	created<T extends { id: number | string }>(record: T, columns: Columns<T>): Promise<void>;
	/** A list, streamed. */
	rows<T>(rows: Iterable<T> | AsyncIterable<T>, columns: Columns<T>, options?: RowsOptions): Promise<Shown>;
	/** An object that says what happened; a table says it as `sentence` on stderr instead. */
	document(document: object, sentence?: string): Promise<void>;
	/** Bytes or text that are the output themselves: a raw message, a page of help. */
	raw(text: string | Uint8Array): Promise<void>;
}

export interface Tell {
	sentence(text: string): Promise<void>;
	listed(shown: Shown): Promise<void>;
}

/** Closes no stream. `tell.listed` is called after each list, `tell.sentence` for a document in place of a table. */
export function createOut(stream: OutStream, options: OutOptions, tell: Tell): Out {
	const record = <T>(value: T, columns: Columns<T>) => writeRecord(stream, options, value, columns);
	return {
		format: options.format,
		record,
		created: (value, columns) =>
			options.quiet ? stream.write(`${clean(String(value.id))}\n`) : record(value, columns),
		async rows(rows, columns, more = {}) {
			const shown = isTable(options.format)
				? await writeTable(stream, options, rows, columns, more)
				: await writeRows(stream, { ...options, format: options.format }, rows, columns);
			await tell.listed(shown);
			return shown;
		},
		async document(document, sentence) {
			if (isTable(options.format) && sentence !== undefined) return tell.sentence(sentence);
			return record(document, ownColumns(document));
		},
		raw: (text) => stream.write(text),
	};
}

function isTable(format: Format): format is 'table' | 'wide' {
	return format === 'table' || format === 'wide';
}

async function writeRecord<T>(
	stream: OutStream,
	options: OutOptions,
	record: T,
	columns: Columns<T>,
): Promise<void> {
	const { format, fields } = options;
	if (format === 'json') return stream.write(`${JSON.stringify(chosen(record, columns, fields), null, 2)}\n`);
	if (isTable(format)) {
		// Measuring graphemes takes tables of its own, which a script has no use for.
		const { card } = await import('./table.js');
		return stream.write(card(record, visibleColumns(columns, 'wide', fields), layoutOf(stream, options)));
	}
	await writeRows(stream, { ...options, format }, [record], columns);
}

/** One write a row would cost a system call each; one for all would hold everything in memory. */
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
	return { shown, cut: false, total: undefined };
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
	const text = await table(kept, visible, layoutOf(stream, options));
	if (text !== '') await stream.write(text);
	return { shown: kept.length, cut, total: typeof total === 'function' ? total() : total };
}

/** Away from a terminal nothing is shortened: nobody knows the width. */
function layoutOf(stream: OutStream, { header, truncate, strong }: OutOptions): Layout {
	return {
		width: stream.isTTY ? stream.columns : Number.POSITIVE_INFINITY,
		header,
		truncate: truncate && stream.isTTY,
		strong,
	};
}

function ownColumns(document: object): Columns<object> {
	return Object.entries(document).map(([key, value]) => ({ key, header: key, value: () => value }));
}
