import { type Format, isTable } from '../frame/globals.js';
import type { OutStream } from '../frame/io.js';
import { clean, cleanJsonLines } from './clean.js';
import { answer, type Columns } from './columns.js';
import { chosen, linesOf, namedLines, timeKeys, visibleColumns } from './lines.js';
import type { Layout } from './table.js';
import type { Times } from './times.js';

interface OutOptions {
	format: Format;
	fields: readonly string[] | null;
	known: readonly string[];
	header: boolean;
	truncate: boolean;
	bare: boolean;
	strong: (text: string) => string;
	times: Times;
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

interface Tell {
	sentence(text: string): Promise<void>;
	listed(shown: Shown): Promise<void>;
}

/** Exact JSON for a terminal: escapes the C1 and bidi controls that JSON itself does not escape. */
function harmless(stream: OutStream, { format }: OutOptions): OutStream {
	if (!stream.isTTY || (format !== 'json' && format !== 'ndjson')) return stream;
	const { isTTY, columns, raw } = stream;
	const write = (text: string | Uint8Array) =>
		stream.write(typeof text === 'string' ? cleanJsonLines(text) : text);
	return { isTTY, columns, raw, write };
}

export function createOut(to: OutStream, options: OutOptions, tell: Tell): Out {
	const stream = harmless(to, options);
	const withKnown = <T>(columns: Columns<T>): Columns<T> => {
		if (options.fields === null) return columns;
		const absent = options.known.filter((key) => !columns.some((one) => one.key === key));
		return [...columns, ...answer(...absent)];
	};
	const record = <T>(value: T, columns: Columns<T>) =>
		writeRecord(stream, options, value, withKnown(columns));
	const document = async (what: object, sentence?: string, fields = options.fields) => {
		if (isTable(options.format) && sentence !== undefined) return tell.sentence(sentence);
		return writeRecord(stream, { ...options, fields }, what, withKnown(ownColumns(what)));
	};
	return {
		format: options.format,
		isBare: options.bare,
		record,
		created: (value, columns) =>
			options.bare ? stream.write(`${clean(String(value.id))}\n`) : record(value, columns),
		async rows(rows, columns, more = {}) {
			const shown = isTable(options.format)
				? await writeTable(stream, options, rows, withKnown(columns), more)
				: await writeRows(stream, { ...options, format: options.format }, rows, withKnown(columns));
			await tell.listed(shown);
			return shown;
		},
		document,
		parts: (what) =>
			options.format === 'tsv' && options.fields === null ? stream.write(namedLines(what)) : document(what),
		plan: (plan, sentence) =>
			options.format === 'tsv' ? stream.write(namedLines(plan)) : document(plan, sentence, null),
		page: options.show,
		raw: (text) => to.write(text),
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
