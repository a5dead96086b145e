/** What is wrong with the header of a table, in words for people. Pure. */

import { isEmailAddress } from '../api/address.js';
import { suggest } from '../api/suggest.js';
import { mappedName, type Place } from './joined-columns.js';

export interface HeaderFinding {
	code:
		| 'no_email'
		| 'no_header' // no email column, but an address in place of its name
		| 'duplicate'
		| 'same_target'
		| 'unknown'
		| 'state' // it says who may get mail, and is not mapped
		| 'two_emails' // a second column that is called e-mail
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

/** The name of a column without a mark of the file's beginning. */
export function clean(name: string): string {
	return name.replace(/^\uFEFF/, '').trim();
}

function finding(code: HeaderFinding['code'], column: string, message: string): HeaderFinding {
	return { code, column, message, suggestions: [] };
}

export function badMap(pair: string): HeaderFinding {
	return finding('bad_map', pair, `--map ${show(pair)}: COLUMN=FIELD is needed`);
}

export function unknownSource(column: string, columns: readonly string[]): HeaderFinding {
	const message = `--map ${show(column)}: the file has no such column`;
	return { code: 'unknown_map_source', column, message, suggestions: suggest(column, columns) };
}

export function ambiguous(column: string, found: readonly string[]): HeaderFinding {
	const message = `column ${show(column)} may be ${found.join(' or ')}: --map ${show(`${column}=FIELD`)}`;
	return { code: 'ambiguous', column, message, suggestions: found };
}

/** Columns without a name may repeat: each is unknown by itself. */
export function findDuplicates(header: readonly string[]): HeaderFinding[] {
	const seen = new Set<string>();
	const twice = new Set<string>();
	for (const name of header.map(clean)) {
		if (name !== '' && seen.has(name)) twice.add(name);
		seen.add(name);
	}
	return [...twice].map((column) =>
		finding('duplicate', column, `the column ${show(column)} is there twice`),
	);
}

/** Two columns for one value. */
export function findSameTargets(
	columns: readonly (Place & { target: string })[],
	header: readonly string[],
): HeaderFinding[] {
	const firsts = new Map<string, string>();
	const findings: HeaderFinding[] = [];
	for (const { target, ...at } of columns) {
		const column = mappedName(header.map(clean), at);
		const first = firsts.get(target);
		if (first === undefined) firsts.set(target, column);
		else if (first !== column) {
			const message = `the columns ${show(first)} and ${show(column)} are both ${target}: --map ${show(`${column}=-`)}`;
			findings.push(finding('same_target', column, message));
		}
	}
	return findings;
}

/** `first`: the one that is taken. */
export function twoEmails(first: string, column: string): HeaderFinding {
	return finding(
		'two_emails',
		column,
		`the columns ${show(first)} and ${show(column)} both look like addresses`,
	);
}

/** `cells`: those of its first rows. */
export function state(column: string, cells: readonly string[] = []): HeaderFinding {
	const examples = [...new Set(cells)].slice(0, 3).map(show).join(', ');
	const says = `says who may get mail${examples && ` (${examples})`}`;
	if (column !== '') return finding('state', column, `the column ${show(column)} ${says}`);
	return finding(
		'state',
		'',
		`a column without a name ${says}: name it in the header, or --map "=-" leaves it out`,
	);
}

export function noEmail(header: readonly string[]): HeaderFinding {
	const shown = header.slice(0, 10).map((name) => show(clean(name)));
	if (header.some((cell) => isEmailAddress(clean(cell)))) {
		return finding('no_header', '', `the first line looks like data, not a header: ${shown.join(', ')}`);
	}
	const message = `no email column among ${shown.join(', ')}: --map "COLUMN=email"`;
	return { code: 'no_email', column: '', message, suggestions: suggest('email', header.map(clean)) };
}

/** A hostile name may be long. */
export function show(name: string): string {
	return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
