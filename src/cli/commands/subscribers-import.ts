/** `subscribers import`: a table into a list, by session and batches; what is refused goes into a file of its own. */
import { emailKey, isEmailAddress } from '../../api/address.js';
import type { ImportSpec, Imports } from '../../api/capabilities.js';
import type { Field, List } from '../../api/records.js';
import type { ForeignImports } from '../../jobs/foreign/imports.js';
import type { ImportJob, ImportResult, ImportTotals, MaxErrors } from '../../jobs/imports.js';
import { command } from '../command.js';
import type { CommandContext } from '../context.js';
import { CliError, UsageError } from '../errors.js';
import { type ExitCode, exits } from '../exit.js';
import type { Mapping } from '../tabular/header.js';
import type { Table } from '../tabular/read-table.js';
import { walk } from '../walk.js';
import { inList, listOption } from './subscribers-common.js';
import { importsOf, sayForeign } from './subscribers-import-foreign.js';

interface Options {
	map: readonly string[];
	onConflict: ImportSpec['on_conflict'];
	createFields: boolean;
	ignoreUnknown: boolean;
	delimiter: string;
	encoding: string;
	reactivate: boolean;
	batchSize: number;
	concurrency: number;
	maxErrors: string | undefined;
	rejects: string | undefined;
	resume: boolean;
}

export const subscriberImport = command({
	name: 'import',
	summary: 'import subscribers from a CSV or TSV file',
	description:
		'The first line names the columns: email (required), name, is_active, disable_reason, and fields by variable or ' +
		'by name. An empty cell keeps what is there. Nobody inactive is made active without --reactivate. What cannot be ' +
		'imported goes into FILE.rejects.csv with its line and the reason, which imports again once it is mended.',
	args: [{ name: 'file', summary: 'the table; - reads standard input' }],
	options: {
		...listOption,
		map: { kind: 'list', placeholder: 'COLUMN=FIELD', summary: 'what a column is; COLUMN=- leaves it out' },
		onConflict: {
			kind: 'choice',
			choices: ['update', 'skip', 'error'],
			default: 'update',
			summary: 'when an address is in the list already',
		},
		createFields: { kind: 'flag', summary: 'make fields of unknown columns' },
		ignoreUnknown: { kind: 'flag', summary: 'leave unknown columns out' },
		delimiter: { kind: 'text', default: 'auto', summary: 'auto, tab, or one character' },
		encoding: { kind: 'text', default: 'auto', summary: 'auto, utf-8, utf-16le, windows-1251 …' },
		reactivate: {
			kind: 'flag',
			summary: 'who is in the file is active again, unless is_active says no; lifts unsubscriptions',
		},
		batchSize: { kind: 'integer', min: 1, max: 100_000, default: 5_000, summary: 'rows a batch' },
		concurrency: {
			kind: 'integer',
			min: 1,
			max: 16,
			default: 8,
			summary: 'requests at a time, on a service that takes rows one by one only',
		},
		maxErrors: { kind: 'text', placeholder: 'N|N%', summary: 'stop when more rows than this are rejected' },
		rejects: { kind: 'text', placeholder: 'FILE', summary: 'where rejected rows go' },
		resume: { kind: 'flag', summary: 'go on where an earlier run of the same file stopped' },
	},
	writes: true,
	output: '{"read", "created", "updated", "unchanged", "duplicate", "rejected"}',
	exits: [3, 9, 74],
	examples: [
		'mailctl subscribers import people.csv --list 12',
		"mailctl subscribers import people.csv --list 12 --map 'Town=city' --create-fields",
		'mailctl subscribers import - --list 12 --rejects bad.csv < people.csv',
	],
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		const maxErrors = options.maxErrors === undefined ? null : parseMaxErrors(options.maxErrors);
		const rejectsPath = pathOfRejects(args.file, options.rejects);
		assertOptions(args.file, options);
		const { list } = await inList(cx, options);
		const table = await open(cx, args.file, options);
		try {
			const mapping = await mapColumns(cx, table, options);
			if (cx.dryRun) return await plan(cx, table, mapping, list);
			const { openRejects } = await import('../tabular/rejects.js');
			const rejects = await openRejects({ path: rejectsPath, header: table.header, resume: options.resume });
			try {
				await createFields(cx, mapping);
				const spec = { list_id: list.id, on_conflict: options.onConflict, reactivate: options.reactivate };
				const key = await keyOf(cx, args.file, table, { spec, mapping });
				const { imports, foreign, batchRows } = await importsOf(cx, options);
				if (foreign === null && !options.resume) await forget(imports, key, spec);
				const result = await run(cx, {
					imports,
					rows: table.rows,
					mapping,
					spec,
					key,
					batchRows,
					...(maxErrors !== null && { maxErrors }),
					onReject: (rows) => rejects.write(rows),
					signal: cx.signal,
				});
				return await finish(cx, result, rejects.written > 0 ? rejects.path : null, { options, foreign });
			} finally {
				await rejects.close();
			}
		} finally {
			await table.close();
		}
	},
});

async function open(cx: CommandContext, file: string, { delimiter, encoding }: Options): Promise<Table> {
	const { openTable } = await import('../tabular/read-table.js');
	const source = file === '-' ? { name: 'standard input', stream: cx.sources.stdin('-') } : file;
	return openTable(source, { delimiter, encoding, signal: cx.signal });
}

async function mapColumns(cx: CommandContext, table: Table, options: Options): Promise<Mapping> {
	const { mapHeader } = await import('../tabular/header.js');
	const api = await cx.api();
	const fields: Field[] = [];
	for await (const field of walk(api.fields, {}, { signal: cx.signal })) fields.push(field);
	const unknown = options.createFields ? 'create' : options.ignoreUnknown ? 'ignore' : 'refuse';
	const mapped = mapHeader(table.header, { fields, map: options.map, unknown });
	if (mapped.kind === 'refused') {
		throw new UsageError('the columns cannot be used as they are', {
			details: mapped.findings.map(({ message }) => message),
			hint:
				fields.length === 0
					? '--create-fields makes fields of unknown columns'
					: `fields: ${fields.map(({ variable }) => variable).join(', ')}`,
		});
	}
	if (mapped.mapping.ignored.length > 0) await cx.note(`left out: ${mapped.mapping.ignored.join(', ')}`);
	return mapped.mapping;
}

async function createFields(cx: CommandContext, { newFields }: Mapping): Promise<void> {
	const api = await cx.api();
	for (const field of newFields) {
		await api.fields.create(field, { signal: cx.signal });
		await cx.note(`created the field ${field.variable}`);
	}
}

/** The fate of a row as far as its address decides it; the service looks at the rest. */
function rowKind(email: string, seen: Set<string>): 'importable' | 'duplicate' | 'rejected' {
	if (!isEmailAddress(email.trim())) return 'rejected';
	const key = emailKey(email.trim());
	if (seen.has(key)) return 'duplicate';
	seen.add(key);
	return 'importable';
}

/** What would be put, without asking the service about each row. */
async function plan(cx: CommandContext, table: Table, mapping: Mapping, list: List): Promise<undefined> {
	const { bundleRows } = await import('../../jobs/import-bundles.js');
	const counts = { read: 0, importable: 0, duplicate: 0, rejected: 0 };
	const at = mapping.columns.findIndex(({ target }) => target === 'email');
	const seen = new Set<string>();
	for await (const { rows, rejects } of bundleRows(table.rows, mapping, 5_000)) {
		counts.rejected += rejects.length;
		counts.read += rows.length + rejects.length;
		for (const { cells } of rows) counts[rowKind(cells[at] ?? '', seen)] += 1;
	}
	const columns = Object.fromEntries(
		mapping.columns.map(({ index, target }) => [table.header[index] ?? '', target]),
	);
	const what = `import ${counts.importable} of ${counts.read} rows into list ${list.id} "${list.name}" (${table.encoding}, delimiter ${JSON.stringify(table.delimiter)})`;
	await cx.wouldDo(what, { list_id: list.id, ...counts, columns, create_fields: mapping.newFields });
}

async function run(cx: CommandContext, job: ImportJob): Promise<ImportResult> {
	const { runImport } = await import('../../jobs/imports.js');
	const progress = cx.progress('importing', null);
	try {
		return await runImport({
			...job,
			onProgress: ({ read, rejected }) => progress.update(read, rejected === 0 ? '' : `${rejected} rejected`),
		});
	} finally {
		progress.stop();
	}
}

async function finish(
	cx: CommandContext,
	{ outcome, totals, resumedAt }: ImportResult,
	rejects: string | null,
	{ options, foreign }: { options: Options; foreign: ForeignImports | null },
): Promise<ExitCode | undefined> {
	if (foreign !== null) await sayForeign(cx, foreign, options);
	else if (options.resume && resumedAt === 0)
		await cx.note('there was nothing to resume: imported from the beginning');
	await cx.out.document(documentOf(totals), sentenceOf(totals));
	if (rejects !== null) await cx.hint(`rejected rows are in ${rejects}; mend them and import that file`);
	if (outcome === 'interrupted') {
		await cx.hint('what was acknowledged stays; run the same command with --resume to go on');
		throw cx.signal.reason;
	}
	if (outcome === 'too_many_errors') {
		throw new CliError(
			'too_many_errors',
			exits.partly,
			`stopped: ${totals.rejected} of ${totals.read} rows were rejected`,
			{
				hint: 'what was acknowledged stays; mend the file, or raise --max-errors',
			},
		);
	}
	return totals.rejected === 0 ? exits.done : exits.partly;
}

function documentOf({ read, created, updated, unchanged, duplicate, rejected }: ImportTotals) {
	return { read, created, updated, unchanged, duplicate, rejected };
}

function sentenceOf(totals: ImportTotals): string {
	const parts = Object.entries(documentOf(totals)).map(
		([name, count]) => `${name} ${count.toLocaleString('en-US')}`,
	);
	const [read, ...rest] = parts;
	return `${read} = ${rest.join(' + ')}`;
}

/** An unfinished session of the same file is closed, so that this run starts at the first row. */
async function forget(imports: Imports, key: string, spec: ImportSpec): Promise<void> {
	const session = await imports.open(key, spec);
	if (session.position > 0) await imports.finish(session.id);
}

/** The same list, file, mapping and options are the same job. */
async function keyOf(
	cx: CommandContext,
	file: string,
	table: Table,
	job: Pick<ImportJob, 'spec' | 'mapping'>,
): Promise<string> {
	const [{ importKey }, { sourceHash }] = await Promise.all([
		import('../../jobs/import-key.js'),
		import('../tabular/source.js'),
	]);
	// Standard input has no second time: each run is a job of its own.
	const source =
		file === '-' ? { job: `stdin ${cx.clock.now()}` } : { sha256: await sourceHash(file, cx.signal) };
	return importKey({ ...job, source, encoding: table.encoding, delimiter: table.delimiter });
}

function assertOptions(file: string, { resume, createFields, ignoreUnknown }: Options): void {
	if (createFields && ignoreUnknown)
		throw new UsageError('--create-fields and --ignore-unknown cannot both be meant');
	if (resume && file === '-')
		throw new UsageError('--resume wants a file: standard input is not the same twice', {
			hint: 'importing it again is safe: what is there already is found unchanged',
		});
}

function pathOfRejects(file: string, rejects: string | undefined): string {
	if (rejects !== undefined) return rejects;
	if (file === '-') throw new UsageError('an import from standard input needs --rejects FILE');
	return `${file}.rejects.csv`;
}

function parseMaxErrors(text: string): MaxErrors {
	const [, number, percent] = /^(\d{1,9})(%)?$/.exec(text) ?? [];
	if (number === undefined || (percent !== undefined && Number(number) > 100)) {
		throw new UsageError(`--max-errors "${text}" is neither a number of rows nor a share such as 5%`);
	}
	return percent === undefined ? { rows: Number(number) } : { percent: Number(number) };
}
