/** What the columns of a table are to a mailing: one is the address, the others are variables. Pure. */
import { type HeaderFinding, mapHeader } from '../cli/tabular/header.js';

/** Where the address is, and which column gives which variable. */
export interface MailingColumns {
	email: number;
	variables: readonly { index: number; name: string }[];
	/** Columns that no variable can be named after; nothing refers to them. */
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
	const variables = columns.flatMap(({ index, target }) =>
		target === 'email' ? [] : [{ index, name: target.replace(/^meta\./, '') }],
	);
	return { kind: 'columns', columns: { email: email.index, variables, ignored } };
}

interface Named {
	variable: string;
	name: string;
}

const variable = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** `First Name` gives `first_name`, as it would for an import that makes fields. */
function fieldOf(column: string): Named | null {
	const plain = column.replace(/^\uFEFF/, '').trim();
	const bare = plain.replace(/^meta\./i, '');
	const made = bare
		.normalize('NFKD')
		.replace(/\p{M}/gu, '')
		.replace(/[\s\-./]+/g, '_')
		.toLowerCase();
	const name = variable.test(bare) ? bare : made;
	return variable.test(name) && !reserved.has(name) ? { variable: name, name: plain } : null;
}

function targetOf(pair: string): Named | null {
	const target = pair.slice(pair.lastIndexOf('=') + 1).trim();
	return variable.test(target) && !reserved.has(target) ? { variable: target, name: target } : null;
}

/** Read by themselves: the address, and a name that objects have already. */
const reserved = new Set(['email', 'name', '__proto__']);
