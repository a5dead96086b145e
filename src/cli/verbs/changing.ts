import { ApiError, mayHaveHappened } from '../../api/errors.js';
import type { OwnCommand } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { classify } from '../frame/exit.js';

/**
 * The created record. Without a clear answer the error keeps its exit code, warns of a possible record, and is
 * retryable only where the service refuses the same name again. `what`: `the list "News"`; `look`: the showing command.
 */
export async function maybeCreated<T>(
	creating: Promise<T>,
	{ what, look, isUnique }: { what: string; look: OwnCommand; isUnique: boolean },
): Promise<T> {
	try {
		return await creating;
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const { code, exit, message } = classify(error);
		throw new CliError(code, exit, `${what} may have been created: ${message}`, {
			hint: isUnique
				? ['run it again: one that is there is refused; ', look, ' shows it']
				: ['look at ', look, ' first: to create it again may make a second one'],
			retryable: isUnique,
			cause: error,
		});
	}
}

const askedMs = 2_000;

/**
 * What goes slice by slice, so that Ctrl-C, SIGTERM and `--deadline` leave some of it. The error then says with `left`
 * what that is (null: nothing), and that `again` goes on. `left` takes a signal of its own: the command's is aborted.
 */
export async function mayBreakOff<T>(
	{ signal }: Pick<CommandContext, 'signal'>,
	changing: Promise<T>,
	{ left, again }: { left: (signal: AbortSignal) => Promise<string | null>; again: () => OwnCommand },
): Promise<T> {
	try {
		return await changing;
	} catch (error) {
		if (!signal.aborted || !(signal.reason instanceof CliError)) throw error;
		const { code, exit, message, retryable } = signal.reason;
		const said = await left(AbortSignal.timeout(askedMs));
		if (said === null) throw error;
		throw new CliError(code, exit, `${message}: ${said}`, {
			hint: [again(), ' goes on'],
			retryable,
			cause: signal.reason,
		});
	}
}
