/** The same change to several records: agreed to once; goes on after a refusal, says which failed, never hides one. */
import { ApiError } from '../api/errors.js';
import type { CommandContext } from './context.js';
import { shown } from './render/counted.js';

/** More of them are a severe change: the count has to be typed. */
const severeCount = 100;

/** What is to be done to how many; `what` completes "This will …". */
export interface SeveralQuestion {
	what: string;
	count: number;
	/** Whether a few of them are asked about too. */
	few: 'ask' | 'go on';
}

/** Consent to the change. Throws `Declined` and `UsageError` as `confirm` does. */
export async function agreeToAll(cx: CommandContext, { what, count, few }: SeveralQuestion): Promise<void> {
	// A script that names the count has agreed, few as they are today.
	if (count > severeCount || cx.globals.confirm !== undefined)
		await cx.confirm({ kind: 'severe', what, name: String(count) });
	else if (few === 'ask') await cx.confirm({ kind: 'mild', what });
}

/** One by its name, several by their count: `ann@example.com`, `3 subscribers`. */
export function nameOrCount(names: readonly string[], plural: string): string {
	const [only] = names;
	return names.length === 1 && only !== undefined ? only : `${shown(names.length)} ${plural}`;
}

/** What became of the records. */
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
