/**
 * NDJSON as a table, with constant memory: a line an object, its keys the columns. A line that cannot be read is a
 * finding with its number, and reading goes on with the next one.
 */
import { isUtf8 } from 'node:buffer';
import type { RowFault, TableRow } from './finding.js';
import { type JsonRecord, parseRecord } from './json-record.js';
import { sniffBytes } from './limits.js';
import { type Line, readLines } from './read-lines.js';
import { faultMessages, findCellFault } from './row-faults.js';

export interface NdjsonTable {
	/** Keys of all objects at the beginning, in the order they come; empty when no object is among them. */
	header: readonly string[];
	/** The first line that is none, when there is no header: why. */
	fault: { line: number; error: string } | null;
	/** There is no line with anything in it. */
	isEmpty: boolean;
	rows: AsyncGenerator<TableRow, void, undefined>;
}

/** Of a line that is no object, so much is shown. */
const shownCharacters = 1000;

/**
 * `source` is UTF-8 without a byte order mark, cut anywhere. Objects need not have the same keys: the columns are those
 * of the first 256 KiB, and a row with a key that comes later is a finding, since leaving it out would lose data. Keys
 * of `meta` may come as late as they like: their values then stand in the cell `meta`.
 */
export async function readNdjson(source: AsyncIterable<Uint8Array>): Promise<NdjsonTable> {
	const lines = objectLines(readLines(source));
	const first: Read[] = [];
	const columns = new Map<string, number>();
	for (let bytes = 0; bytes < sniffBytes; ) {
		const next = await lines.next();
		if (next.done) break;
		const read = readLine(next.value);
		first.push(read);
		bytes += next.value.length;
		if (read.record.kind === 'record')
			for (const key of read.record.cells.keys()) if (!columns.has(key)) columns.set(key, columns.size);
	}
	const bad = first.find(({ record }) => record.kind === 'bad');
	const fault =
		columns.size === 0 && bad?.record.kind === 'bad' ? { line: bad.line, error: bad.record.error } : null;
	return {
		header: [...columns.keys()],
		fault,
		isEmpty: first.length === 0,
		rows: toRows(first, lines, columns),
	};
}

interface Read {
	line: number;
	record: JsonRecord;
	/** The line's beginning, for a record that is bad. */
	shown: string;
}

function readLine({ line, bytes, isCut }: Line): Read {
	const shown = () =>
		bytes
			.subarray(0, shownCharacters * 4)
			.toString()
			.slice(0, shownCharacters);
	const bad = (code: RowFault): Read => {
		return { line, record: { kind: 'bad', code, error: faultMessages[code] }, shown: shown() };
	};
	if (isCut) return bad('row_too_long');
	if (!isUtf8(bytes)) return bad('encoding');
	const record = parseRecord(bytes.toString());
	return { line, record, shown: record.kind === 'bad' ? shown() : '' };
}

/** The lines that hold objects: an array with an object a line is read too, without what stands around them. */
async function* objectLines(
	lines: AsyncGenerator<Line, void, undefined>,
): AsyncGenerator<Line, void, undefined> {
	let isArray: boolean | null = null;
	for await (const one of lines) {
		const isFirst = isArray === null;
		isArray ??= isBracket(one, '[') || isBracket(one, '[]');
		if (isArray && (isFirst || isBracket(one, ']'))) continue;
		yield isArray ? withoutComma(one) : one;
	}
}

function isBracket({ bytes }: Line, bracket: '[' | ']' | '[]'): boolean {
	return bytes.length < 100 && bytes.toString().replace(/\s/g, '') === bracket;
}

function withoutComma(line: Line): Line {
	const { bytes } = line;
	let end = bytes.length;
	while (end > 0 && (bytes[end - 1] === 32 || bytes[end - 1] === 9)) end -= 1;
	return bytes[end - 1] === 44 ? { ...line, bytes: bytes.subarray(0, end - 1) } : line;
}

async function* toRows(
	first: Read[],
	rest: AsyncGenerator<Line, void, undefined>,
	columns: ReadonlyMap<string, number>,
): AsyncGenerator<TableRow, void, undefined> {
	try {
		for (const read of first.splice(0)) yield toRow(read, columns);
		for await (const line of rest) yield toRow(readLine(line), columns);
	} finally {
		await rest.return();
	}
}

function toRow({ line, record, shown }: Read, columns: ReadonlyMap<string, number>): TableRow {
	if (record.kind === 'bad') {
		return { kind: 'bad', line, code: record.code, error: record.error, cells: [shown] };
	}
	const cells = new Array<string>(columns.size).fill('');
	const lateMeta: [variable: string, text: string][] = [];
	let late: string | null = null;
	for (const [key, cell] of record.cells) {
		const index = columns.get(key);
		if (index !== undefined) cells[index] = cell;
		else if (key.startsWith('meta.') && columns.has('meta')) lateMeta.push([key.slice('meta.'.length), cell]);
		else late ??= key;
	}
	addToMeta(cells, columns.get('meta'), lateMeta);
	if (late !== null) {
		const error = `${faultMessages.unknown_key}: ${JSON.stringify(late.slice(0, 60))}`;
		return { kind: 'bad', line, code: 'unknown_key', error, cells };
	}
	const fault = findCellFault(cells);
	return fault === null ? { kind: 'row', line, cells } : { kind: 'bad', line, ...fault, cells };
}

/** Those without a text are in the cell already. */
function addToMeta(cells: string[], index: number | undefined, late: readonly [string, string][]): void {
	const texts = late.filter(([, text]) => text !== '');
	if (index === undefined || texts.length === 0) return;
	const typed = cells[index] ?? '';
	// Made by `parseRecord` from an object.
	const known = typed === '' ? [] : Object.entries(JSON.parse(typed) as object);
	cells[index] = JSON.stringify(Object.fromEntries([...known, ...texts]));
}
