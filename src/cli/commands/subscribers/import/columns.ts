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
import { shellWord } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { UsageError } from '../../../frame/errors.js';
import { counted } from '../../../render/units.js';
import { longestName, shortNames } from '../../../verbs/importing.js';
import { walk } from '../../../verbs/listing.js';
import { type ImportOptions, parseStateWords } from './options.js';

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
	if (headless !== undefined) throw new UsageError(headless.message);
	// Unknown columns are ignored by an option, what else is wrong is not. A duplicate unknown name has two findings.
	const ordered = findings.toSorted((one, other) => rankOf(one) - rankOf(other));
	const details = [...new Set(ordered.map(detail))];
	const more = details.length - maxShown;
	throw new UsageError('the columns cannot be used as they are', {
		details: more > 0 ? [...details.slice(0, maxShown), `and ${more} more`] : details,
		hint: hintOf(findings, holdingAddresses(table.header, sampled), fields),
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

/** The way out: of a column that says who may get mail, of the one that holds the addresses, or of any other. */
function hintOf(
	findings: readonly HeaderFinding[],
	emails: readonly string[],
	fields: readonly Field[],
): string {
	const isShort = (column: string) => column !== '' && column.length <= longestName;
	const state = findings.find(({ code, column }) => code === 'state' && isShort(column));
	if (state !== undefined)
		return `--map ${shellWord(`${state.column}=state`)} reads it; COLUMN=- leaves it out, COLUMN=FIELD keeps it as a field`;
	const [email = ''] = emails.length === 1 ? emails.filter(isShort) : [];
	const lacksEmail = email !== '' && findings.some(({ code }) => code === 'no_email');
	const unknown = findings.find(({ code, column }) => code === 'unknown' && isShort(column));
	const pair = lacksEmail
		? `${email}=email`
		: `${unknown?.column ?? 'COLUMN'}=${unknown?.suggestions[0] ?? 'FIELD'}`;
	const known =
		fields.length === 0 ? 'there are no fields yet' : `fields: ${fields.map((f) => f.variable).join(', ')}`;
	return `--map ${shellWord(pair)}, --create-fields or --ignore-unknown; ${known}`;
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
