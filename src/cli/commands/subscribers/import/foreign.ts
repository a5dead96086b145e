/** Where `subscribers import` puts its rows, and what it says where the deployment is not ours. */
import type { Imports } from '../../../../api/capabilities.js';
import type { ForeignImports } from '../../../../jobs/foreign/imports.js';
import type { CommandContext } from '../../../context.js';
import { counted } from '../../../render/counted.js';

/** Rows a batch for each request in flight. */
const roundsPerBatch = 8;

export interface PlaceOptions {
	batchSize: number;
	concurrency: number;
	resume: boolean;
	/** Rows a second at most; null: as fast as they go. */
	rate: number | null;
	/** False: the rows come once, and nobody can go on with them. */
	isRepeatable: boolean;
}

export interface Place {
	imports: Imports;
	/** The same, where the deployment is not ours. */
	foreign: ForeignImports | null;
	batchRows: number;
}

/**
 * Sessions and batches where the deployment has them, else a request a row and the session in a file of this machine.
 * Those batches are small: nothing is told of one before it is done, and Ctrl-C waits for it.
 */
export async function importsOf(
	cx: CommandContext,
	{ batchSize, concurrency, resume, rate, isRepeatable }: PlaceOptions,
): Promise<Place> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.imports !== undefined) return { imports: ext.imports, foreign: null, batchRows: batchSize };
	const { createForeignImports } = await import('../../../../jobs/foreign/imports.js');
	const { target } = await cx.connection();
	const deployment = target.kind === 'remote' ? target.baseUrl : target.url;
	const foreign = createForeignImports(api, {
		concurrency,
		...(rate !== null && { rowsPerSecond: rate }),
		kept: isRepeatable ? { folder: cx.paths.jobs, deployment, earlier: resume ? 'resume' : 'forget' } : null,
		signal: cx.signal,
	});
	return { imports: foreign, foreign, batchRows: Math.min(batchSize, concurrency * roundsPerBatch) };
}

/** Says what such a deployment cannot keep: the reasons of inactivity. */
export async function sayForeign(cx: CommandContext, foreign: ForeignImports): Promise<void> {
	const left = foreign.reasonsLeftOut;
	if (left === 0) return;
	await cx.warn(
		`${counted(left, 'row has', 'rows have')} a disable_reason, which this service has no way to set: the reason was left out, the rows are inactive unless is_active says otherwise`,
	);
}
