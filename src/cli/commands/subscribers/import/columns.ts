/** The columns of an import: their targets, the fields made for them, and their display. */
import type { Api } from '../../../../api/api.js';
import { ApiError } from '../../../../api/errors.js';
import type { FieldInput } from '../../../../api/inputs.js';
import type { Field } from '../../../../api/records.js';
import type { HeaderFinding } from '../../../../tables/header-findings.js';
import { mappedName } from '../../../../tables/joined-columns.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import { shellWord } from '../../../frame/command-line.js';
import type { CommandContext } from '../../../frame/context.js';
import { UsageError } from '../../../frame/errors.js';
import { longestName, shortNames } from '../../../verbs/importing.js';
import { walk } from '../../../verbs/listing.js';
import type { ImportOptions } from './options.js';

/** More findings than this are one mistake (a wrong delimiter), and would push the first ones off the screen. */
const maxShown = 10;

/** The mapping, or `UsageError` with everything that is wrong with the header. `file`: null of what is read once. */
export async function mapColumns(
	cx: CommandContext,
	{ table, file }: { table: Table; file: string | null },
	options: ImportOptions,
): Promise<Mapping> {
	const { mapHeader } = await import('../../../../tables/map-columns.js');
	const api = await cx.api();
	const fields: Field[] = [];
	for await (const field of walk(api.fields, {}, { signal: cx.signal })) fields.push(field);
	const unknown = options.createFields ? 'create' : options.ignoreUnknown ? 'ignore' : 'refuse';
	const mapped = mapHeader(table.header, { fields, map: options.map, unknown });
	if (mapped.kind === 'mapped') return mapped.mapping;
	const { findings } = mapped;
	const emails = file === null ? [] : await emailColumns(cx, { file, findings }, options);
	throw await refused(findings, { fields, header: table.header, emails });
}

/** Where none is called so: those whose cells are addresses. */
async function emailColumns(
	cx: CommandContext,
	{ file, findings }: { file: string; findings: readonly HeaderFinding[] },
	options: ImportOptions,
): Promise<readonly string[]> {
	if (!findings.some(({ code }) => code === 'no_email')) return [];
	const { holdingAddresses, sample } = await import('./guide.js');
	return holdingAddresses(await sample(cx, file, options));
}

/** The position of the addresses. */
export function emailAt({ columns }: Mapping): number {
	return columns.find(({ target }) => target === 'email')?.index ?? 0;
}

async function refused(
	findings: readonly HeaderFinding[],
	{
		fields,
		header,
		emails,
	}: { fields: readonly Field[]; header: readonly string[]; emails: readonly string[] },
): Promise<UsageError> {
	// Unknown columns are ignored by an option, what else is wrong is not.
	const ordered = findings.toSorted((one, other) => rankOf(one) - rankOf(other));
	// A duplicate unknown name has two findings.
	const details = [...new Set(ordered.map(detail))];
	const more = details.length - maxShown;
	// No other finding on such a line would help.
	const headless = findings.find(({ code }) => code === 'no_header');
	if (headless !== undefined)
		return new UsageError(headless.message, {
			hint: 'put a line above it that names the columns, such as email,name',
		});
	return new UsageError('the columns cannot be used as they are', {
		details: more > 0 ? [...details.slice(0, maxShown), `and ${more} more`] : details,
		hint: hintFor(findings, fields, { joined: await joinedName(findings, header), emails }),
	});
}

function rankOf({ code }: HeaderFinding): number {
	return code === 'unknown' ? 1 : 0;
}

function detail({ message, suggestions }: HeaderFinding): string {
	const near = [...new Set(suggestions)];
	return near.length === 0 ? message : `${message} (did you mean ${near.join(' or ')}?)`;
}

/** `First+Last=name` where these are among the columns that nothing explains. */
async function joinedName(
	findings: readonly HeaderFinding[],
	header: readonly string[],
): Promise<string | null> {
	const { nameParts } = await import('../../../../tables/column-names.js');
	const parts = nameParts(header.map((name) => name.trim()));
	const isOpen = findings.some(({ code, column }) => code === 'unknown' && column === parts?.[0]);
	return parts === null || !isOpen ? null : `${parts.join('+')}=name`;
}

function hintFor(
	findings: readonly HeaderFinding[],
	fields: readonly Field[],
	{ joined, emails }: { joined: string | null; emails: readonly string[] },
): string {
	const [email] = emails;
	if (email !== undefined && emails.length === 1 && email.length <= longestName) {
		const others = findings.some(({ code, column }) => code === 'unknown' && column !== email);
		const rest = others ? ', and for the others --create-fields or --ignore-unknown' : '';
		return `"${email}" holds e-mail addresses: --map ${shellWord(`${email}=email`)}${rest}`;
	}
	const second = findings.find(({ code }) => code === 'two_emails');
	if (second !== undefined && second.column.length <= longestName)
		return `--map ${shellWord(`${second.column}=-`)} or --ignore-unknown leaves it out; --map ${shellWord(`${second.column}=email`)} takes it, with the other one as --map COLUMN=-`;
	const unknown = findings.find(({ code }) => code === 'unknown');
	const known =
		fields.length === 0 ? 'there are no fields yet' : `fields: ${fields.map((f) => f.variable).join(', ')}`;
	if (unknown === undefined) return known;
	const pair = joined ?? `${unknown.column}=${unknown.suggestions[0] ?? 'FIELD'}`;
	// A name too long to be read is no part of a command.
	const isNamed = unknown.column !== '' && pair.length <= longestName;
	const map = isNamed ? `--map ${shellWord(pair)}, ` : '';
	return `${map}--create-fields or --ignore-unknown; ${known}`;
}

/** Before the first row; a field that cannot be made ends the import with the service's own words. */
export async function createFields(cx: CommandContext, { newFields }: Mapping): Promise<void> {
	const api = await cx.api();
	for (const field of newFields) {
		const isMade = await createUnlessThere(api, field, cx.signal);
		if (isMade && !cx.dryRun) await cx.note(`created the field ${field.variable}${ofColumn(field)}`);
	}
}

/** How a message names it, where that is not how its column is called. */
function ofColumn({ variable, name }: FieldInput): string {
	return variable === name ? '' : `: ${shortNames([name]).join('')} → #${variable}#`;
}

/** False: another import made it since the header was read, or an earlier try that was not answered. */
async function createUnlessThere(api: Api, field: FieldInput, signal: AbortSignal): Promise<boolean> {
	try {
		await api.fields.create(field, { signal });
		return true;
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		for await (const { variable } of walk(api.fields, {}, { signal }))
			if (variable === field.variable) return error.unanswered;
		throw error;
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
export function describeTable({ format, encoding, delimiter }: Table): string {
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
