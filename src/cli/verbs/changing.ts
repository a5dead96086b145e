import { createInterface } from 'node:readline';
import type { Api } from '../../api/api.js';
import { ApiError, mayHaveHappened } from '../../api/errors.js';
import type { CommandContext, Foreseen } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { classify, type ExitCode, exits } from '../frame/exit.js';
import type { Question } from '../frame/prompts.js';
import type { Columns } from '../render/columns.js';
import { counted, numberText } from '../render/units.js';
import { explained, type Refusal } from './refusals.js';

interface Change<T> extends Partial<Refusal> {
	what: string;
	plan: Foreseen;
	question?: Question | undefined;
	make: (api: Api) => Promise<T>;
}

/**
 * Makes a change and returns the answer. A dry run returns null. In a local database, a dry run makes the change and
 * rolls it back, so a dry run finds the same errors. A dry run sends no change to a service.
 */
export async function change<T>(
	cx: CommandContext,
	{ what, plan, question, make, input = {}, ...refusal }: Change<T>,
): Promise<T | null> {
	if (cx.dryRun) {
		const { api, local } = await cx.connection();
		if (local !== null) await explained(make(api), { input, ...refusal });
		await cx.wouldDo(what, plan);
		return null;
	}
	if (question !== undefined) await cx.confirm(question);
	return explained(make(await cx.api()), { input, ...refusal });
}

/**
 * Like `change`. If the answer is lost, throws an error that is not retryable, because a retry may create a second
 * record.
 */
export async function create<T>(cx: CommandContext, how: Change<T>): Promise<T | null> {
	try {
		return await change(cx, how);
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const { code, exit, message } = classify(error);
		throw new CliError(code, exit, `the record may have been created: ${message}`, { cause: error });
	}
}

const severeCount = 100;

export async function findEach<T extends { id: number | string }>(
	names: Iterable<string> | AsyncIterable<string>,
	find: (name: string) => Promise<T>,
): Promise<readonly T[]> {
	const found = new Map<T['id'], T>();
	for await (const name of names) {
		const one = await find(name);
		found.set(one.id, one);
	}
	return [...found.values()];
}

interface SeveralQuestion {
	what: string;
	count: number;
	few: 'ask' | 'go on';
}

export async function agreeToAll(cx: CommandContext, { what, count, few }: SeveralQuestion): Promise<void> {
	// If the user gives `--confirm COUNT`, check the count even for few records.
	if (count > severeCount || cx.globals.confirm !== undefined)
		await cx.confirm({ kind: 'severe', what, name: String(count) });
	else if (few === 'ask') await cx.confirm({ kind: 'mild', what });
}

export function nameOrCount(names: readonly string[], plural: string): string {
	const [only] = names;
	return names.length === 1 && only !== undefined ? only : `${numberText(names.length)} ${plural}`;
}

export interface Outcome<T> {
	done: T[];
	failed: number;
}

export async function deleteEach<T extends { id: number | string }>(
	cx: CommandContext,
	records: readonly T[],
	noun: string,
	remove: (record: T) => Promise<void>,
): Promise<ExitCode> {
	const { done, failed } = await eachOf(cx, records, remove);
	const count = failed === 0 ? '' : `${numberText(done.length)} of `;
	const deleted = done.map(({ id }) => id);
	await cx.out.document({ deleted }, `deleted ${count}${counted(records.length, noun)}`);
	return failed === 0 ? exits.done : exits.partly;
}

/** If one of several records is refused or missing, warns and continues. Any other error ends the run. */
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
	} catch (error) {
		progress.stop();
		if (done.length > 0)
			await cx.warn(`stopped after ${numberText(done.length)} of ${numberText(records.length)}`);
		throw error;
	}
	progress.stop();
	return { done, failed };
}

interface Changes<T extends { id: number | string }, R> extends Omit<SeveralQuestion, 'what' | 'count'> {
	what: (records: readonly T[]) => string;
	plan: (ids: readonly T['id'][]) => Foreseen;
	make: (record: T) => Promise<R>;
	columns: Columns<R>;
}

export async function changeEach<T extends { id: number | string }, R>(
	cx: CommandContext,
	records: readonly T[],
	{ what, few, plan, make, columns }: Changes<T, R>,
): Promise<{ changed: readonly R[]; exit: ExitCode }> {
	if (!cx.dryRun) await agreeToAll(cx, { what: what(records), count: records.length, few });
	const isSkipped = cx.dryRun && (await cx.connection()).local === null;
	const changed: R[] = [];
	const { done, failed } = await eachOf(cx, records, async (record) => {
		if (!isSkipped) changed.push(await make(record));
	});
	if (cx.dryRun) await cx.wouldDo(what(done), plan(done.map(({ id }) => id)));
	else await cx.out.rows(changed, columns, { all: true });
	return { changed, exit: failed === 0 ? exits.done : exits.partly };
}

function isRefusal(error: unknown): error is ApiError {
	return (
		error instanceof ApiError &&
		['not_found', 'invalid', 'conflict', 'permission_denied'].includes(error.code)
	);
}

export async function* namesOf(cx: CommandContext, texts: readonly string[]): AsyncGenerator<string> {
	for (const text of texts) {
		if (text !== '-') {
			yield text;
			continue;
		}
		const input = cx.sources.stdin('-');
		for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
			if (line.trim() !== '') yield line.trim();
		}
	}
}
