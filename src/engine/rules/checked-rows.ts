/**
 * Rows that `parseImportRows` has looked at, as one text and a byte a row: what was checked in another thread crosses so
 * at half the cost of a list of strings, and is not checked twice.
 */
import type { CheckedBatch } from '../../api/checked-batch.js';
import type { ImportRow, ParsedRow } from './import-rows.js';

type CheckedRows = Pick<CheckedBatch, 'marks' | 'text'>;

/** Bits of a row's mark. A text that is not given and an empty one differ. */
const isRejected = 1;
const hasName = 2;
const hasReason = 4;
const hasActivity = 8;
const isActive = 16;
const hasFolded = 32;
const hasMetaCell = 64;

/** No text of a checked row holds it. */
const separator = '\0';
/** email, key, folded, name, reason, meta; of a rejected row code and error. */
const width = 6;

/** What `decodeRows` reads back to the same rows. */
export function encodeRows(rows: readonly ParsedRow[]): CheckedRows {
	const marks = new Uint8Array(rows.length);
	const fields: string[] = [];
	rows.forEach((row, index) => {
		marks[index] = markOf(row);
		if (row.kind === 'rejected') fields.push(row.code, row.error, '', '', '', '');
		else pushRow(fields, row);
	});
	return { marks, text: fields.join(separator) };
}

/** The rows `from` … `from` + `limit` − 1. */
export function decodeRows({ marks, text }: CheckedRows, from: number, limit: number): ParsedRow[] {
	const fields = text.split(separator);
	const rows: ParsedRow[] = [];
	const end = Math.min(marks.length, from + limit);
	for (let row = from; row < end; row += 1) rows.push(decodeRow(marks[row] ?? 0, fields, row * width));
	return rows;
}

function markOf(row: ParsedRow): number {
	if (row.kind === 'rejected') return isRejected;
	return (
		(row.name === null ? 0 : hasName) |
		(row.disable_reason === null ? 0 : hasReason) |
		(row.is_active === null ? 0 : hasActivity) |
		(row.is_active === true ? isActive : 0) |
		(row.email_folded === null ? 0 : hasFolded) |
		(row.has_meta_cell ? hasMetaCell : 0)
	);
}

/** Left empty: a key that is the address, and a meta of nothing. Both are what most rows have. */
function pushRow(fields: string[], row: ImportRow): void {
	const key = row.email_key === row.email ? '' : row.email_key;
	const meta = row.meta_json === '{}' ? '' : row.meta_json;
	fields.push(row.email, key, row.email_folded ?? '', row.name ?? '', row.disable_reason ?? '', meta);
}

function decodeRow(mark: number, fields: readonly string[], at: number): ParsedRow {
	const field = (index: number) => fields[at + index] ?? '';
	if ((mark & isRejected) !== 0) return { kind: 'rejected', code: field(0), error: field(1) };
	const email = field(0);
	return {
		kind: 'row',
		email,
		email_key: field(1) || email,
		email_folded: (mark & hasFolded) === 0 ? null : field(2),
		name: (mark & hasName) === 0 ? null : field(3),
		is_active: (mark & hasActivity) === 0 ? null : (mark & isActive) !== 0,
		disable_reason: (mark & hasReason) === 0 ? null : field(4),
		has_meta_cell: (mark & hasMetaCell) !== 0,
		meta_json: field(5) || '{}',
	};
}
