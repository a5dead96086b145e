/** `subscribers import`: a table into a list, by session and batches; what is refused goes into a file of its own. */
import type { ImportSpec, Imports } from '../../api/capabilities.js';
import type { List } from '../../api/records.js';
import type { ForeignImports } from '../../jobs/foreign/imports.js';
import type { ImportJob, ImportResult, ImportTotals } from '../../jobs/imports.js';
import { command } from '../command.js';
import type { CommandContext } from '../context.js';
import type { ExitCode } from '../exit.js';
import type { Mapping } from '../tabular/header.js';
import type { Table } from '../tabular/read-table.js';
import type { RejectsFile } from '../tabular/rejects.js';
import { inList } from './subscribers-common.js';
import { createFields, mapColumns, sayColumns } from './subscribers-import-columns.js';
import { endImport, sayBrokenOff } from './subscribers-import-end.js';
import { importsOf, sayForeign } from './subscribers-import-foreign.js';
import type { MarkFile } from './subscribers-import-mark.js';
import {
	assertOptions,
	type ImportOptions,
	importOptions,
	parseMaxErrors,
	parseRate,
	pathOfRejects,
} from './subscribers-import-options.js';

export const subscriberImport = command({
	name: 'import',
	summary: 'import subscribers from a CSV, TSV or NDJSON file',
	description:
		'The first line (or the keys of the objects) names the columns: email (required), name, is_active, ' +
		'disable_reason, and fields by variable or by name. An empty cell keeps what is there. Nobody inactive is made ' +
		'active without --reactivate. What cannot be imported goes into FILE.rejects.csv with its line and the reason, ' +
		'which imports again once it is mended. --dry-run says what would become of each row.',
	args: [{ name: 'file', summary: 'the table; - reads standard input' }],
	options: importOptions,
	writes: true,
	output: '{"read", "created", "updated", "unchanged", "duplicate", "rejected"}',
	exits: [3, 9, 74],
	examples: [
		'mailctl subscribers import people.csv --list 12',
		'mailctl subscribers import people.csv --list 12 --dry-run',
		"mailctl subscribers import people.csv --list 12 --map 'Town=city' --create-fields",
		'mailctl subscribers import - --list 12 --rejects bad.csv < people.csv',
	],
	run: async (cx, { args: { file }, options }): Promise<ExitCode | undefined> => {
		assertOptions(file, options);
		const limits = {
			maxErrors: options.maxErrors === undefined ? null : parseMaxErrors(options.maxErrors),
			rate: options.rate === undefined ? null : parseRate(options.rate),
		};
		const rejectsPath = pathOfRejects(file, options.rejects);
		const { list } = await inList(cx, options);
		const table = await open(cx, file, options);
		try {
			const mapping = await mapColumns(cx, table, options);
			await sayColumns(cx, { name: file === '-' ? 'standard input' : file, table, mapping });
			const spec = { list_id: list.id, on_conflict: options.onConflict, reactivate: options.reactivate };
			const job = { file, list, table, mapping, spec, options, limits };
			if (cx.dryRun) return await plan(cx, job);
			const { openRejects } = await import('../tabular/rejects.js');
			const rejects = await openRejects({ path: rejectsPath, header: table.header, resume: options.resume });
			return await work(cx, job, rejects).finally(() => rejects.close());
		} finally {
			await table.close();
		}
	},
});

interface Job {
	/** As given; `-` is standard input. */
	file: string;
	list: List;
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
	limits: { maxErrors: ReturnType<typeof parseMaxErrors> | null; rate: number | null };
}

async function open(
	cx: CommandContext,
	file: string,
	{ delimiter, encoding }: ImportOptions,
): Promise<Table> {
	const { openTable } = await import('../tabular/read-table.js');
	const source = file === '-' ? { name: 'standard input', stream: cx.sources.stdin('-') } : file;
	return openTable(source, { delimiter, encoding, signal: cx.signal });
}

async function plan(cx: CommandContext, { file, options, ...job }: Job): Promise<undefined> {
	const { planImport } = await import('./subscribers-import-plan.js');
	const { concurrency } = options;
	await planImport(cx, { ...job, concurrency, file: file === '-' ? 'standard input' : file });
}

async function work(cx: CommandContext, job: Job, rejects: RejectsFile): Promise<ExitCode | undefined> {
	const { list, table, mapping, spec, options, limits } = job;
	const { key, rows, mark } = await identify(cx, job);
	await createFields(cx, mapping);
	const isRepeatable = job.file !== '-' || options.job !== undefined;
	const place = await importsOf(cx, { ...options, rate: limits.rate, isRepeatable });
	const { imports, foreign, batchRows } = place;
	if (foreign === null && !options.resume) await forget(imports, key, spec);
	// Elsewhere than on our own deployments it is rows that are paced, not batches.
	const paced =
		limits.rate === null || foreign !== null
			? { imports, batchRows }
			: await pace(cx, imports, batchRows, limits.rate);
	const result = await run(
		cx,
		{ list, rows, foreign },
		{
			...paced,
			rows: table.rows,
			...(foreign === null && (await readElsewhere(cx, job))),
			mapping,
			spec,
			key,
			...(limits.maxErrors !== null && { maxErrors: limits.maxErrors }),
			onReject: (refused) => rejects.write(refused),
			signal: cx.signal,
		},
	);
	if (result.outcome === 'done') await mark?.remove();
	if (foreign !== null) await sayForeign(cx, foreign);
	await foreign?.close();
	if (options.resume && result.resumedAt === 0)
		await cx.note('there was nothing to resume: imported from the beginning');
	return endImport(cx, result, rejects.written > 0 ? rejects.path : null);
}

/** A large file is read and checked in another thread, for whoever takes it in batches. */
async function readElsewhere(
	cx: CommandContext,
	{ file, options }: Job,
): Promise<Pick<ImportJob, 'readBundles'>> {
	if (file === '-') return {};
	const { bundlesOf } = await import('../connect/bundles.js');
	const readBundles = await bundlesOf(file, options, cx.signal);
	return readBundles === null ? {} : { readBundles };
}

interface Identity {
	/** The same list, content, mapping and options are the same job. */
	key: string;
	/** About as many as the file has; null where nobody knows. */
	rows: number | null;
	mark: MarkFile | null;
}

/** With `--resume` a file that is not the one of the run that stopped is refused here, before anything is written. */
async function identify(
	cx: CommandContext,
	{ file, list, table, mapping, spec, options }: Job,
): Promise<Identity> {
	const { importKey } = await import('../../jobs/import-key.js');
	const { encoding, delimiter } = table;
	const keyOf = (source: { job: string } | { sha256: string }) =>
		importKey({ spec, mapping, source, encoding, delimiter });
	// Without a name standard input has no second time: each run is a job of its own.
	if (file === '-')
		return { key: keyOf({ job: options.job ?? `stdin ${cx.clock.now()}` }), rows: null, mark: null };
	const [{ surveySource }, { openMark }] = await Promise.all([
		import('../tabular/source.js'),
		import('./subscribers-import-mark.js'),
	]);
	const { sha256, lineFeeds } = await surveySource(file, cx.signal);
	const key = keyOf({ sha256 });
	const mark = await openMark(cx, file, list.id);
	if (options.resume) await mark.assertSame({ sha256, key });
	await mark.write({ sha256, key });
	const headers = table.format === 'csv' ? 1 : 0;
	return { key, rows: lineFeeds > 1 ? lineFeeds - headers : null, mark };
}

/** An unfinished session of the same job is closed, so that this run starts at the first row. */
async function forget(imports: Imports, key: string, spec: ImportSpec): Promise<void> {
	const session = await imports.open(key, spec);
	if (session.position > 0) await imports.finish(session.id);
}

async function pace(cx: CommandContext, imports: Imports, batchRows: number, rowsPerSecond: number) {
	const { batchRowsAt, pacedImports } = await import('./subscribers-import-pace.js');
	const elapsedMs = () => performance.now();
	return {
		imports: pacedImports(imports, { rowsPerSecond, signal: cx.signal, elapsedMs }),
		batchRows: batchRowsAt(rowsPerSecond, batchRows),
	};
}

async function run(
	cx: CommandContext,
	{ list, rows, foreign }: { list: List; rows: number | null; foreign: ForeignImports | null },
	job: ImportJob,
): Promise<ImportResult> {
	const { runImport } = await import('../../jobs/imports.js');
	const progress = cx.progress('importing', rows);
	let last: ImportTotals | null = null;
	const onProgress = (totals: ImportTotals) => {
		last = totals;
		progress.update(totals.read, totals.rejected === 0 ? '' : `${totals.rejected} rejected`);
	};
	foreign?.onPause((ms) =>
		progress.update(last?.read ?? 0, `waiting ${Math.ceil(ms / 1000)} s, as the service asks`),
	);
	try {
		return await runImport({ ...job, onProgress }).finally(() => progress.stop());
	} catch (error) {
		await sayBrokenOff(cx, error, { list, totals: last });
		await foreign?.close();
		throw error;
	}
}
