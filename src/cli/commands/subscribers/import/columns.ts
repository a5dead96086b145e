/** The columns of an import: what they become, the fields that are made for them, and how a person is told. */
import type { Field } from '../../../../api/records.js';
import type { CommandContext } from '../../../context.js';
import { UsageError } from '../../../errors.js';
import type { HeaderFinding, Mapping } from '../../../tabular/header.js';
import type { Table } from '../../../tabular/read-table.js';
import { walk } from '../../../walk.js';
import type { ImportOptions } from './options.js';

/** More findings than this are one mistake (a wrong delimiter), and would push the first ones off the screen. */
const maxShown = 10;

/** The mapping, or `UsageError` with everything that is wrong with the header. */
export async function mapColumns(
	cx: CommandContext,
	table: Table,
	options: Pick<ImportOptions, 'map' | 'createFields' | 'ignoreUnknown'>,
): Promise<Mapping> {
	const { mapHeader } = await import('../../../tabular/header.js');
	const api = await cx.api();
	const fields: Field[] = [];
	for await (const field of walk(api.fields, {}, { signal: cx.signal })) fields.push(field);
	const unknown = options.createFields ? 'create' : options.ignoreUnknown ? 'ignore' : 'refuse';
	const mapped = mapHeader(table.header, { fields, map: options.map, unknown });
	if (mapped.kind === 'refused') throw refused(mapped.findings, fields);
	return mapped.mapping;
}

function refused(findings: readonly HeaderFinding[], fields: readonly Field[]): UsageError {
	// A name that is there twice is unknown twice.
	const details = [...new Set(findings.map(detail))];
	const more = details.length - maxShown;
	// Nothing else that is said of such a line would help.
	const headless = findings.find(({ code }) => code === 'no_header');
	if (headless !== undefined)
		return new UsageError(headless.message, {
			hint: 'put a line above it that names the columns, such as email,name',
		});
	return new UsageError('the columns cannot be used as they are', {
		details: more > 0 ? [...details.slice(0, maxShown), `and ${more} more`] : details,
		hint: hintFor(findings, fields),
	});
}

function detail({ message, suggestions }: HeaderFinding): string {
	const near = [...new Set(suggestions)];
	return near.length === 0 ? message : `${message} (did you mean ${near.join(' or ')}?)`;
}

function hintFor(findings: readonly HeaderFinding[], fields: readonly Field[]): string {
	const unknown = findings.find(({ code }) => code === 'unknown');
	const known =
		fields.length === 0 ? 'there are no fields yet' : `fields: ${fields.map((f) => f.variable).join(', ')}`;
	if (unknown === undefined) return known;
	const pair = `${unknown.column}=${unknown.suggestions[0] ?? 'FIELD'}`;
	const map = unknown.column === '' ? '' : `--map ${quote(pair)}, `;
	return `${map}--create-fields or --ignore-unknown; ${known}`;
}

function quote(text: string): string {
	return /^[\w.=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Before the first row; a field that cannot be made ends the import with the service's own words. */
export async function createFields(cx: CommandContext, { newFields }: Mapping): Promise<void> {
	const api = await cx.api();
	for (const field of newFields) {
		await api.fields.create(field, { signal: cx.signal });
		await cx.note(`created the field ${field.variable}`);
	}
}

/** What the file was found to be, for a person before the work; a script hears only what is left out. */
export async function sayColumns(
	cx: CommandContext,
	{ name, table, mapping }: { name: string; table: Table; mapping: Mapping },
): Promise<void> {
	// A dry run's document has them already.
	const isPlan = cx.dryRun && (cx.out.format === 'table' || cx.out.format === 'wide');
	if (cx.io.stderr.isTTY || isPlan) {
		await cx.note(`${name}: ${describeTable(table)}`);
		await cx.note(`columns: ${shorten(columnTexts(table, mapping)).join(', ')}`);
	}
	if (mapping.ignored.length > 0) await cx.note(`left out: ${shorten(mapping.ignored).join(', ')}`);
}

/** `CSV, windows-1251, delimiter ";"`. */
export function describeTable({ format, encoding, delimiter }: Table): string {
	const shown = encoding === 'utf-8' ? 'UTF-8' : encoding;
	if (format === 'ndjson') return `NDJSON, ${shown}`;
	return `${delimiter === '\t' ? 'TSV' : 'CSV'}, ${shown}, delimiter ${JSON.stringify(delimiter)}`;
}

/** `Town → city`, or the name alone where nothing is said by that. */
function columnTexts({ header }: Table, { columns, newFields }: Mapping): string[] {
	const fresh = new Set(newFields.map(({ variable }) => `meta.${variable}`));
	return columns.map(({ index, target }) => {
		const column = (header[index] ?? '').trim();
		const plain = target.replace(/^meta\./, '');
		const arrow = column === target || column === plain ? plain : `${column} → ${plain}`;
		return fresh.has(target) ? `${arrow} (new field)` : arrow;
	});
}

function shorten(texts: readonly string[]): readonly string[] {
	const cut = texts.map((text) => (text.length > 80 ? `${text.slice(0, 80)}…` : text));
	const more = cut.length - maxShown;
	return more > 0 ? [...cut.slice(0, maxShown), `and ${more} more`] : cut;
}
