/** Where `subscribers import` puts its rows, and what it says where the deployment is not ours. */
import type { Imports } from '../../api/capabilities.js';
import type { ForeignImports } from '../../jobs/foreign/imports.js';
import type { CommandContext } from '../context.js';

/** Rows a batch for each request in flight. */
const roundsPerBatch = 8;

/**
 * Sessions and batches where the deployment has them, else a request a row. Those batches are small: nothing is told
 * of one before it is done, and Ctrl-C waits for it.
 */
export async function importsOf(
	cx: CommandContext,
	{ batchSize, concurrency }: { batchSize: number; concurrency: number },
): Promise<{ imports: Imports; foreign: ForeignImports | null; batchRows: number }> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.imports !== undefined) return { imports: ext.imports, foreign: null, batchRows: batchSize };
	const { createForeignImports } = await import('../../jobs/foreign/imports.js');
	const foreign = createForeignImports(api, { concurrency, signal: cx.signal });
	return { imports: foreign, foreign, batchRows: Math.min(batchSize, concurrency * roundsPerBatch) };
}

/** Says what such a deployment cannot keep: reasons of inactivity, and the place where an import stopped. */
export async function sayForeign(
	cx: CommandContext,
	foreign: ForeignImports,
	{ resume }: { resume: boolean },
): Promise<void> {
	const left = foreign.reasonsLeftOut;
	if (left > 0) {
		const rows = left === 1 ? '1 row has' : `${left.toLocaleString('en-US')} rows have`;
		await cx.warn(
			`${rows} a disable_reason, which this service has no way to set: the reason was left out, the rows are inactive unless is_active says otherwise`,
		);
	}
	if (resume) {
		await cx.note(
			'this service keeps no import sessions: imported from the beginning, what was there already is among the unchanged',
		);
	}
}
