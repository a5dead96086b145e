/** Shared by creations and updates: an unclear answer to a creation, and an update without a change. */

import { ApiError, mayHaveHappened } from '../../api/errors.js';
import type { OwnCommand } from '../frame/command-line.js';
import { CliError, UsageError } from '../frame/errors.js';
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

/** An update without anything to update is a mistake, not a success. */
export function assertChange(change: object, flags: readonly string[]): void {
	if (Object.keys(change).length === 0)
		throw new UsageError(`nothing to change: give one of ${flags.join(', ')}`);
}
