/** `subscribers import`: a table into a list, by session and batches; what is refused goes into a file of its own. */
import { resolve } from 'node:path';
import type { ImportSpec, Imports } from '../../../api/capabilities.js';
import type { List } from '../../../api/records.js';
import type { ForeignImports } from '../../../jobs/foreign/imports.js';
import type { ImportJob, ImportResult, ImportTotals } from '../../../jobs/imports.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import type { ExitCode } from '../../exit.js';
import { importArg, importName, openImport, pathOfRejects } from '../../importing.js';
import type { RejectsFile } from '../../tabular/rejects.js';
import { begin, type IdentifiedJob, type Identity, identify } from './import/begin.js';
import { createFields, mapColumns, sayColumns } from './import/columns.js';
import { endImport, sayBrokenOff } from './import/end.js';
import { importsOf, type Place, sayForeign } from './import/foreign.js';
import { assertOptions, importOptions, parseMaxErrors, parseRate } from './import/options.js';
import { inList } from './lookup.js';

export const subscriberImport = command({
	name: 'import',
	summary: 'import subscribers from a CSV, TSV or NDJSON file',
	description:
		'The first line (or the keys of the objects) names the columns: email (required), name, is_active, ' +
		'disable_reason, and fields by variable or by name. An empty cell keeps what is there. Nobody inactive is made ' +
		'active without --reactivate. What cannot be imported goes into FILE.rejects.csv with its line and the reason, ' +
		'which imports again once it is mended; rows that repeat an address are listed there too, and left out again. ' +
		'--dry-run says what would become of each row, and ends with 0 whatever that is.',
	args: [importArg],
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
		const rejectsPath = cx.dryRun ? null : pathOfRejects(file, options.rejects);
		const { list } = await inList(cx, options);
		const table = await openImport(cx, file, options);
		try {
			const mapping = await mapColumns(cx, table, options);
			await sayColumns(cx, { name: importName(file), table, mapping });
			const spec = { list_id: list.id, on_conflict: options.onConflict, reactivate: options.reactivate };
			const job = { file, list, table, mapping, spec, options, limits };
			if (rejectsPath === null) return await plan(cx, job);
			return await work(cx, { ...job, rejectsPath });
		} finally {
			await table.close();
		}
	},
});

interface Job extends IdentifiedJob {
	limits: { maxErrors: ReturnType<typeof parseMaxErrors> | null; rate: number | null };
	rejectsPath: string;
}

async function plan(
	cx: CommandContext,
	{ file, options, ...job }: Omit<Job, 'rejectsPath'>,
): Promise<undefined> {
	const { planImport } = await import('./import/plan.js');
	const { concurrency } = options;
	await planImport(cx, { ...job, concurrency, file: importName(file) });
}

async function work(cx: CommandContext, job: Job): Promise<ExitCode> {
	const { options, limits } = job;
	const identity = await identify(cx, job);
	const isRepeatable = job.file !== '-' || options.job !== undefined;
	const place = await importsOf(cx, { ...options, rate: limits.rate, isRepeatable });
	try {
		const rejects = await begin(cx, { ...job, ...identity, imports: place.imports });
		return await putRows(cx, { ...job, ...identity, ...place, rejects }).finally(() => rejects.close());
	} finally {
		await place.foreign?.close();
	}
}

async function putRows(
	cx: CommandContext,
	job: Job & Identity & Place & { rejects: RejectsFile },
): Promise<ExitCode> {
	const { table, mapping, spec, key, sha256, options, limits, rejects, foreign } = job;
	await createFields(cx, mapping);
	if (foreign === null && !options.resume) await forget(job.imports, key, spec);
	const result = await run(cx, job, {
		...(await paced(cx, job)),
		rows: table.rows,
		...(foreign === null && (await readElsewhere(cx, job))),
		mapping,
		spec,
		key,
		...(limits.maxErrors !== null && { maxErrors: limits.maxErrors }),
		onReject: (refused) => rejects.write(refused),
		signal: cx.signal,
	});
	if (result.isComplete)
		await job.mark?.write({ key, sha256, rejects: resolve(rejects.path), hasEnded: true });
	if (foreign !== null) await sayForeign(cx, foreign);
	return endImport(cx, { ...result, rejectsPath: rejects.path, options, maxErrors: options.maxErrors });
}

/** A large file is read and checked in another thread, for whoever takes it in batches. */
async function readElsewhere(
	cx: CommandContext,
	{ file, options }: Job,
): Promise<Pick<ImportJob, 'readBundles'>> {
	if (file === '-') return {};
	const { bundlesOf } = await import('../../connect/bundles.js');
	const readBundles = await bundlesOf(file, options, cx.signal);
	return readBundles === null ? {} : { readBundles };
}

/** An unfinished session of the same job is closed, so that this run starts at the first row. */
async function forget(imports: Imports, key: string, spec: ImportSpec): Promise<void> {
	const session = await imports.open(key, spec);
	if (session.position > 0) await imports.finish(session.id);
}

/** Elsewhere than on our own deployments it is rows that are paced, not batches. */
async function paced(
	cx: CommandContext,
	{ imports, batchRows, foreign, limits }: Place & Pick<Job, 'limits'>,
): Promise<Pick<ImportJob, 'imports' | 'batchRows'>> {
	if (limits.rate === null || foreign !== null) return { imports, batchRows };
	const { batchRowsAt, pacedImports } = await import('./import/pace.js');
	const elapsedMs = () => performance.now();
	return {
		imports: pacedImports(imports, { rowsPerSecond: limits.rate, signal: cx.signal, elapsedMs }),
		batchRows: batchRowsAt(limits.rate, batchRows),
	};
}

async function run(
	cx: CommandContext,
	{ list, rows, foreign }: { list: List; rows: number | null; foreign: ForeignImports | null },
	job: ImportJob,
): Promise<ImportResult> {
	const { runImport } = await import('../../../jobs/imports.js');
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
		throw error;
	}
}
