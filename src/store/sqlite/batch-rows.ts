/** The rows of a batch, however it came: as cells, or checked already. */

import type { ImportBatch } from '../../api/capabilities.js';
import type { CheckedBatch } from '../../api/checked-batch.js';
import { type RowTexts, TextReader } from '../../api/row-texts.js';
import { decodeRow, keyPlace } from '../../engine/rules/checked-rows.js';
import { metaVariables, type ParsedRow, parseImportRows } from '../../engine/rules/import-rows.js';
import { rankOf } from './import-order.js';

type Batch = ImportBatch | CheckedBatch;

export interface BatchRows {
	/** Does beforehand what needs no transaction. How many rows the batch has. */
	prepare(batch: Batch): number;
	/** The rows `from` … `from` + `limit` − 1. */
	slice(batch: Batch, from: number, limit: number): RowSlice;
	/** The variables of the columns, in their order. */
	variables(batch: Batch): readonly string[];
}

/** Rows by their place in it, from 0. */
export interface RowSlice {
	count: number;
	row(index: number): ParsedRow;
	/** See `rankOf`. */
	rank(index: number): number;
}

/** Remembers the rows of batches that came as cells, as long as the batch is in use. */
export function createBatchRows(): BatchRows {
	const parsed = new WeakMap<ImportBatch, ParsedRow[]>();
	const rowsOf = (batch: ImportBatch) => {
		const rows = parsed.get(batch) ?? parseImportRows(batch);
		parsed.set(batch, rows);
		return rows;
	};
	return {
		// Checked rows stay the bytes they are until their turn: many batches wait at once, and objects are five times it.
		prepare: (batch) => ('rows' in batch ? batch.rows.count : rowsOf(batch).length),
		slice: (batch, from, limit) =>
			'rows' in batch ? sliceTexts(batch.rows, from, limit) : sliceRows(rowsOf(batch), from, limit),
		variables: (batch) => ('rows' in batch ? batch.variables : metaVariables(batch.columns)),
	};
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

/** Thousands of rows may be refused for one reason: each with a text of its own would keep that of its row alive. */
function share(row: ParsedRow, shared: Map<string, string>): ParsedRow {
	if (row.kind === 'row') return row;
	return { kind: 'rejected', code: sameText(row.code, shared), error: sameText(row.error, shared) };
}

function sameText(text: string, shared: Map<string, string>): string {
	const known = shared.get(text) ?? text;
	shared.set(known, known);
	return known;
}
