/** What the columns of a table are to a mailing: one is the address, the others are variables. Pure. */
import { type HeaderFinding, mapHeader } from '../cli/tabular/header.js';

/** Where the address is, and which column gives which variable. */
export interface MailingColumns {
	email: number;
	variables: readonly { index: number; name: string }[];
	/** Columns that give no variable: none can be named after them, or they were to be left out. */
	ignored: readonly string[];
}

export type ColumnsResult =
	| { kind: 'columns'; columns: MailingColumns }
	| { kind: 'refused'; findings: readonly HeaderFinding[] };

/** `map` as `--map` gives it: `Town=city`; the target `-` leaves the column out. */
export function mailingColumns(header: readonly string[], map: readonly string[]): ColumnsResult {
	// As an import reads a header, but for a mailing every column is a field, and every target of --map.
	const fields = [...header.map(fieldOf), ...map.map(targetOf)].filter((field) => field !== null);
	const known = [...new Map(fields.map((field) => [field.variable, field])).values()];
	const mapped = mapHeader(header, { fields: known, map, unknown: 'ignore' });
	if (mapped.kind === 'refused') return mapped;
	const { columns, ignored } = mapped.mapping;
	const email = columns.find(({ target }) => target === 'email');
	// A header without one is refused above.
	if (email === undefined) return { kind: 'refused', findings: [] };
	const variables = columns.flatMap(({ index, target }) => {
		const name = target.replace(/^meta\./, '');
		const names = target === 'email' ? [] : [name];
		return [...names, ...asWritten(header[index] ?? '', target)].map((one) => ({ index, name: one }));
	});
	return { kind: 'columns', columns: { email: email.index, variables, ignored } };
}

/** The column `Name` is the name whatever its case; who wrote `#Name#` after it means it too. */
function asWritten(column: string, target: string): string[] {
	const plain = plainName(column);
	if (recordColumn(plain) !== target || reserved.has(plain) || !variable.test(plain)) return [];
	return plain === target ? [] : [plain];
}

interface Named {
	variable: string;
	name: string;
}

const variable = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** `First Name` gives `first_name`, as it would for an import that makes fields. */
function fieldOf(column: string): Named | null {
	const plain = plainName(column);
	// As in an import: `EMAIL` is the address, and no variable beside it.
	if (recordColumn(plain) !== null) return null;
	const bare = plain.replace(/^meta\./i, '');
	const made = bare
		.normalize('NFKD')
		.replace(/\p{M}/gu, '')
		.replace(/[\s\-./]+/g, '_')
		.toLowerCase();
	const name = variable.test(bare) ? bare : made;
	return variable.test(name) && !reserved.has(name) ? { variable: name, name: plain } : null;
}

/** What a header's word is by itself: an import would find the address in a table of this column alone. */
function recordColumn(column: string): 'email' | 'name' | null {
	if (foldColumn(column) === 'name') return 'name';
	return mapHeader([column], { fields: [], unknown: 'ignore' }).kind === 'mapped' ? 'email' : null;
}

/** Case, blanks and punctuation do not count, as in the header of an import. */
export function foldColumn(name: string): string {
	return name
		.normalize('NFKC')
		.toLowerCase()
		.replace(/[\s\p{P}\p{Cf}]/gu, '');
}

function plainName(column: string): string {
	return column.replace(/^\uFEFF/, '').trim();
}

function targetOf(pair: string): Named | null {
	const target = pair.slice(pair.lastIndexOf('=') + 1).trim();
	return variable.test(target) && !reserved.has(target) ? { variable: target, name: target } : null;
}

/** Read by themselves: the address, and a name that objects have already. */
const reserved = new Set(['email', 'name', '__proto__']);
