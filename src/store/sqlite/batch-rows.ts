/** The rows of a batch, however it came: as cells, or checked already. */

import type { ImportBatch } from '../../api/capabilities.js';
import type { CheckedBatch } from '../../api/checked-batch.js';
import { type RowTexts, TextReader } from '../../api/row-texts.js';
import { decodeRow } from '../../engine/rules/checked-rows.js';
import { metaVariables, type ParsedRow, parseImportRows } from '../../engine/rules/import-rows.js';

type Batch = ImportBatch | CheckedBatch;

export interface BatchRows {
	/** Does beforehand what needs no transaction. How many rows the batch has. */
	prepare(batch: Batch): number;
	/** The rows `from` … `from` + `limit` − 1. */
	slice(batch: Batch, from: number, limit: number): RowSlice;
	/** The variables of the columns, in their order. */
	variables(batch: Batch): readonly string[];
}

/** Its rows can be walked through once. */
export interface RowSlice {
	count: number;
	rows: Iterable<ParsedRow>;
}

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
		slice: (batch, from, limit) => {
			if ('rows' in batch) return sliceTexts(batch.rows, from, limit);
			const rows = rowsOf(batch).slice(from, from + limit);
			return { count: rows.length, rows };
		},
		variables: (batch) => ('rows' in batch ? batch.variables : metaVariables(batch.columns)),
	};
}

function sliceTexts(texts: RowTexts, from: number, limit: number): RowSlice {
	const end = Math.min(texts.count, from + limit);
	return { count: Math.max(0, end - from), rows: walk(texts, from, end) };
}

function* walk(texts: RowTexts, from: number, end: number): Generator<ParsedRow, void, undefined> {
	const reader = new TextReader(texts);
	const shared = new Map<string, string>();
	for (let index = from; index < end; index += 1) yield share(decodeRow(reader.at(index)), shared);
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
