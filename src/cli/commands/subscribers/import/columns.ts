import { isEmailAddress } from '../../../../api/address.js';
import type { Field } from '../../../../api/records.js';
import { mappedName } from '../../../../tables/column-names.js';
import type { HeaderFinding, HeaderOptions, Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { Sampled, State } from '../../../../tables/states.js';
import type { CommandContext } from '../../../frame/context.js';
import { UsageError } from '../../../frame/errors.js';
import { isTable } from '../../../frame/globals.js';
import { shellWord } from '../../../frame/words.js';
import { counted } from '../../../render/units.js';
import { readFields } from '../../../verbs/field-names.js';
import { columnsRefused, longestName, shortNames } from '../../../verbs/importing.js';
import type { ImportOptions } from '../import.js';

export async function mapColumns(cx: CommandContext, table: Table, options: ImportOptions): Promise<Mapping> {
	const { mapHeader } = await import('../../../../tables/map-columns.js');
	const fields = await readFields(cx);
	const sampled = await sample(table);
	const mapped = mapHeader(table.header, { fields, sampled, ...(await headerOptions(options)) });
	if (mapped.kind === 'refused')
		throw columnsRefused(
			mapped.findings,
			hintOf(mapped.findings, holdingAddresses(table.header, sampled), fields),
		);
	if (options.stateWords.length > 0 && mapped.mapping.states === undefined)
		throw new UsageError('--state-words needs a column of states', { hint: 'add --map COLUMN=state' });
	return mapped.mapping;
}

/**
 * Throws `UsageError` for unknown words in state columns, before any write (docs/decisions/2026-11-21-imports.md).
 * Reads all of `file`; for standard input (null), only the first rows.
 */
export async function assertKnownStates(
	cx: CommandContext,
	table: Table,
	file: string | null,
	mapping: Mapping,
) {
	const { states = [] } = mapping;
	if (states.length === 0) return;
	const { plainWord, stateOf } = await import('../../../../tables/states.js');
	const { show } = await import('../../../../tables/map-columns.js');
	const { openTable } = await import('../../../../tables/read-table.js');
	const how = { encoding: table.encoding, delimiter: table.delimiter || 'auto', signal: cx.signal };
	const unknown = new Map<string, { cell: string; rows: number }>();
	for await (const row of file === null ? (await table.peek()).rows : (await openTable(file, how)).rows) {
		for (const column of row.kind === 'row' ? states : []) {
			const cell = (row.cells[column.index] ?? '').trim();
			if (stateOf(cell, column) !== 'unknown') continue;
			const word = plainWord(cell);
			unknown.set(word, { cell, rows: (unknown.get(word)?.rows ?? 0) + 1 });
		}
		if (unknown.size > 1_000) break;
	}
	if (unknown.size === 0) return;
	const found = [...unknown.values()].sort((one, other) => other.rows - one.rows);
	const pairs = found.slice(0, 3).map(({ cell }) => `${cell.slice(0, longestName)}=STATE`);
	const names = states.map(({ index }) => (table.header[index] ?? '').trim());
	throw new UsageError(`${shortNames(names).join(', ')}: some values are not subscriber states`, {
		details: shortNames(
			found.map(({ cell, rows }) => `${cell === '' ? '(blank)' : show(cell)}: ${counted(rows, 'row')}`),
		),
		hint: `--state-words ${shellWord(pairs.join(','))}, where STATE is active, unsubscribed, bounced, complained or unconfirmed`,
	});
}

type Findings = readonly HeaderFinding[];

function hintOf(findings: Findings, emails: readonly string[], fields: readonly Field[]): string {
	const first = (wanted: HeaderFinding['code']) =>
		findings.find(({ code, column }) => code === wanted && column.length <= longestName);
	const state = first('state')?.column;
	if (state !== undefined)
		return `--map ${shellWord(`${state}=state`)} reads the column as states; COLUMN=- leaves the column out, COLUMN=meta.FIELD with --create-fields makes it a field`;
	const unknown = first('unknown');
	const pair =
		first('no_email') !== undefined && emails.length === 1
			? `${emails[0]}=email`
			: `${unknown?.column || 'COLUMN'}=${unknown?.suggestions[0] ?? 'FIELD'}`;
	const known =
		fields.length === 0 ? 'there are no fields yet' : `fields: ${fields.map((f) => f.variable).join(', ')}`;
	return `add --map ${shellWord(pair)}, --create-fields or --ignore-unknown; ${known}`;
}

type HowToMap = Required<Pick<HeaderOptions, 'map' | 'unknown' | 'stateWords'>>;

export async function headerOptions(options: ImportOptions): Promise<HowToMap> {
	const unknown = options.createFields ? 'create' : options.ignoreUnknown ? 'ignore' : 'refuse';
	return { map: options.map, unknown, stateWords: await parseStateWords(options) };
}

/**
 * Parses `enabled=active,blocklisted=unsubscribed`. The option may be repeated. Words are normalized as in `stateOf`.
 */
async function parseStateWords(options: ImportOptions): Promise<Readonly<Record<string, State>>> {
	const { plainWord, states } = await import('../../../../tables/states.js');
	const read = (pair: string): [string, State] => {
		const [, word = '', name = ''] = /^(.*)=\s*(\w+)\s*$/s.exec(pair) ?? [];
		const state = states.find((one) => one === name.toLowerCase());
		if (state !== undefined) return [plainWord(word), state];
		throw new UsageError(`--state-words "${pair}" does not end in a state`, {
			hint: `WORD=STATE, where STATE is ${states.toReversed().join(', ')}`,
		});
	};
	return Object.fromEntries(options.stateWords.flatMap((text) => text.split(',')).map(read));
}

export async function sample(table: Table): Promise<Sampled> {
	const { rows, isWhole } = await table.peek();
	const cells = table.header.map((_, at) =>
		rows.flatMap((row) => (row.kind === 'row' ? (row.cells[at] ?? '').trim() || [] : [])),
	);
	return { cells, rows: rows.filter(({ kind }) => kind === 'row').length, isWhole };
}

/** Up to a tenth of the cells in an address column may contain other text, such as notes. */
export function holdingAddresses(header: readonly string[], { cells }: Sampled): readonly string[] {
	return header
		.map((name) => name.trim())
		.filter((name, at) => {
			const own = cells[at] ?? [];
			const isShort = name !== '' && name.length <= longestName;
			return isShort && own.length > 0 && own.filter(isEmailAddress).length >= own.length * 0.9;
		});
}

export async function createFields(cx: CommandContext, { newFields }: Mapping): Promise<void> {
	const api = await cx.api();
	for (const field of newFields) {
		await api.fields.create(field, { signal: cx.signal });
		const { variable, name } = field;
		const use = variable === name ? '' : `: ${shortNames([name]).join('')} → #${variable}#`;
		if (!cx.dryRun) await cx.note(`created the field ${variable}${use}`);
	}
}

export async function sayColumns(cx: CommandContext, name: string, table: Table, mapping: Mapping) {
	// A dry run also prints the columns if stderr is not a terminal. JSON contains the columns already.
	if (cx.io.stderr.isTTY || (cx.dryRun && isTable(cx.out.format))) {
		const { format, encoding, delimiter } = table;
		const shown = encoding === 'utf-8' ? 'UTF-8' : encoding;
		const kind = `${delimiter === '\t' ? 'TSV' : 'CSV'}, ${shown}, delimiter ${JSON.stringify(delimiter)}`;
		await cx.note(`${name}: ${format === 'ndjson' ? `NDJSON, ${shown}` : kind}`);
		await cx.note(`columns: ${shortNames(columnTexts(table, mapping)).join(', ')}`);
	}
	if (mapping.ignored.length > 0) await cx.note(`left out: ${shortNames(mapping.ignored).join(', ')}`);
}

function columnTexts({ header }: Table, { columns, newFields }: Mapping): string[] {
	return columns.map(({ target, ...at }) => {
		const column = mappedName(header, at);
		const plain = target.replace(/^meta\./, '');
		const isNew = newFields.some(({ variable }) => target === `meta.${variable}`);
		const text =
			column === target || column === plain ? plain : `${column} → ${isNew ? `#${plain}#` : plain}`;
		return isNew ? `${text} (new field)` : text;
	});
}
