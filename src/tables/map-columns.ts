/**
 * Maps the columns of a table to those of an import. Pure: a mapping, or all errors of the header at once. Names are
 * only ever keys of Maps, so `__proto__` and `constructor` are names like others.
 */

import { isEmailAddress } from '../api/address.js';
import { suggest } from '../api/suggest.js';
import { emailNames, fold, isFreeVariable, variableOf } from './column-names.js';
import { findCodeColumn, findLeftOutStart, isRejectColumn } from './finding.js';

/** A field of the project, as far as a header needs it. */
export interface KnownField {
	variable: string;
	name: string;
}

export interface MappedColumn {
	/** Position in the table's rows, from 0. */
	index: number;
	/** `email`, `name`, `is_active`, `disable_reason`, `meta` or `meta.VARIABLE`: a column of an import batch. */
	target: string;
}

export interface Mapping {
	columns: readonly MappedColumn[];
	/** Fields to create before the first row (`createFields`). */
	newFields: readonly KnownField[];
	/** Names of columns that are left out, for a message; a column without a name is called by its place, from 1. */
	ignored: readonly string[];
	/** Positions of columns that the user left out, now or in the import that made this rejects file. */
	leftOut: readonly number[];
	/** The position of `_code` in a rejects file: duplicates and misfits are refused again. */
	codeColumn?: number;
}

export interface HeaderFinding {
	code:
		| 'no_email'
		| 'no_header' // no email column, but an address in place of its name
		| 'duplicate'
		| 'same_target'
		| 'unknown'
		| 'ambiguous'
		| 'unknown_map_source'
		| 'unknown_map_target'
		| 'bad_map'
		| 'bad_field_name';
	/** The column's name as in the file. */
	column: string;
	message: string;
	/** Similar names. */
	suggestions: readonly string[];
}

export interface HeaderOptions {
	fields: readonly KnownField[];
	/** `--map` as given: `E-Mail Address=email`; the target `-` leaves the column out. */
	map?: readonly string[];
	/** The treatment of unknown columns. */
	unknown?: 'refuse' | 'create' | 'ignore';
}

export type HeaderResult =
	| { kind: 'mapped'; mapping: Mapping }
	| { kind: 'refused'; findings: readonly HeaderFinding[] };

type Decision =
	| { kind: 'target'; target: string }
	| { kind: 'new_field'; field: KnownField }
	| { kind: 'ignored' }
	| { kind: 'left_out' }
	| { kind: 'finding'; finding: HeaderFinding };

const recordColumns = ['email', 'name', 'is_active', 'disable_reason', 'meta'] as const;

/** Other names for the columns, folded as `fold` does. */
const aliases: ReadonlyMap<string, string> = new Map([
	['email', 'email'],
	['emailaddress', 'email'],
	['mail', 'email'],
	['mailaddress', 'email'],
	['subscriberemail', 'email'],
	['name', 'name'],
	['isactive', 'is_active'],
	['active', 'is_active'],
	['disablereason', 'disable_reason'],
	['meta', 'meta'],
]);

/** Columns of an export that cannot be set: skipped. */
const readOnly = new Set(['id', 'listid', 'isemailverified', 'source', 'optinsigned', 'datecreated']);

/** `map` decides first, then exact names, then folded ones. A mapping has an email column, and no target twice. */
export function mapHeader(header: readonly string[], options: HeaderOptions): HeaderResult {
	const { named, findings } = readMap(header, options);
	const email = findEmail(header.map(clean), named, options);
	if (email !== null) named.set(email, 'email');
	const leftOutStart = findLeftOutStart(header.map(clean));
	findings.push(...findDuplicates(header));
	findings.push(...findTwins(header.slice(0, leftOutStart), named, options.fields));
	const columns: MappedColumn[] = [];
	const newFields = new Map<string, KnownField>();
	const ignored: string[] = [];
	const leftOut: number[] = [];
	for (const [index, column] of header.map(clean).entries()) {
		const wasLeftOut = index >= leftOutStart && !named.has(column);
		const decision = wasLeftOut ? leaveOut : decide(column, named.get(column), options);
		if (decision.kind === 'finding') findings.push(decision.finding);
		if (decision.kind === 'ignored' || decision.kind === 'left_out') ignored.push(nameOf(column, index));
		if (decision.kind === 'left_out') leftOut.push(index);
		if (decision.kind === 'target') columns.push({ index, target: decision.target });
		if (decision.kind === 'new_field') {
			newFields.set(decision.field.variable, decision.field);
			columns.push({ index, target: `meta.${decision.field.variable}` });
		}
	}
	findings.push(...findSameTargets(columns, header));
	if (!columns.some(({ target }) => target === 'email')) findings.push(noEmail(header));
	if (findings.length > 0) return { kind: 'refused', findings };
	const codeColumn = findCodeColumn(header.map(clean));
	const isRejects = codeColumn !== null && !columns.some(({ index }) => index === codeColumn);
	const mapping = {
		columns,
		newFields: [...newFields.values()],
		ignored,
		leftOut,
		...(isRejects && { codeColumn }),
	};
	return { kind: 'mapped', mapping };
}

function nameOf(column: string, index: number): string {
	return column === '' ? `column ${index + 1} (no name)` : column;
}

function clean(name: string): string {
	return name.replace(/^\uFEFF/, '').trim();
}

const leaveOut: Decision = { kind: 'left_out' };

function decide(column: string, named: string | undefined, options: HeaderOptions): Decision {
	if (named !== undefined) return decideNamed(column, named, options);
	if (isRejectColumn(column)) return { kind: 'ignored' };
	const found = findTarget(column, options.fields);
	if (found.length === 1) return { kind: 'target', target: found[0] ?? '' };
	if (found.length > 1) return { kind: 'finding', finding: ambiguous(column, found) };
	if (readOnly.has(fold(column))) return { kind: 'ignored' };
	return decideUnknown(column, options);
}

/** The one column that is called e-mail in other words, unless there is a plainer one; null: there is none. */
function findEmail(
	columns: readonly string[],
	named: ReadonlyMap<string, string>,
	{ fields }: HeaderOptions,
): string | null {
	const found = columns.filter((column) => emailNames.has(fold(column)));
	const [only] = found;
	if (only === undefined || found.length > 1 || named.has(only)) return null;
	const targets = columns.map((column) => findTarget(named.get(column) ?? column, fields)[0]);
	return targets.includes('email') || targets[columns.indexOf(only)] !== undefined ? null : only;
}

/** Exact names before folded ones, columns of the record before fields; several matches make the header ambiguous. */
function findTarget(column: string, fields: readonly KnownField[]): string[] {
	const exact = exactTarget(column, fields);
	if (exact !== null) return [exact];
	const folded = fold(column);
	if (folded === '') return [];
	const alias = aliases.get(folded);
	const matches = fields.filter(({ variable, name }) => fold(variable) === folded || fold(name) === folded);
	if (matches.length > 0 && alias !== 'email') return matches.map(({ variable }) => `meta.${variable}`);
	return alias === undefined ? [] : [alias];
}

function exactTarget(column: string, fields: readonly KnownField[]): string | null {
	if (recordColumns.some((name) => name === column)) return column;
	const variable = /^meta\./i.test(column) ? column.slice('meta.'.length) : column;
	return fields.some((field) => field.variable === variable) ? `meta.${variable}` : null;
}

function decideNamed(column: string, target: string, options: HeaderOptions): Decision {
	if (target === '-') return leaveOut;
	const found = findTarget(target, options.fields);
	if (found.length === 1) return { kind: 'target', target: found[0] ?? '' };
	const variable = target.replace(/^meta\./, '');
	if (options.unknown === 'create' && isFreeVariable(variable)) {
		return { kind: 'new_field', field: { variable, name: column } };
	}
	const suggestions = suggest(target, targetNames(options.fields));
	const message = `--map ${column}=${target}: no column or field is called ${target}`;
	return { kind: 'finding', finding: { code: 'unknown_map_target', column, message, suggestions } };
}

function decideUnknown(column: string, options: HeaderOptions): Decision {
	if (options.unknown === 'ignore') return leaveOut;
	if (options.unknown === 'create') return createField(column);
	const suggestions = suggest(column, targetNames(options.fields));
	const message = column === '' ? nameless : `unknown column ${show(column)}`;
	return { kind: 'finding', finding: { code: 'unknown', column, message, suggestions } };
}

/** They write elsewhere than they stand, or turn the line round; a field is never called so. */
const hasControls = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** `First Name` becomes `first_name`. A name that gives no variable must be mapped by `--map`. */
function createField(column: string): Decision {
	const variable = hasControls.test(column) ? null : variableOf(column);
	if (variable !== null) return { kind: 'new_field', field: { variable, name: column } };
	const message =
		column === ''
			? nameless
			: `no field can be named after the column ${show(column)}: --map ${show(`${column}=VARIABLE`)}`;
	return { kind: 'finding', finding: { code: 'bad_field_name', column, message, suggestions: [] } };
}

const nameless = 'a column without a name: --map "=-" leaves it out';

function targetNames(fields: readonly KnownField[]): string[] {
	return [
		...recordColumns,
		...fields.flatMap(({ variable, name }) => (name === '' ? [variable] : [variable, name])),
	];
}

/** The pairs of `--map` by the column's name; a column is found exactly or folded. */
function readMap(
	header: readonly string[],
	{ map = [] }: HeaderOptions,
): { named: Map<string, string>; findings: HeaderFinding[] } {
	const named = new Map<string, string>();
	const findings: HeaderFinding[] = [];
	const columns = header.map(clean);
	for (const pair of map) {
		const cut = pair.lastIndexOf('=');
		const column = clean(pair.slice(0, Math.max(0, cut)));
		const target = pair.slice(cut + 1).trim();
		// Several columns may have no name: they can be left out, but not become fields.
		const isWhole = target !== '' && (cut > 0 || (cut === 0 && target === '-'));
		const found =
			columns.find((name) => name === column) ?? columns.find((name) => fold(name) === fold(column));
		if (!isWhole) findings.push(badMap(pair));
		// A column without name and cells is left out automatically.
		else if (column === '' && found === undefined) continue;
		else if (found === undefined) findings.push(unknownSource(column, columns));
		else named.set(found, target);
	}
	return { named, findings };
}

function badMap(pair: string): HeaderFinding {
	return {
		code: 'bad_map',
		column: pair,
		message: `--map ${show(pair)}: COLUMN=FIELD is needed`,
		suggestions: [],
	};
}

function unknownSource(column: string, columns: readonly string[]): HeaderFinding {
	const message = `--map ${show(column)}: the file has no such column`;
	return { code: 'unknown_map_source', column, message, suggestions: suggest(column, columns) };
}

function ambiguous(column: string, found: readonly string[]): HeaderFinding {
	const message = `column ${show(column)} may be ${found.join(' or ')}: --map ${show(`${column}=FIELD`)}`;
	return { code: 'ambiguous', column, message, suggestions: found };
}

/** Columns without a name may repeat: each is unknown by itself. */
function findDuplicates(header: readonly string[]): HeaderFinding[] {
	const seen = new Set<string>();
	const twice = new Set<string>();
	for (const name of header.map(clean)) {
		if (name !== '' && seen.has(name)) twice.add(name);
		seen.add(name);
	}
	return [...twice].map((column) => {
		return {
			code: 'duplicate',
			column,
			message: `the column ${show(column)} is there twice`,
			suggestions: [],
		};
	});
}

/**
 * A person cannot tell twins apart, and neither can a program that ignores case. Fields with such names stay apart: an
 * export names them.
 */
function findTwins(
	header: readonly string[],
	named: ReadonlyMap<string, string>,
	fields: readonly KnownField[],
): HeaderFinding[] {
	const firsts = new Map<string, string>();
	return header.map(clean).flatMap((column) => {
		if (named.has(column)) return [];
		const first = firsts.get(column.toLowerCase()) ?? column;
		firsts.set(column.toLowerCase(), first);
		const areFields = [first, column].every((one) => exactTarget(one, fields) !== null);
		if (first === column || areFields) return [];
		const message = `the columns ${show(first)} and ${show(column)} differ in case alone: --map ${show(`${column}=-`)}`;
		return [{ code: 'duplicate' as const, column, message, suggestions: [] }];
	});
}

function findSameTargets(columns: readonly MappedColumn[], header: readonly string[]): HeaderFinding[] {
	const firsts = new Map<string, string>();
	const findings: HeaderFinding[] = [];
	for (const { index, target } of columns) {
		const column = clean(header[index] ?? '');
		const first = firsts.get(target);
		if (first === undefined) firsts.set(target, column);
		else if (first !== column) {
			const message = `the columns ${show(first)} and ${show(column)} are both ${target}: --map ${show(`${column}=-`)}`;
			findings.push({ code: 'same_target', column, message, suggestions: [] });
		}
	}
	return findings;
}

function noEmail(header: readonly string[]): HeaderFinding {
	const shown = header.slice(0, 10).map((name) => show(clean(name)));
	if (header.some((cell) => isEmailAddress(clean(cell)))) {
		const message = `the first line looks like data, not a header: ${shown.join(', ')}`;
		return { code: 'no_header', column: '', message, suggestions: [] };
	}
	const message = `no email column among ${shown.join(', ')}: --map "COLUMN=email"`;
	return { code: 'no_email', column: '', message, suggestions: suggest('email', header.map(clean)) };
}

/** A hostile name may be long. */
function show(name: string): string {
	return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
