/** The same change to several records: goes on after a refusal, says which failed, never hides one. */
import { ApiError } from '../api/errors.js';
import type { CommandContext } from './context.js';

export interface Outcome<T> {
	done: T[];
	failed: number;
}

/**
 * One after the other, with progress. A record that is gone already counts as done by somebody else and not as a
 * failure of ours only for `not_found`; anything but a refusal of this one record ends the run.
 */
export async function eachOf<T extends { id: number | string }>(
	cx: CommandContext,
	records: readonly T[],
	change: (record: T) => Promise<unknown>,
): Promise<Outcome<T>> {
	const done: T[] = [];
	let failed = 0;
	const progress = cx.progress('working', records.length);
	try {
		for (const record of records) {
			cx.signal.throwIfAborted();
			try {
				await change(record);
				done.push(record);
			} catch (error) {
				if (records.length === 1 || !isRefusal(error)) throw error;
				failed += 1;
				await cx.warn(`${record.id}: ${error.message}`);
			}
			progress.update(done.length + failed, failed === 0 ? '' : `${failed} failed`);
		}
	} finally {
		progress.stop();
	}
	return { done, failed };
}

function isRefusal(error: unknown): error is ApiError {
	return (
		error instanceof ApiError &&
		['not_found', 'invalid', 'conflict', 'permission_denied'].includes(error.code)
	);
}
