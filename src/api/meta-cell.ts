/** The column `meta` of an import: what a cell of its own cannot say, such as numbers, null and empty texts. Pure. */
import type { MetaValue } from './records.js';
import { meta } from './subscribers.js';

/** `values` in the order they stand; `error` goes on from the column's name. */
export type MetaCell =
	| { kind: 'values'; values: readonly (readonly [variable: string, value: MetaValue])[] }
	| { kind: 'invalid'; code: string; error: string };

const field = meta();
const nothing: MetaCell = { kind: 'values', values: [] };

/** The JSON of an object, variable to value; null and an empty cell say nothing. */
export function parseMetaCell(cell: string | null): MetaCell {
	if (cell === null || cell.trim() === '') return nothing;
	const checked = field.check(cell);
	if (checked.kind === 'valid') return { kind: 'values', values: Object.entries(checked.value) };
	const { code, message } = firstOf(checked.errors);
	return { kind: 'invalid', code, error: `meta: ${message}` };
}

interface Complaint {
	code: string;
	message: string;
}

function firstOf(errors: Extract<ReturnType<typeof field.check>, { kind: 'invalid' }>['errors']): Complaint {
	const [first] = Array.isArray(errors) ? errors : Object.values(errors);
	if (first === undefined) return { code: 'invalid', message: 'Value must be valid JSON.' };
	return isComplaint(first) ? first : firstOf(first);
}

function isComplaint(value: unknown): value is Complaint {
	return (
		typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string'
	);
}
