/**
 * Turns the cells of an import into typed rows or errors. Threads exchange encoded rows, which cost half as much as
 * objects. The store does not check these rows again.
 */
import { type EmailKey, parseAddress } from '../../api/address.js';
import type { ImportBatch } from '../../api/capabilities.js';
import type { MetaValue } from '../../api/records.js';
import { texts } from '../../api/schema/texts.js';
import { maxMetaBytes, meta } from '../../api/subscribers.js';
import { importedReason, type SuppressionReason } from '../../api/suppressions.js';
import { type Activation, foldedColumn, strongest } from './subscribers.js';

export interface ImportRow {
	kind: 'row';
	email: string;
	email_key: EmailKey;
	email_folded: string | null;
	name: string | null;
	is_active: boolean | null;
	disable_reason: string | null;
	has_meta_cell: boolean;
	meta_json: string;
}

export interface RejectedRow {
	kind: 'rejected';
	code: string;
	error: string;
}

export type ParsedRow = ImportRow | RejectedRow;

const metaPrefix = 'meta.';

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

interface Places {
	email: number;
	name: number;
	is_active: number;
	disable_reason: number;
	stated: number;
	meta: readonly (readonly [variable: string, index: number])[];
}

export function parseImportRows({ columns, cells }: Pick<ImportBatch, 'columns' | 'cells'>): ParsedRow[] {
	const width = columns.length;
	const parse = importRowParser(columns);
	const rows: ParsedRow[] = [];
	for (let start = 0; start + width <= cells.length; start += width)
		rows.push(parse(cells.slice(start, start + width)));
	return rows;
}

export function importRowParser(columns: readonly string[]): (cells: ImportBatch['cells']) => ParsedRow {
	const read = importRowReader(columns);
	return (cells) => {
		const row = read(cells);
		return row.kind === 'row' ? checkRow(row) : row;
	};
}

interface GivenRow
	extends Pick<ImportRow, 'kind' | 'name' | 'is_active' | 'disable_reason' | 'has_meta_cell'> {
	email: string;
	meta: readonly (readonly [variable: string, value: MetaValue])[];
}

export function importRowReader(
	columns: readonly string[],
): (cells: ImportBatch['cells']) => GivenRow | RejectedRow {
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
	return (cells) => readRow(places, cells);
}

function readRow(places: Places, cells: ImportBatch['cells']): GivenRow | RejectedRow {
	const cell = (place: number) => (place === -1 ? null : (cells[place] ?? null));
	const email = cell(places.email);
	if (email === null || email.trim() === '') return reject('blank', `email: ${texts.blank}`);
	const is_active = activityOf(cell(places.is_active));
	if (is_active === undefined)
		return reject('invalid', 'is_active: must be true or false, 1 or 0, yes or no');
	const stated = parseMetaCell(cell(places.stated));
	if (stated.kind === 'invalid') return reject(stated.code, stated.error);
	const meta: (readonly [string, MetaValue])[] = [...stated.values];
	for (const [variable, place] of places.meta) {
		const value = cell(place);
		if (value !== null) meta.push([variable, value]);
	}
	return {
		kind: 'row',
		email,
		name: cell(places.name)?.trim() ?? null,
		is_active,
		disable_reason: cell(places.disable_reason)?.trim() || null,
		has_meta_cell: stated.values.length > 0,
		meta,
	};
}

function activityOf(cell: string | null): boolean | null | undefined {
	const word = cell?.trim().toLowerCase() ?? '';
	return word === '' ? null : truths.get(word);
}

// Do not take `meta` out with a rest pattern, which would create a second object for each row.
function checkRow(row: GivenRow): ParsedRow {
	const { meta } = row;
	const address = parseAddress(row.email);
	if (address === null) return reject('invalid', `email: ${texts.email}`);
	const meta_json = meta.length === 0 ? '{}' : JSON.stringify(Object.fromEntries(meta));
	const problem =
		textProblem('name', row.name) ??
		textProblem('disable_reason', row.disable_reason) ??
		metaProblem(meta, meta_json);
	if (problem !== null) return problem;
	return {
		kind: 'row',
		email: address.address,
		email_key: address.key,
		email_folded: foldedColumn(address.address, address.key),
		name: row.name,
		is_active: row.is_active,
		disable_reason: row.disable_reason,
		has_meta_cell: row.has_meta_cell,
		meta_json,
	};
}

function textProblem(column: string, text: string | null): RejectedRow | null {
	if (text === null) return null;
	if (text.includes('\0')) return reject('null_characters_not_allowed', `${column}: ${texts.nullCharacters}`);
	if (text.length <= maxTextLength) return null;
	return reject('max_length', `${column}: Ensure this field has no more than ${maxTextLength} characters.`);
}

function metaProblem(meta: readonly (readonly [string, MetaValue])[], json: string): RejectedRow | null {
	for (const [variable, value] of meta) {
		if (typeof value === 'string' && value.includes('\0')) {
			return reject('null_characters_not_allowed', `${variable}: ${texts.nullCharacters}`);
		}
	}
	// A UTF-16 unit takes at most three bytes in UTF-8, so short texts need no exact count.
	if (json.length * 3 <= maxMetaBytes || Buffer.byteLength(json) <= maxMetaBytes) return null;
	return reject('max_length', `meta: Ensure this field has no more than ${maxMetaBytes} bytes.`);
}

function reject(code: string, error: string): RejectedRow {
	return { kind: 'rejected', code, error };
}

type RowActivity = Pick<ImportRow, 'is_active' | 'disable_reason'>;

export function importedActivation(row: RowActivity, kept: readonly SuppressionReason[]): Activation {
	return stoppedBy(row, kept) ?? { is_active: row.is_active ?? true, disable_reason: null };
}

/** `kept`: suppressions that the import does not lift. */
export function reimportedActivation(
	stored: Activation,
	row: RowActivity,
	{ reactivate, kept }: { reactivate: boolean; kept: readonly SuppressionReason[] },
): Activation {
	if (row.disable_reason !== null) return stoppedBy(row, kept) ?? stored;
	if (row.is_active === false) {
		return { is_active: false, disable_reason: stored.is_active ? null : stored.disable_reason };
	}
	if (stored.is_active || !reactivate || kept.length > 0) return stored;
	return { is_active: true, disable_reason: null };
}

function stoppedBy({ disable_reason }: RowActivity, kept: readonly SuppressionReason[]): Activation | null {
	const imposed = importedReason(disable_reason);
	const reason = strongest(imposed === null ? kept : [...kept, imposed]) ?? disable_reason;
	return reason === null ? null : { is_active: false, disable_reason: reason };
}

type MetaCell =
	| { kind: 'values'; values: readonly (readonly [variable: string, value: MetaValue])[] }
	| { kind: 'invalid'; code: string; error: string };

const field = meta();
const nothing: MetaCell = { kind: 'values', values: [] };

function parseMetaCell(cell: string | null): MetaCell {
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
	if (first === undefined) return { code: 'invalid', message: texts.json };
	return isComplaint(first) ? first : firstOf(first);
}

function isComplaint(value: unknown): value is Complaint {
	return (
		typeof value === 'object' && value !== null && 'message' in value && typeof value.message === 'string'
	);
}

const isRejected = 1;
const hasName = 2;
const hasReason = 4;
const hasActivity = 8;
const isActive = 16;
const hasFolded = 32;
const hasMetaCell = 64;

export const keyPlace = 1;

const separator = '\0';

/** UTF-8 encoding turns lone surrogates into U+FFFD. */
export function encodeRow(row: ParsedRow): string {
	const mark = String.fromCharCode(markOf(row));
	if (row.kind === 'rejected') return mark + row.code + separator + row.error;
	return mark + fieldsOf(row).join(separator);
}

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

function fieldsOf(row: ImportRow): string[] {
	const email = row.email === row.email_key ? '' : row.email;
	const meta = row.meta_json === '{}' ? '' : row.meta_json;
	return [row.email_key, email, row.email_folded ?? '', row.name ?? '', row.disable_reason ?? '', meta];
}
