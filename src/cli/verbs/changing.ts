import type { Api } from '../../api/api.js';
import { ApiError, mayHaveHappened } from '../../api/errors.js';
import type { CommandContext, Foreseen } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { classify } from '../frame/exit.js';
import type { Question } from '../frame/prompts.js';
import { explained, type Refusal } from './refusals.js';

interface Change<T> extends Partial<Refusal> {
	what: string;
	plan: Foreseen;
	question?: Question | undefined;
	make: (api: Api) => Promise<T>;
}

/**
 * The answer of the change; null for a dry run. On a database of this machine a dry run makes the change too, and its
 * connection undoes it: it ends as the change would. A service is not asked to change anything.
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

/** Like `change`. Without a clear answer the error is not retryable, because a repetition may create a second record. */
export async function create<T>(cx: CommandContext, how: Change<T>): Promise<T | null> {
	try {
		return await change(cx, how);
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const { code, exit, message } = classify(error);
		throw new CliError(code, exit, `it may have been created all the same: ${message}`, { cause: error });
	}
}
