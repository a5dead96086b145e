import { bytesOf, newTexts, type RowTexts, TextReader, TextWriter } from '../api/row-texts.js';
import { texts } from '../api/schema/texts.js';
import { cellOf, type Place } from '../tables/column-names.js';
import { duplicateCode, type RejectedRow, type TableRow } from '../tables/finding.js';
import { batchColumns, type MappedColumn, type Mapping } from '../tables/map-columns.js';
import { stateCells, stateOf, stateOfRow, wordState } from '../tables/states.js';

/** Table rows for one batch of an import. They are bytes, because threads can transfer a buffer without copying it. */
export interface Bundle {
	first: number;
	form: RowForm;
	rows: RowBytes;
	rejects: RejectedRow[];
}

/** `cells`: text that an API checks. `checked`: rows that this process has checked, for an embedded engine. */
type RowForm = 'cells' | 'checked';

/** Separates cells by NUL, which no valid row contains. */
export interface RowBytes {
	put: RowTexts;
	originals: RowTexts;
}

/** Call `giveBack` once, to return the bytes for reuse. */
export interface LentBundle extends Bundle {
	giveBack(): void;
}

export interface BundleRequest {
	mapping: Mapping;
	maxRows: number;
	form: RowForm;
}

export type ReadBundles = (request: BundleRequest) => AsyncIterable<LentBundle>;

/** A request may have 4 MiB, of which 128 KiB are for the column names and the JSON around the rows. */
const maxBatchBytes = 4 * 1024 * 1024 - 128 * 1024;
const maxKeptLength = 8 * 1024 * 1024;

const separator = '\0';

interface Bundling {
	check?: (cells: Cells) => string;
	spares?: RowBytes[];
}

/** Returns the same bundles for the same rows and options, because a resumed run relies on them. */
export async function* bundleRows(
	rows: AsyncIterable<TableRow>,
	{ mapping, maxRows }: Pick<BundleRequest, 'mapping' | 'maxRows'>,
	bundling: Bundling = {},
): AsyncGenerator<Bundle, void, undefined> {
	let bundle = new OpenBundle(0, maxRows, bundling);
	for await (const row of rows) {
		const next = convert(row, mapping);
		if (!bundle.hasRoomFor(next)) {
			yield bundle;
			bundle = new OpenBundle(bundle.first + bundle.rows.put.count, maxRows, bundling);
		}
		bundle.add(next);
	}
	if (!bundle.isEmpty) yield bundle;
}

class OpenBundle implements Bundle {
	readonly first: number;
	readonly form: RowForm;
	readonly rows: RowBytes;
	readonly rejects: RejectedRow[] = [];
	readonly #maxRows: number;
	readonly #check: Bundling['check'];
	readonly #put: TextWriter;
	readonly #originals: TextWriter;
	#bytes = 0;
	#kept = 0;

	constructor(first: number, maxRows: number, { check, spares }: Bundling) {
		this.first = first;
		this.form = check === undefined ? 'cells' : 'checked';
		this.#maxRows = maxRows;
		this.#check = check;
		const { put, originals } = spares?.pop() ?? { put: newTexts(), originals: newTexts() };
		this.rows = { put: { ...put, count: 0 }, originals: { ...originals, count: 0 } };
		this.#put = new TextWriter(this.rows.put);
		this.#originals = new TextWriter(this.rows.originals);
	}

	get isEmpty(): boolean {
		return this.rows.put.count === 0 && this.rejects.length === 0;
	}

	hasRoomFor(next: Converted): boolean {
		if (this.isEmpty) return true;
		if (this.#kept > maxKeptLength || this.rejects.length >= this.#maxRows) return false;
		if (next.kind === 'reject') return true;
		return this.rows.put.count < this.#maxRows && this.#bytes + next.bytes <= maxBatchBytes;
	}

	add(next: Converted): void {
		if (next.kind === 'reject') {
			this.#kept += sizeOfReject(next.reject);
			this.rejects.push(next.reject);
			return;
		}
		const { line, cells, original, bytes } = next;
		for (const cell of original) this.#kept += cell.length + 1;
		this.#bytes += bytes;
		this.#put.add(this.#check?.(cells) ?? cells.map((cell) => cell ?? '').join(separator));
		this.#originals.add(line + separator + original.join(separator));
	}
}

type Converted =
	| { kind: 'row'; line: number; cells: Cells; original: readonly string[]; bytes: number }
	| { kind: 'reject'; reject: RejectedRow };

function convert(row: TableRow, mapping: Mapping): Converted {
	const { line, cells: original } = row;
	if (row.kind === 'bad') return rejected(row, row.code, row.error);
	const code = mapping.codeColumn === undefined ? '' : (original[mapping.codeColumn] ?? '');
	const again = refusedAgain.get(code);
	if (again !== undefined) return rejected(row, code, again);
	const nested = row.nested === undefined ? undefined : nestedIn(row.nested, mapping);
	if (nested !== undefined) return rejected(row, nestedCode, `${nested}: ${noNesting(nested)}`);
	const unknown = mapping.states?.find(
		(column) => stateOf(original[column.index] ?? '', column) === 'unknown',
	);
	if (unknown !== undefined) {
		const word = JSON.stringify((original[unknown.index] ?? '').slice(0, 60));
		return rejected(row, 'invalid', `state: ${word} is not a known state: explain it with --state-words`);
	}
	const cells = cellsOf(original, mapping);
	const bytes = rowBytes(cells);
	if (bytes > maxBatchBytes) return rejected(row, 'row_too_long', 'the row is too long for a batch of 4 MiB');
	return { kind: 'row', line, cells, original, bytes };
}

function nestedIn(nested: readonly number[], { columns }: Mapping): string | undefined {
	const isNested = ({ index, joined = [] }: Place) => [index, ...joined].some((at) => nested.includes(at));
	return columns.find(isNested)?.target;
}

const nestedCode = 'nested_value';

function noNesting(target: string): string {
	return target.startsWith('meta') ? texts.metaValue : texts.string;
}

const misfit = 'cells were added or joined to fit the header: correct that row, and clear its _code';

/**
 * Users correct some rows of a rejects file and import the file again. The import rejects a row that still has one of
 * these codes in `_code`, although the row itself looks valid.
 */
const refusedAgain: ReadonlyMap<string, string> = new Map([
	[duplicateCode, 'the previous import already had this row (clear its _code to import it anyway)'],
	['too_few_cells', misfit],
	['too_many_cells', misfit],
	[nestedCode, 'a cell holds the JSON of an object or list: correct the cell, and clear _code in that row'],
]);

function rejected({ line, cells }: TableRow, code: string, error: string): Converted {
	return { kind: 'reject', reject: { line, code, error, cells } };
}

type Cells = readonly (string | null)[];

function cellsOf(row: readonly string[], { columns, states }: Mapping): Cells {
	const cellAt = (column: MappedColumn) => {
		const cell = cellOf(row, column) || null;
		const isReason = cell !== null && column.target === 'disable_reason';
		return isReason && (/^\s*enabled\s*$/i.test(cell) || wordState(cell) === 'active') ? null : cell;
	};
	if (states === undefined) return columns.map(cellAt);
	const state = stateOfRow(row, states);
	const given = state === null || state === 'unknown' ? [null, null] : stateCells[state];
	const first = columns.find(({ target }) => target === 'state');
	return columns.flatMap((column) => {
		if (column.target !== 'state') return [cellAt(column)];
		return column === first ? given : [];
	});
}

function rowBytes(cells: Cells): number {
	let bytes = 0;
	for (const cell of cells) bytes += cell === null ? 5 : cellBytes(cell);
	return bytes;
}

/** The bytes of a cell in a JSON array, with its quotes, escapes and comma. */
function cellBytes(cell: string): number {
	if (/["\\\u0000-\u001f\u007f\ud800-\udfff]/.test(cell)) return Buffer.byteLength(JSON.stringify(cell)) + 1;
	return Buffer.byteLength(cell) + 3;
}

export function columnsOf({ columns }: Mapping): string[] {
	return batchColumns(columns).map(({ target }) => target);
}

function sizeOfReject({ cells }: RejectedRow): number {
	return cells.reduce((sum, cell) => sum + cell.length + 50, 250);
}

export function sizeOf({ rows: { put, originals }, rejects }: Bundle): number {
	return bytesOf(put) + bytesOf(originals) + rejects.reduce((sum, reject) => sum + sizeOfReject(reject), 0);
}

export function originalsOf({ originals }: RowBytes): (row: number) => { line: number; original: string[] } {
	const reader = new TextReader(originals);
	return (row) => {
		const [line, ...original] = reader.at(row).split(separator);
		return { line: Number(line), original };
	};
}

export function unpackCells({ put }: RowBytes, from = 0): (string | null)[] {
	const reader = new TextReader(put);
	const cells: (string | null)[] = [];
	for (let row = from; row < put.count; row += 1)
		for (const cell of reader.at(row).split(separator)) cells.push(cell === '' ? null : cell);
	return cells;
}
