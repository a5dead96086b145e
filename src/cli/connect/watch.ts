/** The end of a command that does not come back: a thread ends the process, in the words the command would have used. */
import { type Overdue, startWatchdog } from '../../threads/watchdog.js';
import { unnamed } from '../frame/command-line.js';
import { errorLine } from '../frame/error-output.js';
import { Interrupted } from '../frame/errors.js';
import { classify } from '../frame/exit.js';
import { type Format, isMachine } from '../frame/globals.js';

/**
 * Ends the process when it is still there after so many milliseconds. A signal that came has the standard action again,
 * so the process can end by it, and its status is the signal's own; else it is SIGALRM, which `bin/mailctl.js` makes 12.
 */
export function watch(
	reason: Error,
	{ format, ...times }: Pick<Overdue, 'afterMs' | 'graceMs' | 'heard'> & { format: Format | null },
): { stop(): void } | null {
	const complaint = classify(reason);
	const isSignal = reason instanceof Interrupted;
	const line = isSignal ? complaint.message : `error: ${complaint.message}`;
	return startWatchdog({
		...times,
		text: isMachine(format) ? errorLine(complaint, unnamed) : `${line}\n`,
		signal: isSignal ? reason.signal : 'SIGALRM',
	});
}
