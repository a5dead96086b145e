/** `subscribers export`: a list as a file that imports again, or on standard output. */
import { basename, extname } from 'node:path';
import type { List, Subscriber, SubscriberFilter } from '../../../api/records.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { counted } from '../../render/counted.js';
import { parseFields, unknownField } from '../../render/fields.js';
import type { OutputFile } from '../../tabular/output-file.js';
import type { PeopleColumn } from '../../tabular/write-people.js';
import { walk } from '../../walk.js';
import { parseWhere } from '../../where.js';
import { inList, listOption } from './lookup.js';
import { walkSubscribers } from './walk.js';

const fileFormats = ['csv', 'ndjson', 'json'] as const;
type FileFormat = (typeof fileFormats)[number];

interface Options {
	format: FileFormat | undefined;
	emailContains: string | undefined;
	active: boolean | undefined;
	where: readonly string[];
	safeCsv: boolean;
	force: boolean;
}

export const subscriberExport = command({
	name: 'export',
	summary: 'write subscribers to a file, or to standard output',
	description:
		'The file imports again to the same people: email, name, is_active, disable_reason, the fields, and a column meta ' +
		'for what no cell can say, such as numbers. It is written as .FILE.….part and put into place when it is whole ' +
		'(what a kill leaves so, a later export to that name removes after an hour); an existing file is replaced with ' +
		'--force only. --fields names other columns (id, source, date_created …). With --safe-csv, cells that a ' +
		'spreadsheet would take for formulas begin with an apostrophe: that file is for spreadsheets, not for importing. ' +
		'People who come or go meanwhile may or may not be in it.',
	args: [{ name: 'file', summary: 'where to; - or nothing is standard output', optional: true }],
	options: {
		...listOption,
		format: {
			kind: 'choice',
			choices: fileFormats,
			summary: 'by default what the name of the file says, or csv',
		},
		emailContains: { kind: 'text', summary: 'only addresses that contain this' },
		active: { kind: 'tri', off: 'inactive', summary: 'only active ones, or only inactive ones' },
		where: { kind: 'list', placeholder: 'meta.KEY=VALUE', summary: 'only those whose meta has this value' },
		safeCsv: { kind: 'flag', summary: 'no cell is a formula; for spreadsheets, not for importing' },
		force: { kind: 'flag', summary: 'replace the file if it is there' },
	},
	output: 'with a file: {"list_id", "file", "format", "exported"}; else the subscribers themselves',
	exits: [3, 74],
	examples: [
		'mailctl subscribers export readers.csv --list 12',
		'mailctl subscribers export readers.ndjson --list 12 --active',
		'mailctl subscribers export --list 12 --format csv --fields email,city',
	],
	run: async (cx, { args, options }): Promise<ExitCode> => {
		const path = args.file === undefined || args.file === '-' ? null : args.file;
		const format = formatOf(cx, path, options);
		const { list } = await inList(cx, options);
		const columns = await columnsOf(cx);
		const filter: SubscriberFilter = {
			...(options.emailContains !== undefined && { email__icontains: options.emailContains }),
			...(options.active !== undefined && { is_active: options.active }),
		};
		const people = { list, filter, matches: parseWhere(options.where) };
		const texts = textsOf(cx, people, { format, columns, isGuarded: options.safeCsv });
		const exported =
			path === null
				? await toOutput(cx, texts)
				: await toFile(path, texts, options.force ? 'replace' : 'refuse');
		if (path === null) await cx.note(`exported ${counted(exported, 'subscriber')}`);
		else {
			const document = { list_id: list.id, file: path, format, exported };
			await cx.out.document(document, `exported ${counted(exported, 'subscriber')} to ${path}`);
		}
		return exported === 0 && cx.globals.exitEmpty === true ? exits.empty : exits.done;
	},
});

function formatOf(cx: CommandContext, path: string | null, { format, safeCsv }: Options): FileFormat {
	const chosen = format ?? (path === null ? cx.out.format : extensions.get(extname(path).toLowerCase()));
	if (chosen === undefined && path !== null && isNoTable(path)) {
		throw new UsageError(
			`${basename(path)} would be no ${extname(path).slice(1)} file: csv, ndjson and json are written`,
			{
				hint: 'name it so, such as people.csv, or say --format csv',
			},
		);
	}
	const found = fileFormats.find((one) => one === chosen) ?? 'csv';
	if (safeCsv && found !== 'csv') throw new UsageError(`--safe-csv goes with csv, not with ${found}`);
	return found;
}

const extensions: ReadonlyMap<string, FileFormat> = new Map([
	['.csv', 'csv'],
	['.ndjson', 'ndjson'],
	['.jsonl', 'ndjson'],
	['.json', 'json'],
]);

/** A name that says spreadsheet or archive: the programs it is for would refuse the text in it. */
function isNoTable(path: string): boolean {
	return /\.(?:xlsx?|xlsm|xlsb|ods|numbers|gz|zip|bz2|xz|zst|7z|rar|tar|tgz|parquet)$/i.test(path);
}

/** Those that `--fields` names, or all that an import needs. */
async function columnsOf(cx: CommandContext): Promise<readonly PeopleColumn[]> {
	const { allColumns, usualColumns } = await import('../../tabular/write-people.js');
	const api = await cx.api();
	const variables: string[] = [];
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) variables.push(variable);
	const named = parseFields(cx.globals.fields);
	if (named === null) return usualColumns(variables);
	const all = allColumns(variables);
	return named.map((name) => {
		const isField = (one: PeopleColumn) => one.kind === 'field' && name === `meta.${one.variable}`;
		const found = all.find((one) => one.name === name) ?? all.find(isField);
		if (found !== undefined) return found;
		throw unknownField(
			name,
			all.map((one) => one.name),
		);
	});
}

interface People {
	list: List;
	filter: SubscriberFilter;
	matches: ((person: Subscriber) => boolean) | null;
}

interface Layout {
	format: FileFormat;
	columns: readonly PeopleColumn[];
	isGuarded: boolean;
}

/** A piece of the file, and how many people are in it. */
interface Text {
	text: string;
	count: number;
}

async function* textsOf(cx: CommandContext, people: People, layout: Layout): AsyncGenerator<Text> {
	const { csvFormat, formatHeader, guardFormula, jsonFormat } = await import('../../tabular/write-people.js');
	const { list, filter, matches } = people;
	const { format, columns } = layout;
	const guard = layout.isGuarded ? guardFormula : undefined;
	const formatRow = format === 'csv' ? csvFormat(columns, guard) : jsonFormat(columns);
	const progress = cx.progress('exporting', matches === null ? expected(list, filter) : null);
	let exported = 0;
	try {
		if (format === 'csv') yield { text: formatHeader(columns), count: 0 };
		for await (const piece of walkSubscribers(cx, list, filter)) {
			const rows = matches === null ? piece : piece.filter(matches);
			const lines = rows.map(formatRow);
			const text =
				format === 'csv' ? lines.join('') : jsonLines(lines, format, exported === 0 ? 'first' : 'later');
			yield { text, count: rows.length };
			exported += rows.length;
			progress.update(exported);
		}
		if (format === 'json') yield { text: exported === 0 ? '[]\n' : '\n]\n', count: 0 };
	} finally {
		progress.stop();
	}
}

function jsonLines(rows: readonly string[], format: 'ndjson' | 'json', place: 'first' | 'later'): string {
	if (rows.length === 0) return '';
	if (format === 'ndjson') return `${rows.join('\n')}\n`;
	return `${place === 'first' ? '[\n' : ',\n'}${rows.join(',\n')}`;
}

/** What the list's counters say; null where they do not know. */
function expected(list: List, { email__icontains, is_active }: SubscriberFilter): number | null {
	if (email__icontains !== undefined) return null;
	if (is_active === undefined) return list.overall_subscribers_count;
	return is_active ? list.active_subscribers_count : list.inactive_subscribers_count;
}

async function toOutput(cx: CommandContext, texts: AsyncIterable<Text>): Promise<number> {
	let exported = 0;
	for await (const { text, count } of texts) {
		if (text !== '') await cx.out.raw(text);
		exported += count;
	}
	return exported;
}

async function toFile(
	path: string,
	texts: AsyncIterable<Text>,
	whenThere: 'refuse' | 'replace',
): Promise<number> {
	const { createOutputFile } = await import('../../tabular/output-file.js');
	const file: OutputFile = await createOutputFile(path, whenThere);
	try {
		let exported = 0;
		for await (const { text, count } of texts) {
			await file.write(text);
			exported += count;
		}
		await file.finish();
		return exported;
	} finally {
		await file.discard();
	}
}
