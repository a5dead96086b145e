/** `mailctl webhooks test`: one test notification, and what its target said. */
import type { TestResult } from '../../../api/records.js';
import { command } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { type ExitCode, exits } from '../../exit.js';
import { isRecordId } from '../../ids.js';
import { missing, orNull } from '../../resolve.js';
import { allowPrivateTargets } from './targets.js';

export const test = command({
	name: 'test',
	summary: 'send a test notification',
	description: 'At once and only once: nothing repeats it. What the target answers with 2xx is fine.',
	args: [{ name: 'id', summary: 'the id of a webhook' }],
	examples: ['mailctl webhooks test 3'],
	output: 'the service’s answer; the engine’s: {"result", "status_code", "error", "duration_ms"}',
	exits: [3, 9],
	writes: true,
	async run(cx, { args }): Promise<ExitCode | undefined> {
		const id = idOf(args.id);
		const api = await cx.api();
		if (cx.dryRun)
			return cx.wouldDo(`send a test notification to webhook ${id}`, { test: id }).then(() => undefined);
		const answer = await orNull(api.webhooks.test(id, { signal: cx.signal }));
		if (answer === null) throw missing('webhook', args.id, 'mailctl webhooks list');
		await cx.out.document(answer, sentenceOf(answer));
		// The document shows no body: only a plain "false" says that the target refused.
		if (answer.result !== false) return exits.done;
		await hint(cx, answer);
		return exits.partly;
	},
});

/** An id as it is written: a number from 1. Throws `UsageError`. */
export function idOf(text: string): number {
	if (!isRecordId(text))
		throw new UsageError(`"${text}" is no id of a webhook`, { hint: 'mailctl webhooks list' });
	return Number(text);
}

/** Deployments other than ours may leave any of it out. */
function sentenceOf({ result, status_code, error, duration_ms }: Partial<TestResult>): string {
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

async function hint(cx: CommandContext, { error }: Partial<TestResult>): Promise<void> {
	if (typeof error !== 'string' || !/private|loopback|reserved|link-local/i.test(error)) return;
	const { local } = await cx.connection();
	await cx.hint(`${allowPrivateTargets(cx, local)} allows such targets`);
}
