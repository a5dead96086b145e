/** `mailctl webhooks test`: one test notification, and the answer of its target. */

import type { TestResult } from '../../../api/records.js';
import { codeOfText } from '../../../api/refusals.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { isRecordId, missing, orNull } from '../../verbs/resolve.js';
import { allowPrivateTargets } from './targets.js';

export const test = command({
	name: 'test',
	summary: 'send a test notification',
	description:
		'At once and only once: nothing repeats it, and `webhooks deliveries` does not list it. What the target answers with 2xx is fine.',
	args: [{ name: 'id', summary: 'the id of a webhook', of: 'webhook', ask: 'Which webhook:' }],
	examples: ['mailctl webhooks test 3'],
	columns: answer('result', 'status_code', 'error', 'duration_ms'),
	output: 'the service’s answer; the engine’s: {"result", "status_code", "error", "duration_ms"}',
	exits: [3, 9],
	writes: true,
	async run(cx, { args }): Promise<ExitCode | undefined> {
		const id = idOf(args.id);
		const api = await cx.api();
		if (cx.dryRun && (await orNull(api.webhooks.get(id, { signal: cx.signal }))) === null)
			throw missing('webhook', args.id, mailctl('webhooks', 'list'));
		if (cx.dryRun)
			return cx.wouldDo(`send a test notification to webhook ${id}`, { test: id }).then(() => undefined);
		const answer = await orNull(api.webhooks.test(id, { signal: cx.signal }));
		if (answer === null) throw missing('webhook', args.id, mailctl('webhooks', 'list'));
		await cx.out.document(answer, sentenceOf(answer));
		// The document shows no body: only a plain "false" means that the target refused.
		if (answer.result !== false) return exits.done;
		await hintTarget(cx, answer);
		return exits.partly;
	},
});

/** An id in its canonical form: a number from 1. Throws `UsageError`. */
export function idOf(text: string): number {
	if (!isRecordId(text))
		throw new UsageError(`"${text}" is no id of a webhook`, { hint: mailctl('webhooks', 'list') });
	return Number(text);
}

/** Deployments other than ours may leave any of it out. */
export function sentenceOf({ result, status_code, error, duration_ms }: Partial<TestResult>): string {
	const code = status_code === null || status_code === undefined ? '' : ` with ${status_code}`;
	const time = typeof duration_ms === 'number' ? ` after ${duration_ms} ms` : '';
	if (result === true) return `the target answered${code}${time}`;
	if (result !== false)
		return 'the test notification was sent; this deployment does not say what became of it';
	const why = typeof error === 'string' && error !== '' ? `: ${error}` : '';
	return status_code === null || status_code === undefined
		? `the target was not reached${time}${why}`
		: `the target refused${code}${time}${why}`;
}

/** The way out, where the deployment refuses targets of this machine. */
export async function hintTarget(cx: CommandContext, { error }: Partial<TestResult>): Promise<void> {
	if (typeof error !== 'string' || codeOfText(error) !== 'private_target') return;
	const { local } = await cx.connection();
	await cx.hint([allowPrivateTargets(local), ' allows such targets']);
}
