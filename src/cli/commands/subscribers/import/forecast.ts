/** What an import would make of a row, beside who is in the list: the rules of an import without its writes. Pure. */
import { isEmailAddress } from '../../../../api/address.js';
import type { ImportBatch, ImportSpec } from '../../../../api/capabilities.js';
import { maxMetaBytes } from '../../../../api/subscribers.js';
import { type ForeignRow, readRows } from '../../../../jobs/foreign/rows.js';
import type { Standing } from './people.js';

/** A row as it would be put; null keeps what is there. */
export interface PlannedRow extends ForeignRow {
	disableReason: string | null;
}

export type Forecast =
	| { kind: 'created' | 'updated' | 'unchanged' }
	| { kind: 'rejected'; code: string; error: string };

export interface ForecastRules {
	spec: ImportSpec;
	/** The deployment is ours and takes `disable_reason` from the file; elsewhere there is no way to set one. */
	setsReasons: boolean;
}

/** One entry a row, in order. */
export function readPlanned(batch: ImportBatch): PlannedRow[] {
	const { columns, cells } = batch;
	const at = columns.indexOf('disable_reason');
	return readRows(batch).map((row, index) => {
		const cell = at === -1 ? null : (cells[index * columns.length + at] ?? null);
		return { ...row, disableReason: cell?.trim() || null };
	});
}

const maxTextLength = 255;

/**
 * Why the row is refused whoever is there, or null.
 * Assumption: another deployment holds an address, names and meta to the lengths our own engine does.
 */
export function refusalOf(row: PlannedRow): Extract<Forecast, { kind: 'rejected' }> | null {
	if (row.email === '') return rejected('blank', 'email: This field may not be blank.');
	if (!isEmailAddress(row.email)) return rejected('invalid', 'email: Enter a valid email address.');
	if ((row.name ?? '').length > maxTextLength) return tooLong('name');
	if ((row.disableReason ?? '').length > maxTextLength) return tooLong('disable_reason');
	const json = JSON.stringify(Object.fromEntries(row.meta));
	if (Buffer.byteLength(json) <= maxMetaBytes) return null;
	return rejected('max_length', `meta: Ensure this field has no more than ${maxMetaBytes} bytes.`);
}

/** `standing` null: nobody has the address. */
export function forecast(row: PlannedRow, standing: Standing | null, rules: ForecastRules): Forecast {
	if (standing === null) return { kind: 'created' };
	const { on_conflict } = rules.spec;
	if (on_conflict === 'skip') return { kind: 'unchanged' };
	if (on_conflict === 'error')
		return rejected('unique', 'email: Subscriber with this email already exists in this list.');
	const isChanged =
		(row.name !== null && !standing.holds('name', row.name)) ||
		[...row.meta].some(([variable, value]) => !standing.holds(`meta.${variable}`, value)) ||
		changesActivity(row, standing, rules);
	return { kind: isChanged ? 'updated' : 'unchanged' };
}

function changesActivity(row: PlannedRow, standing: Standing, { spec, setsReasons }: ForecastRules): boolean {
	if (row.isActive === false) {
		const { disableReason } = row;
		const isNewReason = disableReason !== null && !standing.holds('disable_reason', disableReason);
		return standing.isActive || (setsReasons && isNewReason);
	}
	return !standing.isActive && spec.reactivate && !(setsReasons && standing.isBound);
}

function tooLong(column: string) {
	return rejected('max_length', `${column}: Ensure this field has no more than ${maxTextLength} characters.`);
}

function rejected(code: string, error: string): Extract<Forecast, { kind: 'rejected' }> {
	return { kind: 'rejected', code, error };
}
