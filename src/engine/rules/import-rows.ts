/** Rows of an import: cells into typed values or a reason why not, before anything stored is looked at. */
import { type EmailKey, parseAddress } from '../../api/address.js';
import type { ImportBatch } from '../../api/capabilities.js';
import { parseMetaCell } from '../../api/meta-cell.js';
import type { MetaValue } from '../../api/records.js';
import { maxMetaBytes } from '../../api/subscribers.js';
import type { SuppressionReason } from '../../api/suppressions.js';
import { foldedColumn } from './folding.js';
import type { Activation } from './subscription.js';
import { startActivation } from './subscription.js';

/** `null` keeps what is there. */
export interface ImportRow {
	kind: 'row';
	email: string;
	email_key: EmailKey;
	/** See `foldedColumn`. */
	email_folded: string | null;
	name: string | null;
	is_active: boolean | null;
	disable_reason: string | null;
	/** It has a cell `meta`: unlike columns, its variables are known with the row only. */
	has_meta_cell: boolean;
	/** The cells that are given as the JSON of an object, variable to value. */
	meta_json: string;
}

export interface RejectedRow {
	kind: 'rejected';
	code: string;
	error: string;
}

export type ParsedRow = ImportRow | RejectedRow;

const metaPrefix = 'meta.';

/** The variables of the columns `meta.…`, in their order. */
export function metaVariables(columns: readonly string[]): string[] {
	return columns.flatMap((column) =>
		column.startsWith(metaPrefix) ? [column.slice(metaPrefix.length)] : [],
	);
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

/** Where the columns of a batch are; -1 = not there. */
interface Places {
	email: number;
	name: number;
	is_active: number;
	disable_reason: number;
	stated: number;
	meta: readonly (readonly [variable: string, index: number])[];
}

/** One entry a row, in order. Pure, so that it can run before the transaction begins. */
export function parseImportRows({ columns, cells }: Pick<ImportBatch, 'columns' | 'cells'>): ParsedRow[] {
	const width = columns.length;
	const parse = importRowParser(columns);
	const rows: ParsedRow[] = [];
	for (let start = 0; start + width <= cells.length; start += width)
		rows.push(parse(cells.slice(start, start + width)));
	return rows;
}

/** Parses rows one by one, each given as its cells in the order of `columns`. */
export function importRowParser(columns: readonly string[]): (cells: ImportBatch['cells']) => ParsedRow {
	const places: Places = {
		email: columns.indexOf('email'),
		name: columns.indexOf('name'),
		is_active: columns.indexOf('is_active'),
		disable_reason: columns.indexOf('disable_reason'),
		stated: columns.indexOf('meta'),
		meta: columns.flatMap((column, index): [string, number][] =>
			column.startsWith(metaPrefix) ? [[column.slice(metaPrefix.length), index]] : [],
		),
	};
	return (cells) => parseRow(places, cells);
}

function parseRow(places: Places, cells: ImportBatch['cells']): ParsedRow {
	const cell = (place: number) => (place === -1 ? null : (cells[place] ?? null));
	const email = cell(places.email);
	if (email === null || email.trim() === '') return reject('blank', 'email: This field may not be blank.');
	const address = parseAddress(email);
	if (address === null) return reject('invalid', 'email: Enter a valid email address.');
	const name = cell(places.name);
	const disable_reason = cell(places.disable_reason);
	const stated = parseMetaCell(cell(places.stated));
	if (stated.kind === 'invalid') return reject(stated.code, stated.error);
	// A column of its own comes behind, and so wins.
	const meta: (readonly [string, MetaValue])[] = [...stated.values];
	for (const [variable, place] of places.meta) {
		const value = cell(place);
		if (value !== null) meta.push([variable, value]);
	}
	const meta_json = meta.length === 0 ? '{}' : JSON.stringify(Object.fromEntries(meta));
	const problem =
		textProblem('name', name) ??
		textProblem('disable_reason', disable_reason) ??
		metaProblem(meta, meta_json);
	if (problem !== null) return problem;
	const is_active = activityOf(cell(places.is_active));
	if (is_active === undefined) return reject('invalid', 'is_active: Must be a valid boolean.');
	return {
		kind: 'row',
		email: address.address,
		email_key: address.key,
		email_folded: foldedColumn(address.address, address.key),
		name: name?.trim() ?? null,
		is_active,
		disable_reason: disable_reason?.trim() || null,
		has_meta_cell: stated.values.length > 0,
		meta_json,
	};
}

function activityOf(cell: string | null): boolean | null | undefined {
	return cell === null ? null : truths.get(cell.trim().toLowerCase());
}

function textProblem(column: string, text: string | null): RejectedRow | null {
	if (text === null) return null;
	if (text.includes('\0'))
		return reject('null_characters_not_allowed', `${column}: Null characters are not allowed.`);
	if (text.length <= maxTextLength) return null;
	return reject('max_length', `${column}: Ensure this field has no more than ${maxTextLength} characters.`);
}

function metaProblem(meta: readonly (readonly [string, MetaValue])[], json: string): RejectedRow | null {
	for (const [variable, value] of meta) {
		if (typeof value === 'string' && value.includes('\0')) {
			return reject('null_characters_not_allowed', `${variable}: Null characters are not allowed.`);
		}
	}
	// Three octets a UTF-16 unit at most: short texts need no count.
	if (json.length * 3 <= maxMetaBytes || Buffer.byteLength(json) <= maxMetaBytes) return null;
	return reject('max_length', `meta: Ensure this field has no more than ${maxMetaBytes} bytes.`);
}

function reject(code: string, error: string): RejectedRow {
	return { kind: 'rejected', code, error };
}

/** How an imported row starts: a suppressed address inactive; a reason alone means inactive. */
export function importedActivation(
	row: Pick<ImportRow, 'is_active' | 'disable_reason'>,
	reasons: readonly SuppressionReason[],
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
