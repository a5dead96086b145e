/** `mailctl webhooks delete`. */
import type { Webhook } from '../../../api/records.js';
import { command } from '../../command.js';
import { type ExitCode, exits } from '../../exit.js';
import { agreeToAll, eachOf, nameOrCount } from '../../several.js';
import { findWebhook } from './find.js';

export const deletion = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete webhooks',
	description: 'What waits for them is never sent.',
	args: [{ name: 'id', summary: 'ids of webhooks', many: true }],
	examples: ['mailctl webhooks delete 3 --yes'],
	output: '{"deleted": [ids]}',
	exits: [3, 9],
	writes: true,
	severity: 'mild',
	async run(cx, { args }): Promise<ExitCode> {
		// All are found before any is deleted; each once.
		const found = new Map<number, Webhook>();
		for (const text of args.id) {
			const hook = await findWebhook(cx, text);
			found.set(hook.id, hook);
		}
		const hooks = [...found.values()];
		const what = `delete ${nameOrCount(
			hooks.map(({ type, url }) => `the ${type} webhook to ${url}`),
			'webhooks',
		)}`;
		if (cx.dryRun) {
			await cx.wouldDo(what, { deleted: [...found.keys()] });
			return exits.done;
		}
		await agreeToAll(cx, { what, count: hooks.length, few: 'ask' });
		const { webhooks } = await cx.api();
		const { done, failed } = await eachOf(cx, hooks, ({ id }) => webhooks.delete(id, { signal: cx.signal }));
		const ids = done.map(({ id }) => id);
		const [only] = ids;
		await cx.out.document(
			{ deleted: ids },
			hooks.length === 1 ? `deleted webhook ${only}` : `deleted ${ids.length} of ${hooks.length}`,
		);
		return failed === 0 ? exits.done : exits.partly;
	},
});
