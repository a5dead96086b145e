import { isUtf8 } from 'node:buffer';
import { isRecord, parseJson, withoutExactNumbers } from '../api/json.js';
import { JsonNumber } from '../api/schema/python.js';
import { faultMessages, findCellFault, type RowFault, sniffBytes, type TableRow } from './finding.js';
import { type Line, readLines } from './read-lines.js';

interface NdjsonTable {
	header: readonly string[];
	fault: { line: number; error: string } | null;
	isEmpty: boolean;
	rows: AsyncGenerator<TableRow, void, undefined>;
}

const shownCharacters = 1000;

/**
 * The keys in the first 256 KiB become columns. After that, a row with a new key is bad. A new key in `meta` goes into
 * the `meta` cell instead.
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
	shown: string;
}

function readLine({ line, bytes, isCut }: Line): Read {
	const shown = () =>
		bytes
			.subarray(0, shownCharacters * 4)
			.toString()
			.slice(0, shownCharacters);
	const refused = (code: RowFault): Read => {
		return { line, record: bad(code, faultMessages[code]), shown: shown() };
	};
	if (isCut) return refused('row_too_long');
	if (!isUtf8(bytes)) return refused('encoding');
	const record = parseRecord(bytes.toString());
	return { line, record, shown: record.kind === 'bad' ? shown() : '' };
}

/** Yields lines with objects. Omits the brackets and commas of an array that has one object per line. */
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
	const nested: number[] = [];
	let late: string | null = null;
	for (const [key, cell] of record.cells) {
		const index = columns.get(key);
		if (record.nested.includes(key)) nested.push(index ?? columns.get('meta') ?? -1);
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
	if (fault !== null) return { kind: 'bad', line, ...fault, cells };
	return { kind: 'row', line, cells, ...(nested.length > 0 && { nested }) };
}

function addToMeta(cells: string[], index: number | undefined, late: readonly [string, string][]): void {
	const texts = late.filter(([, text]) => text !== '');
	if (index === undefined || texts.length === 0) return;
	const typed = cells[index] ?? '';
	const known = typed === '' ? [] : Object.entries(JSON.parse(typed) as object);
	cells[index] = JSON.stringify(Object.fromEntries([...known, ...texts]));
}

/** `cells` is a Map, because a key may be `__proto__`. `nested`: columns with an object or array. */
type JsonRecord = { cells: ReadonlyMap<string, string> } & (
	| { kind: 'record'; nested: readonly string[] }
	| { kind: 'bad'; code: RowFault; error: string }
);

/**
 * A null or missing key gives an empty cell, which keeps the stored value. A text under the key `x` of `meta` goes into
 * the column `meta.x`. Numbers, booleans, nulls and empty texts in `meta` stay in the column `meta`. All other objects
 * and arrays become JSON text.
 */
function parseRecord(line: string): JsonRecord {
	const parsed = parseJson(line, { numbers: 'exact' });
	if (parsed.kind === 'invalid') return refusals[parsed.code];
	if (!isRecord(parsed.value)) return bad('bad_json', faultMessages.bad_json);
	const cells = new Map<string, string>();
	const nested: string[] = [];
	const long: string[] = [];
	const add = (name: string, value: unknown, cell: string) => {
		if (isLong(value)) long.push(name);
		if (isNested(value)) nested.push(name);
		cells.set(name, cell);
	};
	for (const [key, value] of Object.entries(parsed.value)) {
		const meta = key === 'meta' ? metaOf(value) : null;
		if (meta === null) add(key, value, cellOf(value));
		else {
			for (const [name, item] of metaEntries(meta)) add(name, item, isTyped(item) ? '' : cellOf(item));
			cells.set('meta', typedValues(meta));
		}
	}
	if (long.length === 0) return { kind: 'record', cells, nested };
	return bad('bad_json', `${long[0]}: a number this long would lose digits: put it in quotes`, cells);
}

/** True if digits would be lost, because meta stores numbers as doubles. */
function isLong(value: unknown): boolean {
	return value instanceof JsonNumber && value.toNumber() === null;
}

function isNested(value: unknown): boolean {
	return Array.isArray(value) || isRecord(value);
}

function isTyped(value: unknown): boolean {
	if (value === null || value === '' || value instanceof JsonNumber) return true;
	return typeof value === 'number' || typeof value === 'boolean';
}

function typedValues(meta: Readonly<Record<string, unknown>>): string {
	const typed = Object.entries(meta).filter(([, value]) => isTyped(value));
	return typed.length === 0 ? '' : JSON.stringify(withoutExactNumbers(Object.fromEntries(typed)));
}

function bad(
	code: RowFault,
	error: string,
	cells: JsonRecord['cells'] = new Map(),
): JsonRecord & { kind: 'bad' } {
	return { kind: 'bad', code, error, cells };
}

const refusals = {
	syntax: bad('bad_json', faultMessages.bad_json),
	too_deep: bad('bad_json', 'JSON that is nested too deeply'),
	null_characters_not_allowed: bad('nul', faultMessages.nul),
	surrogate_characters_not_allowed: bad('encoding', 'half a character (a lone surrogate)'),
} as const;

/** Accepts an object or its JSON text, because the documentation of the API shows `meta` in both forms. */
function metaOf(value: unknown): Readonly<Record<string, unknown>> | null {
	if (isRecord(value)) return value;
	if (typeof value !== 'string') return null;
	const parsed = parseJson(value, { numbers: 'exact' });
	return parsed.kind === 'valid' && isRecord(parsed.value) ? parsed.value : null;
}

function metaEntries(meta: Readonly<Record<string, unknown>>): (readonly [string, unknown])[] {
	return Object.entries(meta).map(([variable, value]) => [`meta.${variable}`, value] as const);
}

function cellOf(value: unknown): string {
	if (value === null || value === undefined) return '';
	if (typeof value === 'string') return value;
	if (typeof value === 'number' || value instanceof JsonNumber) return String(value);
	return JSON.stringify(withoutExactNumbers(value));
}
