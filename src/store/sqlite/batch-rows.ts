/** The rows of a batch, however it came: as cells, or checked already. */

import type { ImportBatch } from '../../api/capabilities.js';
import type { CheckedBatch } from '../../api/checked-batch.js';
import { decodeRows } from '../../engine/rules/checked-rows.js';
import { metaVariables, type ParsedRow, parseImportRows } from '../../engine/rules/import-rows.js';

type Batch = ImportBatch | CheckedBatch;

export interface BatchRows {
	/** Does beforehand what needs no transaction. How many rows the batch has. */
	prepare(batch: Batch): number;
	/** The rows `from` … `from` + `limit` − 1. */
	slice(batch: Batch, from: number, limit: number): ParsedRow[];
	/** The variables of the columns, in their order. */
	variables(batch: Batch): readonly string[];
}

export function createBatchRows(): BatchRows {
	const parsed = new WeakMap<ImportBatch, ParsedRow[]>();
	const rowsOf = (batch: ImportBatch) => {
		const rows = parsed.get(batch) ?? parseImportRows(batch);
		parsed.set(batch, rows);
		return rows;
	};
	return {
		// Checked rows stay the text they are until their turn: many batches wait at once, and objects are five times it.
		prepare: (batch) => ('marks' in batch ? batch.marks.length : rowsOf(batch).length),
		slice: (batch, from, limit) =>
			'marks' in batch ? decodeRows(batch, from, limit) : rowsOf(batch).slice(from, from + limit),
		variables: (batch) => ('marks' in batch ? batch.variables : metaVariables(batch.columns)),
	};
}
