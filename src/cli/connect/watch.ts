/** The end of a command that does not come back: a thread ends the process, in the words the command would have used. */
import { startWatchdog } from '../../threads/watchdog.js';
import { unnamed } from '../frame/command-line.js';
import { errorLine } from '../frame/error-output.js';
import { Interrupted } from '../frame/errors.js';
import { classify } from '../frame/exit.js';
import { type Format, isMachine } from '../frame/globals.js';

/**
 * Ends the process when it is still there after so many milliseconds. A signal that came has the standard action again,
 * so the process can end by it, and its status is the signal's own; else it is killed (137).
 */
export function watch(
	reason: Error,
	{ afterMs, format }: { afterMs: number; format: Format | null },
): { stop(): void } | null {
	const complaint = classify(reason);
	const isSignal = reason instanceof Interrupted;
	const line = isSignal ? complaint.message : `error: ${complaint.message}`;
	return startWatchdog({
		afterMs,
		text: isMachine(format) ? errorLine(complaint, unnamed) : `${line}\n`,
		signal: isSignal ? reason.signal : 'SIGKILL',
	});
}
