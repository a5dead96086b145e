/** The end of an import: its counts, its rejects file, and the way on when it was cut short. */
import { ApiError } from '../../../../api/errors.js';
import type { List } from '../../../../api/records.js';
import type { ImportResult, ImportTotals } from '../../../../jobs/imports.js';
import type { CommandContext } from '../../../frame/context.js';
import { CliError } from '../../../frame/errors.js';
import { classify, type ExitCode, exits } from '../../../frame/exit.js';
import { counted, numberText } from '../../../render/plurals.js';
import { importName, tallySentence } from '../../../verbs/importing.js';
import { type OptionsAgain, rejectsSentence } from '../../../verbs/rejects.js';

export interface ImportEnd extends ImportResult {
	/** The file of rejected and duplicate rows, if any, and the path that was asked for. */
	rejects: { path: string; asked: string };
	options: OptionsAgain;
	/** As given. */
	maxErrors: string | undefined;
	/** See `wayOn`. */
	goOn: string;
}

/** Prints the counts. Throws where the work was broken off: the signal's reason, or `too_many_errors` (exit 9). */
export async function endImport(cx: CommandContext, end: ImportEnd): Promise<ExitCode> {
	const { outcome, totals, options } = end;
	await sayTotals(cx, totals);
	await sayOtherReasons(cx, totals.other_reasons ?? 0);
	const left = rejectsSentence(totals, end.rejects, options);
	if (left !== null) await cx.hint(left);
	if (outcome === 'interrupted') {
		await cx.hint(end.goOn);
		throw cx.signal.reason;
	}
	if (outcome === 'too_many_errors') throw tooManyErrors(end, end.maxErrors);
	return totals.rejected === 0 ? exits.done : exits.partly;
}

/** Warns of a file that holds a header alone: an export that failed looks so. */
export async function sayNoRows(cx: CommandContext, file: string, { read }: ImportTotals): Promise<void> {
	if (read === 0) await cx.warn(`${importName(file)} has no rows: nothing was there to import`);
}

/** Warns of reasons that do not stop mail to the address. */
export async function sayOtherReasons(cx: CommandContext, rows: number): Promise<void> {
	if (rows === 0) return;
	const have = counted(rows, 'row has', 'rows have');
	await cx.warn(
		`${have} a disable_reason other than UNSUBSCRIBED, HARDBOUNCED or COMPLAINED: it was kept, and the subscribers are inactive in this list; the addresses are not suppressed`,
	);
}

/** The limit is for all runs together: with the same limit, a resumed run would stop at once. */
export function tooManyErrors(
	{ totals, isComplete }: Pick<ImportResult, 'totals' | 'isComplete'>,
	maxErrors: string | undefined,
): CliError {
	const were = totals.rejected === 1 ? 'was' : 'were';
	const share = `${numberText(totals.rejected)} of ${counted(totals.read, 'row')} ${were} rejected`;
	const message = `${share}, more than --max-errors ${maxErrors ?? ''} allows`;
	return isComplete
		? new CliError('too_many_errors', exits.partly, `${message}; the whole file was read`)
		: new CliError('too_many_errors', exits.partly, `stopped: ${message}`, {
				hint: 'what was acknowledged stays; go on with --resume and a higher --max-errors, which counts earlier runs too',
			});
}

/** The way to resume an import that was cut short. What comes once cannot be resumed without a name. */
export function wayOn(isOnce: boolean, { job }: { job?: string | undefined }): string {
	const stays = 'what was acknowledged stays';
	return isOnce && job === undefined
		? `${stays}; import the rest, or all of it from a file or with --job NAME, which --resume can go on with`
		: `${stays}; run the same command with --resume to go on`;
}

/** A fault that may pass (the network, the server, the disk) and has no hint of its own. */
function isUnexplained(error: unknown): boolean {
	const { exit, hint } = classify(error);
	return hint === null && passing.has(exit);
}

const passing: ReadonlySet<ExitCode> = new Set([exits.network, exits.server, exits.disk]);

/** The error to report; before it, the acknowledged counts, unless there are none. */
export async function brokenOff(
	cx: CommandContext,
	error: unknown,
	{
		list,
		totals,
		goOn,
		isResumed,
	}: { list: List; totals: ImportTotals | null; goOn: string; isResumed: boolean },
): Promise<unknown> {
	const hasRows = totals !== null && totals.read > 0;
	if (hasRows) await sayTotals(cx, totals);
	if (isNotFound(error) && (await isListGone(cx, list)))
		return new CliError('not_found', exits.notFound, `list ${list.id} "${list.name}" was deleted meanwhile`, {
			cause: error,
			hint: hasRows ? 'what was imported into it was deleted with it' : 'nothing was imported',
		});
	if (hasRows && classify(error).exit === exits.disk) return ofTheDisk(error, goOn);
	if (hasRows) await cx.hint(goOn);
	else if (isUnexplained(error))
		await cx.hint(
			isResumed ? goOn : 'nothing was acknowledged; once that is mended, run the same command again',
		);
	return isNotFound(error) ? takenOver(error) : error;
}

/** The error with one hint: a disk is mended before the import goes on. */
function ofTheDisk(cause: unknown, goOn: string): CliError {
	const { code, exit, message, retryable } = classify(cause);
	const hint = code === 'disk_full' ? `free some space first; ${goOn}` : goOn;
	return new CliError(code, exit, message, { hint, retryable, cause });
}

/** The list is there, so it is the session that is gone: only another run of the same import ends it. */
function takenOver(cause: unknown): CliError {
	const text = 'another run of the same import, on another machine or from another home, has begun it anew';
	return new CliError('in_use', exits.usage, text, {
		hint: 'wait until that one has ended: it imports the same rows',
		retryable: true,
		cause,
	});
}

function isNotFound(error: unknown): boolean {
	return error instanceof ApiError && error.code === 'not_found';
}

async function isListGone(cx: CommandContext, { id }: List): Promise<boolean> {
	const api = await cx.api();
	return api.lists.get(id, { signal: cx.signal }).then(() => false, isNotFound);
}

async function sayTotals(cx: CommandContext, totals: ImportTotals): Promise<void> {
	await cx.out.document(documentOf(totals), tallySentence(totals));
}

function documentOf({ read, created, updated, unchanged, duplicate, rejected }: ImportTotals) {
	return { read, created, updated, unchanged, duplicate, rejected };
}
