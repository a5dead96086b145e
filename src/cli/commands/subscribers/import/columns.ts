/** The columns of an import: their targets, the fields made for them, and their display. */
import { isEmailAddress } from '../../../../api/address.js';
import { ApiError } from '../../../../api/errors.js';
import type { Field } from '../../../../api/records.js';
import { mappedName } from '../../../../tables/column-names.js';
import {
	type HeaderFinding,
	type HeaderOptions,
	type Mapping,
	show,
} from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { Sampled } from '../../../../tables/states.js';
import { type Hint, mailctl, optionWords, shellWord } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { UsageError } from '../../../frame/errors.js';
import { counted } from '../../../render/units.js';
import { longestName, shortNames } from '../../../verbs/importing.js';
import { walk } from '../../../verbs/listing.js';
import { type ImportOptions, importOptions, parseStateWords } from './options.js';

/** More findings than this are one mistake (a wrong delimiter), and would push the first ones off the screen. */
const maxShown = 10;

/** The mapping, or `UsageError` with everything that is wrong with the header. `file`: null of what is read once. */
export async function mapColumns(
	cx: CommandContext,
	{ table, file }: { table: Table; file: string | null },
	options: ImportOptions,
): Promise<Mapping> {
	const { mapHeader } = await import('../../../../tables/map-columns.js');
	const fields = await readFields(cx);
	const sampled = await sample(table);
	const mapped = mapHeader(table.header, { fields, sampled, ...(await headerOptions(options)) });
	if (mapped.kind === 'mapped') {
		await assertStates(cx, { table, file, mapping: mapped.mapping }, options);
		return mapped.mapping;
	}
	const { findings } = mapped;
	const headless = findings.find(({ code }) => code === 'no_header');
	if (headless !== undefined)
		throw new UsageError(headless.message, {
			hint: 'put a line above it that names the columns, such as email,name',
		});
	// Unknown columns are ignored by an option, what else is wrong is not. A duplicate unknown name has two findings.
	const ordered = findings.toSorted((one, other) => rankOf(one) - rankOf(other));
	const details = [...new Set(ordered.map(detail))];
	const more = details.length - maxShown;
	throw new UsageError('the columns cannot be used as they are', {
		details: more > 0 ? [...details.slice(0, maxShown), `and ${more} more`] : details,
		hint:
			mapHint(findings, holdingAddresses(table.header, sampled)) ??
			(await nameHint(cx, { findings, table, file }, options)) ??
			unknownHint(findings, fields),
	});
}

export async function readFields(cx: CommandContext): Promise<Field[]> {
	const fields: Field[] = [];
	for await (const field of walk((await cx.api()).fields, {}, { signal: cx.signal })) fields.push(field);
	return fields;
}

/** Reads the options about columns. Throws `UsageError`. */
export async function headerOptions(
	options: ImportOptions,
): Promise<Required<Pick<HeaderOptions, 'map' | 'unknown' | 'stateWords'>>> {
	const unknown = options.createFields ? 'create' : options.ignoreUnknown ? 'ignore' : 'refuse';
	return { map: options.map, unknown, stateWords: await parseStateWords(options) };
}

export async function sample(table: Table): Promise<Sampled> {
	const { rows, isWhole } = await table.peek();
	const cells = table.header.map((_, at) =>
		rows.flatMap((row) => (row.kind === 'row' ? (row.cells[at] ?? '').trim() || [] : [])),
	);
	return { cells, rows: rows.filter(({ kind }) => kind === 'row').length, isWhole };
}

/** Columns of addresses, and of little else: a tenth may be typing errors and notes. */
export function holdingAddresses(header: readonly string[], { cells }: Sampled): readonly string[] {
	return header
		.map((name) => name.trim())
		.filter((name, at) => {
			const own = cells[at] ?? [];
			return name !== '' && own.length > 0 && own.filter(isEmailAddress).length >= own.length * 0.9;
		});
}

/**
 * Refuses words of state columns that name no state, before the first row. A file is read to its end for them; of what
 * is read once, the first rows are.
 */
async function assertStates(
	cx: CommandContext,
	{ table, file, mapping }: { table: Table; file: string | null; mapping: Mapping },
	{ stateWords }: ImportOptions,
): Promise<void> {
	const { states = [] } = mapping;
	if (states.length === 0 && stateWords.length > 0)
		throw new UsageError('--state-words has no column to read', { hint: '--map COLUMN=state names it' });
	if (states.length === 0) return;
	const { plainWord, stateOf } = await import('../../../../tables/states.js');
	const { openTable } = await import('../../../../tables/read-table.js');
	const { encoding, delimiter } = table;
	const how = { encoding, delimiter: delimiter || 'auto', signal: cx.signal };
	const rows = file === null ? (await table.peek()).rows : (await openTable(file, how)).rows;
	const unknown = new Map<string, { cell: string; rows: number }>();
	for await (const row of rows) {
		for (const column of row.kind === 'row' ? states : []) {
			const cell = (row.cells[column.index] ?? '').trim();
			const word = plainWord(cell);
			if (stateOf(cell, column) === 'unknown')
				unknown.set(word, { cell, rows: (unknown.get(word)?.rows ?? 0) + 1 });
		}
		// The column does not hold states.
		if (unknown.size > 1_000) break;
	}
	if (unknown.size === 0) return;
	const found = [...unknown.values()].sort((one, other) => other.rows - one.rows);
	const pairs = found.slice(0, 3).map(({ cell }) => `${cell.slice(0, longestName)}=STATE`);
	const names = states.map(({ index }) => (table.header[index] ?? '').trim());
	throw new UsageError(`${shortNames(names).join(', ')}: words that name no known state`, {
		details: shortNames(
			found.map(({ cell, rows }) => `${cell === '' ? '(blank)' : show(cell)}: ${counted(rows, 'row')}`),
		),
		hint: `--state-words ${shellWord(pairs.join(','))}, where STATE is active, unsubscribed, bounced, complained or unconfirmed; a field "state" is meant by --map COLUMN=meta.state`,
	});
}

export function emailAt({ columns }: Mapping): number {
	return columns.find(({ target }) => target === 'email')?.index ?? 0;
}

function rankOf({ code }: HeaderFinding): number {
	return code === 'unknown' ? 1 : 0;
}

function detail({ message, suggestions }: HeaderFinding): string {
	const near = [...new Set(suggestions)];
	return near.length === 0 ? message : `${message} (did you mean ${near.join(' or ')}?)`;
}

/** The `--map` of what its cells or its name show: addresses or states. A name too long to be read has none. */
function mapHint(findings: readonly HeaderFinding[], emails: readonly string[]): string | null {
	const map = (column: string, target: string) => `--map ${shellWord(`${column}=${target}`)}`;
	const of = (wanted: HeaderFinding['code']) =>
		findings.filter(({ code, column }) => code === wanted && column.length <= longestName);
	const [email = ''] = emails;
	if (of('no_email').length > 0 && emails.length === 1 && email.length <= longestName) {
		const others = findings.some(({ code, column }) => code === 'unknown' && column !== email);
		const rest = others ? ', and for the others --create-fields or --ignore-unknown' : '';
		return `"${email}" holds e-mail addresses: ${map(email, 'email')}${rest}`;
	}
	const states = of('state').filter(({ column }) => column !== '');
	if (states.length > 0) {
		const maps = states.map(({ column }) => map(column, 'state')).slice(0, maxShown);
		return `${maps.join(' ')} reads ${maps.length > 1 ? 'them' : 'it'}; COLUMN=- leaves it out, COLUMN=FIELD keeps it as a field`;
	}
	return null;
}

/** First and last name, or the first alone, where nothing explains them: the command that takes them as the name. */
async function nameHint(
	cx: CommandContext,
	{ findings, table, file }: { findings: readonly HeaderFinding[]; table: Table; file: string | null },
	options: ImportOptions,
): Promise<Hint | null> {
	const { nameParts } = await import('../../../../tables/column-names.js');
	const parts = nameParts(table.header.map((name) => name.trim()));
	const isOpen = findings.some(({ code, column }) => code === 'unknown' && column === parts?.[0]);
	const pair = `${parts?.join('+')}=name`;
	if (parts === null || !isOpen || pair.length > longestName) return null;
	const others = '--create-fields or --ignore-unknown';
	if (file === null) return `--map ${shellWord(pair)} takes the name; for others ${others}`;
	const words = optionWords(importOptions, { ...options, map: [...options.map, pair] }, cx);
	const rest = parts.length === findings.length ? '' : `; for the others ${others}`;
	return [mailctl('subscribers', 'import', file, ...words), ' takes the name', rest];
}

function unknownHint(findings: readonly HeaderFinding[], fields: readonly Field[]): string {
	const known =
		fields.length === 0 ? 'there are no fields yet' : `fields: ${fields.map((f) => f.variable).join(', ')}`;
	const unknown = findings.find(({ code }) => code === 'unknown');
	if (unknown === undefined) return known;
	const pair = `${unknown.column}=${unknown.suggestions[0] ?? 'FIELD'}`;
	const isNamed = unknown.column !== '' && pair.length <= longestName;
	return `${isNamed ? `--map ${shellWord(pair)}, ` : ''}--create-fields or --ignore-unknown; ${known}`;
}

/** Before the first row; a field that cannot be made ends the import with the service's own words. */
export async function createFields(cx: CommandContext, { newFields }: Mapping): Promise<void> {
	const api = await cx.api();
	for (const field of newFields) {
		const { variable, name } = field;
		const isMade = await api.fields.create(field, { signal: cx.signal }).then(
			() => true,
			async (error: unknown) => {
				// Another import made it since the header was read, or an earlier try that was not answered.
				const isThere = (await readFields(cx)).some((one) => one.variable === variable);
				if (!(error instanceof ApiError) || !isThere) throw error;
				return error.unanswered;
			},
		);
		// Said how a message names it, where that is not how its column is called.
		const of = variable === name ? '' : `: ${shortNames([name]).join('')} → #${variable}#`;
		if (isMade && !cx.dryRun) await cx.note(`created the field ${variable}${of}`);
	}
}

/** The findings on the file, for a person before the work; a script gets only the columns left out. */
export async function sayColumns(
	cx: CommandContext,
	{ name, table, mapping }: { name: string; table: Table; mapping: Mapping },
): Promise<void> {
	// A dry run's document has them already.
	const isPlan = cx.dryRun && (cx.out.format === 'table' || cx.out.format === 'wide');
	if (cx.io.stderr.isTTY || isPlan) {
		await cx.note(`${name}: ${describeTable(table)}`);
		await cx.note(`columns: ${shortNames(columnTexts(table, mapping)).join(', ')}`);
	}
	if (mapping.ignored.length > 0) await cx.note(`left out: ${shortNames(mapping.ignored).join(', ')}`);
}

/** `CSV, windows-1251, delimiter ";"`. */
function describeTable({ format, encoding, delimiter }: Table): string {
	const shown = encoding === 'utf-8' ? 'UTF-8' : encoding;
	if (format === 'ndjson') return `NDJSON, ${shown}`;
	return `${delimiter === '\t' ? 'TSV' : 'CSV'}, ${shown}, delimiter ${JSON.stringify(delimiter)}`;
}

/** `Town → city`, or the name alone where both are the same. */
function columnTexts({ header }: Table, { columns, newFields }: Mapping): string[] {
	const fresh = new Set(newFields.map(({ variable }) => `meta.${variable}`));
	return columns.map(({ target, ...at }) => {
		const column = mappedName(header, at);
		const plain = target.replace(/^meta\./, '');
		if (column === target || column === plain) return fresh.has(target) ? `${plain} (new field)` : plain;
		return fresh.has(target) ? `${column} → #${plain}# (new field)` : `${column} → ${plain}`;
	});
}
