import { resolve } from 'node:path';
import { sleep } from '../../../../api/backoff.js';
import type { ImportSpec, Imports } from '../../../../api/capabilities.js';
import type { List } from '../../../../api/records.js';
import type { ImportJob, ImportResult, ImportTotals, MaxErrors } from '../../../../jobs/imports.js';
import type { SingleImports } from '../../../../jobs/single-imports.js';
import type { Mapping } from '../../../../tables/map-columns.js';
import type { Table } from '../../../../tables/read-table.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError } from '../../../frame/errors.js';
import { type ExitCode, exits } from '../../../frame/exit.js';
import { counted, numberText } from '../../../render/units.js';
import { tallySentence } from '../../../verbs/importing.js';
import { holdRejects, rejectsSentence, withAddressFaults } from '../../../verbs/rejects.js';
import { createFields, emailAt } from './columns.js';
import type { ImportOptions } from './options.js';
import { begin, identify } from './resume.js';

export interface TableJob {
	file: string;
	isOnce: boolean;
	list: List;
	table: Table;
	mapping: Mapping;
	spec: ImportSpec;
	options: ImportOptions;
	limits: { maxErrors: MaxErrors | null; rate: number | null };
}

export async function putTable(
	cx: CommandContext,
	job: TableJob & { rejectsPath: string },
): Promise<ExitCode> {
	const { table, mapping, spec, options, limits } = job;
	const identity = await identify(cx, job);
	const { key, sha256, mark } = identity;
	const { imports, foreign, batchRows } = await placeOf(cx, job);
	try {
		await holdRejects(cx, job.rejectsPath);
		const rejects = await begin(cx, { ...job, ...identity, imports });
		try {
			await createFields(cx, mapping);
			const result = await runShown(cx, job, identity.rows, foreign, {
				...{ imports, batchRows, mapping, spec, key, rows: table.rows, signal: cx.signal },
				...(foreign === null && (await readElsewhere(cx, job))),
				...(limits.maxErrors !== null && { maxErrors: limits.maxErrors }),
				onReject: (refused) => rejects.write(withAddressFaults(refused, emailAt(mapping))),
			});
			if (result.isComplete)
				await mark?.write({ key, sha256, rejects: resolve(rejects.path), hasEnded: true });
			if (foreign !== null) await sayReasonsLeftOut(cx, foreign.reasonsLeftOut);
			await sayTotals(cx, result.totals);
			await sayOtherReasons(cx, result.totals.other_reasons ?? 0);
			const places = { path: rejects.path, asked: job.rejectsPath };
			const left = rejectsSentence(result.totals, places, options);
			if (left !== null) await cx.hint(left);
			return await end(cx, job, result);
		} finally {
			await rejects.close();
		}
	} finally {
		await foreign?.close();
	}
}

/** Rows a batch for each request in flight. */
const roundsPerBatch = 8;

async function placeOf(
	cx: CommandContext,
	{ options, limits: { rate }, isOnce }: TableJob,
): Promise<{ imports: Imports; foreign: SingleImports | null; batchRows: number }> {
	const api = await cx.api();
	const { imports } = (await api.capabilities()).ext;
	const { batchSize, concurrency } = options;
	if (imports !== undefined && rate === null) return { imports, foreign: null, batchRows: batchSize };
	if (imports !== undefined && rate !== null)
		return {
			imports: pacedImports(imports, rate, cx.signal),
			foreign: null,
			batchRows: batchRowsAt(rate, batchSize),
		};
	const { createSingleImports } = await import('../../../../jobs/single-imports.js');
	const { keepImports } = await import('../../../connect/imports.js');
	const { target } = await cx.connection();
	const deployment = target.kind === 'remote' ? target.baseUrl : target.url;
	const kept = { folder: cx.paths.jobs, deployment, clock: cx.clock };
	const isRepeatable = !isOnce || options.job !== undefined;
	const foreign = createSingleImports(api, {
		concurrency,
		...(rate !== null && { rowsPerSecond: rate }),
		keep: isRepeatable ? keepImports({ ...kept, earlier: options.resume ? 'resume' : 'forget' }) : null,
		signal: cx.signal,
	});
	return { imports: foreign, foreign, batchRows: foreignBatchRows(options) };
}

/** Progress shows whole batches, and Ctrl-C waits for one: it is small where each row is a request. */
export function foreignBatchRows({ batchSize, concurrency }: ImportOptions): number {
	return Math.min(batchSize, concurrency * roundsPerBatch);
}

/** The rows of a batch are put as fast as possible, so that it holds no more than those of one second. */
export function batchRowsAt(rowsPerSecond: number, batchRows: number): number {
	return Math.max(1, Math.min(batchRows, Math.floor(rowsPerSecond)));
}

/** The same sessions, each batch at its time. Rows put again after a cut count again. */
export function pacedImports(
	imports: Imports,
	rowsPerSecond: number,
	signal: AbortSignal,
	{ elapsedMs, sleep: wait }: Pace = { elapsedMs: () => performance.now(), sleep },
): Imports {
	let due: number | null = null;
	return {
		open: (key, spec, call) => imports.open(key, spec, call),
		finish: (id, call) => imports.finish(id, call),
		put: async (id, batch, call) => {
			const now = elapsedMs();
			if (due !== null && due > now) await wait(due - now, signal);
			const rows = batch.cells.length / batch.columns.length;
			// After a slow answer no burst catches up.
			due = Math.max(due ?? now, elapsedMs()) + (rows * 1_000) / rowsPerSecond;
			return imports.put(id, batch, call);
		},
	};
}

interface Pace {
	elapsedMs: () => number;
	sleep: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A large file is read and checked in another thread, which hands over batches. */
export async function readElsewhere(
	cx: CommandContext,
	{ file, isOnce, options: { delimiter }, table: { encoding } }: TableJob,
): Promise<Pick<ImportJob, 'readBundles'>> {
	if (isOnce) return {};
	const { bundlesOf } = await import('../../../connect/imports.js');
	const readBundles = await bundlesOf(file, { delimiter, encoding }, cx.signal);
	return readBundles === null ? {} : { readBundles };
}

async function runShown(
	cx: CommandContext,
	job: TableJob,
	rows: number | null,
	foreign: SingleImports | null,
	how: ImportJob,
): Promise<ImportResult> {
	const { resume } = job.options;
	const { runImport } = await import('../../../../jobs/imports.js');
	let progress = cx.progress('importing', rows);
	let last: ImportTotals | null = null;
	foreign?.onPause(({ ms, isAsked }) => {
		const why = isAsked ? 'as the service asks' : 'the service has no time';
		progress.update(last?.read ?? 0, `waiting ${Math.ceil(ms / 1000)} s, ${why}`);
	});
	try {
		if (foreign === null && !resume) {
			const session = await how.imports.open(how.key, how.spec);
			if (session.position > 0) await how.imports.finish(session.id);
		}
		const running = runImport({
			...how,
			onResumed: ({ read }) => {
				progress = cx.progress('importing', rows, read);
			},
			onProgress: (totals) => {
				last = totals;
				progress.update(totals.read, totals.rejected === 0 ? '' : `${totals.rejected} rejected`);
			},
		});
		return await running.finally(() => progress.stop());
	} catch (error) {
		const totals: ImportTotals | null = last;
		if (totals !== null) await sayTotals(cx, totals);
		if (totals !== null || resume) await cx.hint(wayOn(job));
		throw error;
	}
}

function wayOn({ isOnce, options: { job } }: TableJob): string {
	return isOnce && job === undefined
		? 'what was acknowledged stays; import all of it from a file or with --job NAME, which --resume can go on with'
		: 'what was acknowledged stays; run the same command with --resume to go on';
}

async function end(cx: CommandContext, job: TableJob, result: ImportResult): Promise<ExitCode> {
	if (result.outcome === 'interrupted') {
		await cx.hint(wayOn(job));
		throw cx.signal.reason;
	}
	if (result.outcome === 'too_many_errors') throw tooManyErrors(result, job.options.maxErrors);
	return result.totals.rejected === 0 ? exits.done : exits.partly;
}

async function sayTotals(cx: CommandContext, totals: ImportTotals): Promise<void> {
	const { other_reasons: _, ...counts } = totals;
	await cx.out.document(counts, tallySentence(totals));
}

export async function sayOtherReasons(cx: CommandContext, rows: number): Promise<void> {
	if (rows === 0) return;
	await cx.warn(
		`${counted(rows, 'row has', 'rows have')} a disable_reason other than UNSUBSCRIBED, HARDBOUNCED or COMPLAINED: it was kept, and the subscribers are inactive in this list; the addresses are not suppressed`,
	);
}

export async function sayReasonsLeftOut(cx: CommandContext, left: number): Promise<void> {
	if (left === 0) return;
	await cx.warn(
		`${counted(left, 'row has', 'rows have')} a disable_reason, which this service has no way to set: the reason was left out, the rows are inactive unless is_active says otherwise`,
	);
}

/** The limit is for all runs together: with the same limit, a resumed run would stop at once. */
export function tooManyErrors(
	{ totals, isComplete }: Pick<ImportResult, 'totals' | 'isComplete'>,
	maxErrors: string | undefined,
): CliError {
	const were = totals.rejected === 1 ? 'was' : 'were';
	const share = `${numberText(totals.rejected)} of ${counted(totals.read, 'row')} ${were} rejected`;
	const message = `${share}, more than --max-errors ${maxErrors ?? ''} allows`;
	const hint = 'go on with --resume and a higher --max-errors, which counts earlier runs too';
	return new CliError('too_many_errors', exits.partly, message, isComplete ? {} : { hint });
}
