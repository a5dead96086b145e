/** A table's row as a row of an import batch, or why it cannot be one. Pure. */
import { parseMetaCell } from '../api/meta-cell.js';
import type { Mapping } from '../cli/tabular/header.js';

export type Cells = readonly (string | null)[];

/** An empty cell is `null`: what is there stays. Only what needs no stored state is checked. */
export function toImportRow(
	cells: readonly string[],
	{ columns }: Mapping,
): { kind: 'cells'; cells: Cells } | { kind: 'reject'; code: string; error: string } {
	const out: (string | null)[] = [];
	for (const { index, target } of columns) {
		const cell = cells[index] ?? '';
		if (target === 'meta') {
			const checked = parseMetaCell(cell);
			if (checked.kind === 'invalid') return { kind: 'reject', code: checked.code, error: checked.error };
		}
		const value = target === 'is_active' ? readFlag(cell) : cell === '' ? null : cell;
		if (value === undefined) {
			return {
				kind: 'reject',
				code: 'invalid',
				error: 'is_active: must be true or false, 1 or 0, yes or no',
			};
		}
		if (target === 'email' && cell.trim() === '') {
			return { kind: 'reject', code: 'blank', error: 'email: This field may not be blank.' };
		}
		out.push(value);
	}
	return { kind: 'cells', cells: out };
}

/** `undefined`: it is no flag. */
function readFlag(cell: string): 'true' | 'false' | null | undefined {
	const word = cell.trim().toLowerCase();
	if (word === '') return null;
	if (word === 'true' || word === '1' || word === 'yes') return 'true';
	return word === 'false' || word === '0' || word === 'no' ? 'false' : undefined;
}

/** Upper bound of the bytes a row takes in a batch's JSON. */
export function rowBytes(cells: Cells): number {
	let bytes = 0;
	for (const cell of cells) bytes += cell === null ? 5 : cellBytes(cell);
	return bytes;
}

/** Two quotes and a comma, and what is escaped (controls, lone surrogates) at its longest. */
function cellBytes(cell: string): number {
	if (/["\\\u0000-\u001f\u007f\ud800-\udfff]/.test(cell)) return Buffer.byteLength(JSON.stringify(cell)) + 1;
	return Buffer.byteLength(cell) + 3;
}
