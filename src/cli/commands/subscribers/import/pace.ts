/** `--rate`: batches wait until the rows before them have had their time. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Imports } from '../../../../api/capabilities.js';

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
	const { rowsPerSecond, signal, elapsedMs, sleep = sleepFor } = options;
	let due: number | null = null;
	return {
		open: (key, spec, call) => imports.open(key, spec, call),
		finish: (id, call) => imports.finish(id, call),
		put: async (id, batch, call) => {
			const now = elapsedMs();
			if (due !== null && due > now) await sleep(due - now, signal);
			const rows = batch.cells.length / batch.columns.length;
			// What a slow service left over is not made up for by a burst.
			due = Math.max(due ?? now, elapsedMs()) + (rows * 1_000) / rowsPerSecond;
			return imports.put(id, batch, call);
		},
	};
}

async function sleepFor(ms: number, signal: AbortSignal): Promise<void> {
	// The timer's own error says "aborted"; the signal's reason says by whom.
	await wait(ms, undefined, { signal }).catch(() => signal.throwIfAborted());
}
