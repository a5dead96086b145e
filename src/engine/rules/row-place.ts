/** The source of a batch's row: its place there, and whether it is a valid row. */

import { isRecord } from '../../api/json.js';
import { char, dict, integer, optional } from '../../api/schema/fields.js';

/** A row that is not sent to, with its error. */
export interface RefusedRow {
	kind: 'rejected';
	code: string;
	error: string;
	to?: string;
	line?: number;
}

/** Kept for the results and passed on unchanged. */
export interface RowPlace {
	to?: string;
	line?: number;
}

/** Besides the other fields of a row. */
export const rowPlaceFields = {
	line: optional(integer({ min: 0 })),
	refused: optional(dict(char({ max: 1000 }), { max: 2 })),
};

/** The place of a row that is otherwise invalid. */
export function placeIn(item: unknown): RowPlace {
	if (!isRecord(item)) return {};
	const { to, line } = item;
	return {
		...(typeof to === 'string' && { to: to.slice(0, 320) }),
		...(typeof line === 'number' && Number.isSafeInteger(line) && { line }),
	};
}

/** The error from the reader of the source: there is no row to send to. */
export function refusalOf(
	refused: Readonly<Record<string, string>>,
): Pick<RefusedRow, 'kind' | 'code' | 'error'> {
	return { kind: 'rejected', code: refused['code'] ?? 'invalid', error: refused['error'] ?? '' };
}
