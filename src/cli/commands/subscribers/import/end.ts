/** How an import ends: its counts, where the rejected rows are, and what to do when it did not come to its end. */
import { ApiError } from '../../../../api/errors.js';
import type { List } from '../../../../api/records.js';
import type { ImportResult, ImportTotals } from '../../../../jobs/imports.js';
import type { CommandContext } from '../../../context.js';
import { CliError } from '../../../errors.js';
import { type ExitCode, exits } from '../../../exit.js';
import { type OptionsAgain, rejectsSentence, tallySentence } from '../../../importing.js';
import { counted, shown } from '../../../render/counted.js';

export interface ImportEnd extends ImportResult {
	/** Where the rejected and duplicate rows are, if there are any. */
	rejectsPath: string;
	options: OptionsAgain;
	/** As given. */
	maxErrors: string | undefined;
}

/** Prints the counts. Throws where the work was broken off: the signal's reason, or `too_many_errors` (exit 9). */
export async function endImport(cx: CommandContext, end: ImportEnd): Promise<ExitCode> {
	const { outcome, totals, rejectsPath, options } = end;
	await sayTotals(cx, totals);
	const rejects = rejectsSentence(totals, rejectsPath, options);
	if (rejects !== null) await cx.hint(rejects);
	if (outcome === 'interrupted') {
		await cx.hint(goOn);
		throw cx.signal.reason;
	}
	if (outcome === 'too_many_errors') throw tooManyErrors(end);
	return totals.rejected === 0 ? exits.done : exits.partly;
}

/** The limit is for all runs together: with the same one, going on would stop at once. */
function tooManyErrors({ totals, isComplete, maxErrors }: ImportEnd): CliError {
	const were = totals.rejected === 1 ? 'was' : 'were';
	const share = `${shown(totals.rejected)} of ${counted(totals.read, 'row')} ${were} rejected`;
	const message = `${share}, more than --max-errors ${maxErrors ?? ''} allows`;
	return isComplete
		? new CliError('too_many_errors', exits.partly, `${message}; the whole file was read`)
		: new CliError('too_many_errors', exits.partly, `stopped: ${message}`, {
				hint: 'what was acknowledged stays; go on with --resume and a higher --max-errors, which counts earlier runs too',
			});
}

const goOn = 'what was acknowledged stays; run the same command with --resume to go on';

/** Before the error itself is reported: what had been acknowledged by then. Nothing is said where that is nothing. */
export async function sayBrokenOff(
	cx: CommandContext,
	error: unknown,
	{ list, totals }: { list: List; totals: ImportTotals | null },
): Promise<void> {
	if (totals === null || totals.read === 0) return;
	await sayTotals(cx, totals);
	if (isNotFound(error) && (await isGone(cx, list)))
		await cx.hint(
			`list ${list.id} "${list.name}" was deleted meanwhile, and what was imported into it with it`,
		);
	else await cx.hint(goOn);
}

function isNotFound(error: unknown): boolean {
	return error instanceof ApiError && error.code === 'not_found';
}

/** It may be the session that is gone (another run of the same file ended it), and not the list. */
async function isGone(cx: CommandContext, { id }: List): Promise<boolean> {
	const api = await cx.api();
	return api.lists.get(id, { signal: cx.signal }).then(() => false, isNotFound);
}

async function sayTotals(cx: CommandContext, totals: ImportTotals): Promise<void> {
	await cx.out.document(documentOf(totals), tallySentence(totals));
}

function documentOf({ read, created, updated, unchanged, duplicate, rejected }: ImportTotals) {
	return { read, created, updated, unchanged, duplicate, rejected };
}
