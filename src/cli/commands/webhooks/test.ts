import type { TestResult } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { missing, orNull } from '../../verbs/resolve.js';
import { findWebhook, hookArg, idOf } from './record.js';

export const test = command({
	name: 'test',
	summary: 'send a test notification',
	description:
		'Sends one notification at once. It is not repeated, and `webhooks deliveries` does not list it. A 2xx is success.',
	args: [hookArg],
	examples: ['mailctl webhooks test 3'],
	columns: answer('result', 'status_code', 'error', 'duration_ms'),
	output: 'the service’s answer; the engine’s: {"result", "status_code", "error", "duration_ms"}',
	exits: [3, 9],
	writes: true,
	async run(cx, { args }): Promise<ExitCode> {
		const id = idOf(args.id);
		if (cx.dryRun) {
			await findWebhook(cx, args.id);
			await cx.wouldDo(`send a test notification to webhook ${id}`, { test: id });
			return exits.done;
		}
		const { webhooks } = await cx.api();
		const result = await orNull(webhooks.test(id, { signal: cx.signal }));
		if (result === null) throw missing('webhook', args.id, mailctl('webhooks', 'list'));
		await cx.out.document(result, sentenceOf(result));
		// The document shows no body: only a plain "false" means that the target refused.
		return result.result === false ? exits.partly : exits.done;
	},
});

/** Deployments other than ours may leave any of it out. */
export function sentenceOf({ result, status_code, error, duration_ms }: Partial<TestResult>): string {
	const code = status_code == null ? '' : ` with ${status_code}`;
	const time = typeof duration_ms === 'number' ? ` after ${duration_ms} ms` : '';
	if (result === true) return `the target answered${code}${time}`;
	if (result !== false)
		return 'the test notification was sent; this deployment does not say what became of it';
	const why = typeof error === 'string' && error !== '' ? `: ${error}` : '';
	return code === '' ? `the target was not reached${time}${why}` : `the target refused${code}${time}${why}`;
}
