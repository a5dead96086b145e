/** Rows of batches in the order of the index: neighbours are put together, so each page is read and written once. */
import type { ImportBatch } from '../../../api/capabilities.js';
import { type CheckedBatch, type RowTexts, TextReader } from '../../../api/row-texts.js';
import {
	decodeRow,
	keyPlace,
	metaVariables,
	type ParsedRow,
	parseImportRows,
} from '../../../engine/rules/import-rows.js';

type Batch = ImportBatch | CheckedBatch;

export interface RowSlice {
	count: number;
	row(index: number): ParsedRow;
	rank(index: number): number;
}

export class BatchRows {
	readonly #parsed = new WeakMap<ImportBatch, ParsedRow[]>();

	prepare(batch: Batch): number {
		// Checked rows stay bytes until their turn: as objects they take five times the memory.
		return 'rows' in batch ? batch.rows.count : this.#rowsOf(batch).length;
	}

	slice(batch: Batch, from: number, limit: number): RowSlice {
		return 'rows' in batch
			? sliceTexts(batch.rows, from, limit)
			: sliceRows(this.#rowsOf(batch), from, limit);
	}

	variables(batch: Batch): readonly string[] {
		return 'rows' in batch ? batch.variables : metaVariables(batch.columns);
	}

	#rowsOf(batch: ImportBatch): ParsedRow[] {
		const rows = this.#parsed.get(batch) ?? parseImportRows(batch);
		this.#parsed.set(batch, rows);
		return rows;
	}
}

function sliceTexts(texts: RowTexts, from: number, limit: number): RowSlice {
	const reader = new TextReader(texts);
	const shared = new Map<string, string>();
	return {
		count: Math.max(0, Math.min(texts.count - from, limit)),
		row: (index) => share(decodeRow(reader.at(from + index)), shared),
		rank: (index) => rankOf((place) => reader.octet(from + index, keyPlace + place)),
	};
}

function sliceRows(all: readonly ParsedRow[], from: number, limit: number): RowSlice {
	const rows = all.slice(from, from + limit);
	const row = (index: number) => rows[index] ?? outside();
	return {
		count: rows.length,
		row,
		rank: (index) => {
			const found = row(index);
			const key = found.kind === 'row' ? found.email_key : '';
			return rankOf((place) => (place < key.length ? key.charCodeAt(place) : 0));
		},
	};
}

function outside(): never {
	throw new RangeError('a row outside of its batch');
}

/** Thousands of rows may be refused for one reason. A separate text for each would keep the text of its row alive. */
function share(row: ParsedRow, shared: Map<string, string>): ParsedRow {
	if (row.kind === 'row') return row;
	return { kind: 'rejected', code: sameText(row.code, shared), error: sameText(row.error, shared) };
}

function sameText(text: string, shared: Map<string, string>): string {
	const known = shared.get(text) ?? text;
	shared.set(known, known);
	return known;
}

/** The number of characters of a key that are read, and of different ones: printable ASCII, as most keys are. */
const ranked = 5;
const firstCode = 0x20;
const codes = 96;

/** The most rows of one call: with a rank they make up a number that a double holds. */
export const maxOrderedRows = 2 ** 20;

/** Ranks keys roughly in their order. It reads up to the first character that is not ASCII, so octets rank the same. */
export function rankOf(codeAt: (place: number) => number): number {
	let rank = 0;
	let isPlain = true;
	for (let place = 0; place < ranked; place += 1) {
		const code: number = isPlain ? Math.max(codeAt(place) - firstCode, 0) : codes;
		isPlain = code < codes - 1;
		rank = rank * codes + Math.min(code, codes - 1);
	}
	return rank;
}

/** The numbers 0 … `count` − 1 by rank, in chunks of at least `size` without a common rank. The order is stable. */
export function chunksByRank(
	count: number,
	rankAt: (index: number) => number,
	size: number,
): readonly Uint32Array[] {
	if (count > maxOrderedRows) throw new RangeError(`${count} rows at once`);
	const order = new Float64Array(count);
	for (let index = 0; index < count; index += 1) order[index] = rankAt(index) * maxOrderedRows + index;
	order.sort();
	const chunks: Uint32Array[] = [];
	for (let from = 0; from < count; ) {
		let to = Math.min(from + size, count);
		while (to < count && rankIn(order, to) === rankIn(order, to - 1)) to += 1;
		chunks.push(Uint32Array.from(order.subarray(from, to), (ranking) => ranking % maxOrderedRows));
		from = to;
	}
	return chunks;
}

function rankIn(order: Float64Array, place: number): number {
	return Math.floor((order[place] ?? 0) / maxOrderedRows);
}
