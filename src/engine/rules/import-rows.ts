/** Rows of an import: cells into typed values or a reason why not, before anything stored is looked at. */
import { type EmailKey, parseAddress } from '../../api/address.js';
import type { ImportBatch } from '../../api/capabilities.js';
import type { DisableReason } from '../../api/records.js';
import type { Activation } from './subscription.js';
import { startActivation } from './subscription.js';

/** `null` keeps what is there. */
export interface ImportRow {
	kind: 'row';
	email: string;
	email_key: EmailKey;
	name: string | null;
	is_active: boolean | null;
	disable_reason: string | null;
	/** Only the cells that are given. */
	meta: readonly (readonly [variable: string, value: string])[];
}

export interface RejectedRow {
	kind: 'rejected';
	code: string;
	error: string;
}

const truths: ReadonlyMap<string, boolean> = new Map([
	['true', true],
	['1', true],
	['yes', true],
	['false', false],
	['0', false],
	['no', false],
]);

const maxTextLength = 255;

/** One entry a row, in order. Pure, so that it can run before the transaction begins. */
export function parseImportRows({ columns, cells }: ImportBatch): (ImportRow | RejectedRow)[] {
	const width = columns.length;
	const places = new Map(columns.map((column, index) => [column, index]));
	const metaColumns = columns.flatMap((column, index): [string, number][] =>
		column.startsWith('meta.') ? [[column.slice('meta.'.length), index]] : [],
	);
	const rows: (ImportRow | RejectedRow)[] = [];
	for (let start = 0; start + width <= cells.length; start += width) {
		const cell = (column: string) => {
			const index = places.get(column);
			return index === undefined ? null : (cells[start + index] ?? null);
		};
		const meta = metaColumns.flatMap(([variable, index]): [string, string][] => {
			const value = cells[start + index] ?? null;
			return value === null ? [] : [[variable, value]];
		});
		rows.push(parseRow(cell, meta));
	}
	return rows;
}

function parseRow(
	cell: (column: string) => string | null,
	meta: [string, string][],
): ImportRow | RejectedRow {
	const email = cell('email');
	if (email === null || email.trim() === '') return reject('blank', 'email: This field may not be blank.');
	const address = parseAddress(email);
	if (address === null) return reject('invalid', 'email: Enter a valid email address.');
	const name = cell('name');
	const disable_reason = cell('disable_reason');
	const problem =
		textProblem('name', name) ?? textProblem('disable_reason', disable_reason) ?? metaProblem(meta);
	if (problem !== null) return problem;
	const activity = cell('is_active');
	const is_active = activity === null ? null : truths.get(activity.trim().toLowerCase());
	if (is_active === undefined) return reject('invalid', 'is_active: Must be a valid boolean.');
	return {
		kind: 'row',
		email: address.address,
		email_key: address.key,
		name: name?.trim() ?? null,
		is_active,
		disable_reason: disable_reason?.trim() || null,
		meta,
	};
}

function textProblem(column: string, text: string | null): RejectedRow | null {
	if (text === null) return null;
	if (text.includes('\0'))
		return reject('null_characters_not_allowed', `${column}: Null characters are not allowed.`);
	if (text.length <= maxTextLength) return null;
	return reject('max_length', `${column}: Ensure this field has no more than ${maxTextLength} characters.`);
}

function metaProblem(meta: [string, string][]): RejectedRow | null {
	const bad = meta.find(([, value]) => value.includes('\0'));
	if (bad === undefined) return null;
	return reject('null_characters_not_allowed', `${bad[0]}: Null characters are not allowed.`);
}

function reject(code: string, error: string): RejectedRow {
	return { kind: 'rejected', code, error };
}

/** How an imported row starts: a suppressed address inactive; a reason alone means inactive. */
export function importedActivation(
	row: Pick<ImportRow, 'is_active' | 'disable_reason'>,
	reasons: readonly DisableReason[],
): Activation {
	const wanted = row.is_active ?? row.disable_reason === null;
	if (reasons.length > 0) return startActivation(wanted, reasons);
	return { is_active: wanted, disable_reason: wanted ? null : row.disable_reason };
}

/**
 * What an import makes of a subscriber's activity. Only `reactivate` makes anybody active again, and not against a
 * hard bounce or a complaint (`isBound`).
 */
export function reimportedActivation(
	stored: Activation,
	row: Pick<ImportRow, 'is_active' | 'disable_reason'>,
	{ reactivate, isBound }: { reactivate: boolean; isBound: boolean },
): Activation {
	const wanted = row.is_active ?? (row.disable_reason !== null ? false : null);
	if (wanted === false) {
		const kept = stored.is_active ? null : stored.disable_reason;
		return { is_active: false, disable_reason: row.disable_reason ?? kept };
	}
	if (stored.is_active || !reactivate || isBound) return stored;
	return { is_active: true, disable_reason: null };
}
