/** A thread that ends the process when the main thread is stuck. */
import { spawnThread } from './spawn.js';

export interface Overdue {
	/** Milliseconds from now. */
	afterMs: number;
	/** Milliseconds more where the main thread has set `heard` to 1 by then: it is not stuck. */
	graceMs: number;
	heard: Int32Array;
	/** Written to standard error then, with its line end. */
	text: string;
	/** The signal that the process then sends itself; a handler in the main thread would not run. */
	signal: NodeJS.Signals;
}

/**
 * Ends the process after `afterMs`, or `graceMs` later, unless it is stopped before. It does not keep the process alive. Null: the thread
 * cannot be started.
 */
export function startWatchdog(overdue: Overdue): { stop(): void } | null {
	try {
		const worker = spawnThread('watchdog', { workerData: overdue });
		worker.on('error', () => undefined).unref();
		return { stop: () => void worker.terminate() };
	} catch {
		return null;
	}
}
