/** The destination of `subscribers import`, its pace, and its warnings about a foreign deployment. */
import type { Imports } from '../../../../api/capabilities.js';
import { sleep } from '../../../../api/sleep.js';
import type { SingleImports } from '../../../../jobs/single-imports.js';
import type { CommandContext } from '../../../frame/context.js';
import { counted } from '../../../render/plurals.js';

/** Rows a batch for each request in flight. */
const roundsPerBatch = 8;

export interface PlaceOptions {
	batchSize: number;
	concurrency: number;
	resume: boolean;
	/** Rows a second at most; null: as fast as they go. */
	rate: number | null;
	/** False: the rows come once, and cannot be resumed. */
	isRepeatable: boolean;
}

export interface Place {
	imports: Imports;
	/** The same, where the deployment is not ours. */
	foreign: SingleImports | null;
	batchRows: number;
}

/**
 * Sessions and batches where the deployment has them, else a request a row and the session in a file of this machine.
 */
export async function importsOf(
	cx: CommandContext,
	{ batchSize, concurrency, resume, rate, isRepeatable }: PlaceOptions,
): Promise<Place> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.imports !== undefined) return { imports: ext.imports, foreign: null, batchRows: batchSize };
	const [{ createSingleImports }, { keepImports }] = await Promise.all([
		import('../../../../jobs/single-imports.js'),
		import('../../../connect/imports.js'),
	]);
	const { target } = await cx.connection();
	const deployment = target.kind === 'remote' ? target.baseUrl : target.url;
	const { clock } = cx;
	const folder = cx.paths.jobs;
	const earlier = resume ? 'resume' : 'forget';
	const foreign = createSingleImports(api, {
		concurrency,
		...(rate !== null && { rowsPerSecond: rate }),
		keep: isRepeatable ? keepImports({ folder, deployment, clock, earlier }) : null,
		signal: cx.signal,
	});
	return { imports: foreign, foreign, batchRows: foreignBatchRows({ batchSize, concurrency }) };
}

/** Progress shows whole batches, and Ctrl-C waits for one: it is small where each row is a request. */
export function foreignBatchRows({
	batchSize,
	concurrency,
}: Pick<PlaceOptions, 'batchSize' | 'concurrency'>): number {
	return Math.min(batchSize, concurrency * roundsPerBatch);
}

/** Warns of data that such a deployment cannot keep: the reasons of inactivity. */
export async function sayReasonsLeftOut(cx: CommandContext, left: number): Promise<void> {
	if (left === 0) return;
	await cx.warn(
		`${counted(left, 'row has', 'rows have')} a disable_reason, which this service has no way to set: the reason was left out, the rows are inactive unless is_active says otherwise`,
	);
}

export interface PaceOptions {
	rowsPerSecond: number;
	/** Cuts a pause short, with its reason. */
	signal: AbortSignal;
	/** Milliseconds, only ever subtracted from each other. */
	elapsedMs: () => number;
	/** Rejects with the signal's reason. */
	sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Of a batch the rows are put as fast as they go: it must not hold more than a second's. */
export function batchRowsAt(rowsPerSecond: number, batchRows: number): number {
	return Math.max(1, Math.min(batchRows, Math.floor(rowsPerSecond)));
}

/** The same sessions; the first batch goes at once. Rows put again after a cut count again: they are put again. */
export function pacedImports(imports: Imports, options: PaceOptions): Imports {
	const { rowsPerSecond, signal, elapsedMs, sleep: wait = sleep } = options;
	let due: number | null = null;
	return {
		open: (key, spec, call) => imports.open(key, spec, call),
		finish: (id, call) => imports.finish(id, call),
		put: async (id, batch, call) => {
			const now = elapsedMs();
			if (due !== null && due > now) await wait(due - now, signal);
			const rows = batch.cells.length / batch.columns.length;
			// Rows that a slow service left behind are not caught up by a burst.
			due = Math.max(due ?? now, elapsedMs()) + (rows * 1_000) / rowsPerSecond;
			return imports.put(id, batch, call);
		},
	};
}
