/**
 * A row that `parseImportRows` has looked at, as a text: what was checked in another thread crosses so at half the cost
 * of an object, and is not checked twice.
 */
import type { ImportRow, ParsedRow } from './import-rows.js';

/** Bits of a row's mark, its first character. A text that is not given and an empty one differ. */
const isRejected = 1;
const hasName = 2;
const hasReason = 4;
const hasActivity = 8;
const isActive = 16;
const hasFolded = 32;
const hasMetaCell = 64;

/** Where the key of the address begins in the text of a row. */
export const keyPlace = 1;

/** No text of a checked row holds it. */
const separator = '\0';

/** What `decodeRow` reads back to the same row, lone surrogates as U+FFFD once it was bytes. */
export function encodeRow(row: ParsedRow): string {
	const mark = String.fromCharCode(markOf(row));
	if (row.kind === 'rejected') return mark + row.code + separator + row.error;
	return mark + fieldsOf(row).join(separator);
}

/** Reads what `encodeRow` wrote; nothing is checked again. */
export function decodeRow(text: string): ParsedRow {
	const mark = text.charCodeAt(0);
	const fields = text.slice(keyPlace).split(separator);
	const field = (index: number) => fields[index] ?? '';
	if ((mark & isRejected) !== 0) return { kind: 'rejected', code: field(0), error: field(1) };
	const key = field(0);
	return {
		kind: 'row',
		email: field(1) || key,
		email_key: key,
		email_folded: (mark & hasFolded) === 0 ? null : field(2),
		name: (mark & hasName) === 0 ? null : field(3),
		is_active: (mark & hasActivity) === 0 ? null : (mark & isActive) !== 0,
		disable_reason: (mark & hasReason) === 0 ? null : field(4),
		has_meta_cell: (mark & hasMetaCell) !== 0,
		meta_json: field(5) || '{}',
	};
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

/** Left empty: an address that is the key, and a meta of nothing. Both are what most rows have. */
function fieldsOf(row: ImportRow): string[] {
	const email = row.email === row.email_key ? '' : row.email;
	const meta = row.meta_json === '{}' ? '' : row.meta_json;
	return [row.email_key, email, row.email_folded ?? '', row.name ?? '', row.disable_reason ?? '', meta];
}
