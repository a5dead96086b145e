import { variablePattern } from '../api/inputs.js';
import type { Place } from '../tables/column-names.js';
import { fold, variableOf } from '../tables/column-names.js';
import { clean, type HeaderFinding, mapHeader } from '../tables/map-columns.js';

export interface CampaignColumns {
	email: number;
	variables: readonly (Place & { name: string })[];
	ignored: readonly string[];
}

export type ColumnsResult =
	| { kind: 'columns'; columns: CampaignColumns }
	| { kind: 'refused'; findings: readonly HeaderFinding[] };

export function campaignColumns(header: readonly string[], map: readonly string[]): ColumnsResult {
	const fields = [...header.map(fieldOf), ...map.map(targetOf)].filter((field) => field !== null);
	const known = [...new Map(fields.map((field) => [field.variable, field])).values()];
	const mapped = mapHeader(header, { fields: known, map, unknown: 'ignore' });
	if (mapped.kind === 'refused') return mapped;
	const { columns, ignored, leftOut } = mapped.mapping;
	const email = columns.find(({ target }) => target === 'email');
	if (email === undefined) return { kind: 'refused', findings: [] };
	const variables = columns.flatMap(({ target, ...at }) => {
		const name = target.replace(/^meta\./, '');
		const names = target === 'email' ? [] : [name];
		const written = at.joined === undefined ? asWritten(header[at.index] ?? '', target) : [];
		return [...names, ...written].map((one) => ({ ...at, name: one }));
	});
	const taken = new Set([
		...leftOut,
		...columns.flatMap((one) => (one.joined === undefined ? one.index : [])),
	]);
	const parts = columns.flatMap(({ index, joined = [] }) => [index, ...joined]);
	variables.push(
		...ownVariables(
			header,
			parts.filter((index) => !taken.has(index)),
			variables,
		),
	);
	return { kind: 'columns', columns: { email: email.index, variables, ignored } };
}

/** Columns that --map joins keep their own variables: `Dear #First#` may stand beside `#name#`. */
function ownVariables(
	header: readonly string[],
	parts: readonly number[],
	variables: readonly { name: string }[],
): CampaignColumns['variables'] {
	const own = new Map<string, number>();
	for (const index of parts) {
		const name = fieldOf(header[index] ?? '')?.variable;
		if (name !== undefined && !variables.some((one) => one.name === name)) own.set(name, index);
	}
	return [...own].map(([name, index]) => ({ name, index }));
}

function asWritten(column: string, target: string): string[] {
	const plain = clean(column);
	if (recordColumn(plain) !== target || reserved.has(plain) || !isVariableName(plain)) return [];
	return plain === target ? [] : [plain];
}

interface Named {
	variable: string;
	name: string;
}

/** `First Name` gives `first_name`, like an import that creates fields. */
function fieldOf(column: string): Named | null {
	const plain = clean(column);
	if (recordColumn(plain) !== null) return null;
	const bare = plain.replace(/^meta\./i, '');
	const isSeen = !/[\p{Cc}\p{Cf}]/u.test(bare);
	const name = isVariableName(bare) ? bare : isSeen ? variableOf(bare) : null;
	return name === null || reserved.has(name) ? null : { variable: name, name: plain };
}

function recordColumn(column: string): 'email' | 'name' | null {
	if (fold(column) === 'name') return 'name';
	return mapHeader([column], { fields: [], unknown: 'ignore' }).kind === 'mapped' ? 'email' : null;
}

function targetOf(pair: string): Named | null {
	const target = pair.slice(pair.lastIndexOf('=') + 1).trim();
	return isVariableName(target) && !reserved.has(target) ? { variable: target, name: target } : null;
}

/** `email` is the address, `__proto__` a name that objects have. */
const reserved = new Set(['email', 'name', '__proto__']);

export interface Misnamed {
	written: string;
	column: string;
	variable: string | null;
}

export function misnamedVariables(
	texts: readonly string[],
	header: readonly string[],
	{ variables }: Pick<CampaignColumns, 'variables'>,
): Misnamed[] {
	const columns = new Map(header.map((name, index) => [fold(name), { name: clean(name), index }]));
	const given = new Set(variables.map(({ name }) => name));
	const found = new Map<string, Misnamed>();
	for (const written of texts.flatMap((text) => [...wordsIn(text, columns)])) {
		const column = columns.get(fold(written));
		if (column === undefined || given.has(written)) continue;
		const variable =
			variables.find((one) => one.index === column.index && one.joined === undefined)?.name ?? null;
		found.set(written, { written, column: column.name, variable });
	}
	return [...found.values()];
}

export function isVariableName(name: string): boolean {
	return variablePattern.test(name);
}

function* wordsIn(text: string, columns: ReadonlyMap<string, unknown>): Generator<string> {
	const pieces = text.split('#');
	for (let at = 1; at < pieces.length - 1; at += 1) {
		const word = (pieces[at] ?? '').split('|', 1)[0] ?? '';
		if (word.length > maxWord) continue;
		const folded = fold(word);
		if (!isVariableName(word) && (folded === '' || !columns.has(folded))) continue;
		yield word;
		at += 1;
	}
}

const maxWord = 200;
