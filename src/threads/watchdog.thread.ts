/**
 * Ends a process whose main thread is stuck: inside SQLite or a regular expression it handles neither timers nor
 * signals.
 */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import type { Overdue } from './watchdog.js';

// Only `startWatchdog` starts this thread.
const { afterMs, graceMs, heard, text, signal } = workerData as Overdue;

setTimeout(() => {
	if (Atomics.load(heard, 0) === 0) end();
	else setTimeout(end, graceMs);
}, afterMs);

function end(): void {
	try {
		writeSync(2, text);
	} catch {
		// The reader of standard error has gone; the process still ends.
	}
	process.kill(process.pid, signal);
}
