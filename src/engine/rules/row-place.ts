/** What a row of a batch says of its source: where it stood there, and whether it is a row at all. */
import { char } from '../../api/schema/char.js';
import { dict } from '../../api/schema/containers.js';
import { optional } from '../../api/schema/field.js';
import { isRecord } from '../../api/schema/python.js';
import { integer } from '../../api/schema/scalars.js';
import type { RecipientRow } from '../../store/mailings.js';

/** Kept for the results and handed on as it came. */
export interface RowPlace {
	to?: string;
	line?: number;
}

/** Beside whatever else a row has. */
export const rowPlaceFields = {
	line: optional(integer({ min: 0 })),
	refused: optional(dict(char({ max: 1000 }), { max: 2 })),
};

/** The place of a row that is no good otherwise. */
export function placeIn(item: unknown): RowPlace {
	if (!isRecord(item)) return {};
	const { to, line } = item;
	return {
		...(typeof to === 'string' && { to: to.slice(0, 320) }),
		...(typeof line === 'number' && Number.isSafeInteger(line) && { line }),
	};
}

/** The words of whoever read the source: there is no row to send to. */
export function refusalOf(
	refused: Readonly<Record<string, string>>,
): Pick<Extract<RecipientRow, { kind: 'rejected' }>, 'kind' | 'code' | 'error'> {
	return { kind: 'rejected', code: refused['code'] ?? 'invalid', error: refused['error'] ?? '' };
}
