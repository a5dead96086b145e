/** `subscribers import`: a table into a list, by session and batches; refused rows go into a file of their own. */

import { resolve } from 'node:path';
import type { ImportSpec, Imports } from '../../../api/capabilities.js';
import type { List } from '../../../api/records.js';
import type { ImportJob, ImportResult, ImportTotals } from '../../../jobs/imports.js';
import type { SingleImports } from '../../../jobs/single-imports.js';
import type { RejectsFile } from '../../../tables/write-rejects.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { type ExitCode, hinted } from '../../frame/exit.js';
import { limitYoungGeneration } from '../../frame/heap.js';
import { inputName, isStream } from '../../frame/sources.js';
import { parseRate } from '../../frame/values.js';
import { answer } from '../../render/columns.js';
import { importArg, importName, openImport } from '../../verbs/importing.js';
import {
	foreseeRejects,
	holdRejects,
	layoutOfRejects,
	rejectsPathOf,
	withAddressFaults,
} from '../../verbs/rejects.js';
import { isRecordId } from '../../verbs/resolve.js';
import { creating, offerList } from '../lists/offer.js';
import { createFields, emailAt, mapColumns, sayColumns } from './import/columns.js';
import { brokenOff, endImport, sayNoRows, wayOn } from './import/end.js';
import { assertOptions, type ImportOptions, importOptions, parseMaxErrors } from './import/options.js';
import { batchRowsAt, importsOf, type Place, pacedImports, sayReasonsLeftOut } from './import/place.js';
import { begin, type IdentifiedJob, type Identity, identify } from './import/resume.js';
import { inList } from './lookup.js';

export const subscriberImport = command({
	name: 'import',
	summary: 'import subscribers from a CSV, TSV or NDJSON file',
	description:
		'The first line (or the keys of the objects) names the columns: email (required), name, is_active, ' +
		'disable_reason, and fields by variable or by name. An empty cell keeps what is there. A disable_reason makes ' +
		'the row inactive; UNSUBSCRIBED, HARDBOUNCED and COMPLAINED stop mail to the address as if they had happened here, with --on-conflict skip and error too. ' +
		"A column that says who may get mail (Status, Opted out, UNSUB_TIME …) has to be mapped: --map 'Status=state' reads it. " +
		'No inactive subscriber is made active without --reactivate. What cannot be imported goes into FILE.rejects.csv with its line and the reason, ' +
		'which imports again once it is mended; rows that repeat an address are listed there too, and left out again. ' +
		'--dry-run says what would become of each row, and ends with 0 whatever that is.',
	args: [importArg],
	options: importOptions,
	writes: true,
	columns: answer('read', 'created', 'updated', 'unchanged', 'duplicate', 'rejected'),
	output: '{"read", "created", "updated", "unchanged", "duplicate", "rejected"}',
	exits: [3, 9, 74],
	examples: [
		'mailctl subscribers import people.csv --list 12',
		'mailctl subscribers import people.csv --list 12 --dry-run',
		"mailctl subscribers import people.csv --list 12 --map 'Town=city' --create-fields",
		"mailctl subscribers import people.csv --list 12 --map 'First+Last=name'",
		"mailctl subscribers import people.csv --list 12 --map Status=state --state-words 'blocked=unsubscribed'",
		'mailctl subscribers import - --list 12 --rejects bad.csv < people.csv',
	],
	run: async (cx, { args, options: given, asked }): Promise<ExitCode | undefined> => {
		const file = inputName(args.file);
		const isOnce = await isStream(file);
		assertOptions({ file, isOnce }, given);
		let options: ImportOptions = given;
		const limits = {
			maxErrors: options.maxErrors === undefined ? null : parseMaxErrors(options.maxErrors),
			rate: options.rate === undefined ? null : parseRate(options.rate),
		};
		const rejectsPath = await rejectsPathOf(cx, file, options.rejects);
		// A file that is not there is told first; what comes once waits for a list that is.
		const early = isOnce ? await listOf(cx, isOnce, options) : undefined;
		const table = await openImport(cx, file, options);
		try {
			const found = early === undefined ? await listOf(cx, isOnce, options) : early;
			if (cx.canAsk && !isOnce) {
				const { guideColumns } = await import('./import/guide.js');
				options = await guideColumns(cx, { table, file }, options);
			}
			const mapping = await mapColumns(cx, { table, file: isOnce ? null : file }, options);
			await sayColumns(cx, { name: importName(file), table, mapping });
			const list = found ?? (await offerList(cx, options.list, { isNew: asked.has('list') }));
			if (options !== given || found === null || asked.size > 0) {
				const { sayCommands } = await import('./import/guide.js');
				await sayCommands(cx, { file, list, made: found === null ? list : null }, options);
			}
			const spec = { list_id: list.id, on_conflict: options.onConflict, reactivate: options.reactivate };
			const job = { file, isOnce, list, table, mapping, spec, options, limits };
			await limitYoungGeneration();
			if (cx.dryRun || rejectsPath === null) return await foresee(cx, { ...job, rejectsPath });
			return await work(cx, { ...job, rejectsPath });
		} finally {
			await table.close();
		}
	},
});

/** Null: there is none of this name, and a person may make it, once the file is known to be a table. */
async function listOf(cx: CommandContext, isOnce: boolean, options: ImportOptions): Promise<List | null> {
	try {
		return (await inList(cx, options)).list;
	} catch (error) {
		if (!isUnknownName(error, options)) throw await withFirstList(cx, error);
		if (!cx.canAsk || cx.dryRun || isOnce) throw hinted(error, [[creating(options.list), ' makes it']]);
		return null;
	}
}

/** An id is of no use to a database without any list. */
async function withFirstList(cx: CommandContext, error: unknown): Promise<unknown> {
	if (!(error instanceof CliError) || error.code !== 'not_found') return error;
	const { count } = await (await cx.api()).lists.page({}, { signal: cx.signal });
	return count === 0 ? hinted(error, [['there is no list yet: ', creating('NAME'), ' makes one']]) : error;
}

function isUnknownName(error: unknown, { list, by }: ImportOptions): boolean {
	const isNotFound = error instanceof CliError && error.code === 'not_found';
	return isNotFound && list.trim() !== '' && (by === 'name' || !isRecordId(list));
}

interface Job extends IdentifiedJob {
	limits: { maxErrors: ReturnType<typeof parseMaxErrors> | null; rate: number | null };
	rejectsPath: string;
}

async function foresee(
	cx: CommandContext,
	{ limits, rejectsPath: path, ...job }: Omit<Job, 'rejectsPath'> & { rejectsPath: string | null },
): Promise<undefined> {
	const { table, mapping, options } = job;
	if (path !== null) {
		const { resume, rejects } = options;
		const layout = layoutOfRejects(table, mapping);
		await foreseeRejects(cx, { path, isNumbered: rejects === undefined, ...layout, resume });
	}
	const { dryRun } = await import('./import/dry-run.js');
	const { readBundles } = await readElsewhere(cx, job);
	const { maxErrors } = limits;
	await dryRun(cx, { ...job, maxErrors, readBundles, file: importName(job.file) });
}

async function work(cx: CommandContext, job: Job): Promise<ExitCode> {
	const { options, limits } = job;
	const identity = await identify(cx, job);
	const isRepeatable = !job.isOnce || options.job !== undefined;
	const place = await importsOf(cx, { ...options, rate: limits.rate, isRepeatable });
	try {
		await holdRejects(cx, job.rejectsPath);
		const isForeign = place.foreign !== null;
		const rejects = await begin(cx, { ...job, ...identity, imports: place.imports, isForeign });
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
	const result = await run(cx, job, {
		...(await paced(cx, job)),
		rows: table.rows,
		...(foreign === null && (await readElsewhere(cx, job))),
		mapping,
		spec,
		key,
		...(limits.maxErrors !== null && { maxErrors: limits.maxErrors }),
		onReject: (refused) => rejects.write(withAddressFaults(refused, emailAt(mapping))),
		signal: cx.signal,
	});
	if (result.isComplete)
		await job.mark?.write({
			key,
			sha256,
			rejects: resolve(rejects.path),
			hasEnded: true,
			isForeign: foreign !== null,
		});
	if (foreign !== null) await sayReasonsLeftOut(cx, foreign.reasonsLeftOut);
	if (result.isComplete) await sayNoRows(cx, job.file, result.totals);
	const goOn = wayOn(job.isOnce, options);
	const written = { path: rejects.path, asked: job.rejectsPath };
	return endImport(cx, { ...result, rejects: written, options, maxErrors: options.maxErrors, goOn });
}

/** A large file is read and checked in another thread, which hands over batches. */
async function readElsewhere(
	cx: CommandContext,
	{ file, isOnce, options: { delimiter }, table: { encoding } }: IdentifiedJob,
): Promise<Pick<ImportJob, 'readBundles'>> {
	if (isOnce) return {};
	const { bundlesOf } = await import('../../connect/bundles.js');
	const readBundles = await bundlesOf(file, { delimiter, encoding }, cx.signal);
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
	const elapsedMs = () => performance.now();
	return {
		imports: pacedImports(imports, { rowsPerSecond: limits.rate, signal: cx.signal, elapsedMs }),
		batchRows: batchRowsAt(limits.rate, batchRows),
	};
}

async function run(
	cx: CommandContext,
	{ list, rows, foreign, isOnce, options }: Job & { rows: number | null; foreign: SingleImports | null },
	job: ImportJob,
): Promise<ImportResult> {
	const { runImport } = await import('../../../jobs/imports.js');
	let progress = cx.progress('importing', rows);
	// Its rate is that of this run.
	const onResumed = ({ read }: ImportTotals) => {
		progress = cx.progress('importing', rows, read);
	};
	let last: ImportTotals | null = null;
	const onProgress = (totals: ImportTotals) => {
		last = totals;
		progress.update(totals.read, totals.rejected === 0 ? '' : `${totals.rejected} rejected`);
	};
	foreign?.onPause(({ ms, isAsked }) => {
		const why = isAsked ? 'as the service asks' : 'the service has no time';
		progress.update(last?.read ?? 0, `waiting ${Math.ceil(ms / 1000)} s, ${why}`);
	});
	try {
		if (foreign === null && !options.resume) await forget(job.imports, job.key, job.spec);
		return await runImport({ ...job, onResumed, onProgress }).finally(() => progress.stop());
	} catch (error) {
		const goOn = wayOn(isOnce, options);
		throw await brokenOff(cx, error, { list, totals: last, goOn, isResumed: options.resume });
	}
}
