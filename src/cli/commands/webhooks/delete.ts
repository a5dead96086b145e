/** `mailctl webhooks delete`. */
import { withoutSecrets } from '../../../api/quote.js';
import type { Webhook } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { answer } from '../../render/columns.js';
import { agreeToAll, deleteEach, findEach, nameOrCount } from '../../verbs/bulk.js';
import { findWebhook } from './find.js';

export const deletion = command({
	name: 'delete',
	aliases: ['rm'],
	summary: 'delete webhooks',
	description: 'What waits for them is never sent.',
	args: [{ name: 'id', summary: 'ids of webhooks', many: true, of: 'webhook', ask: 'Which webhook:' }],
	examples: ['mailctl webhooks delete 3 --yes'],
	columns: answer('deleted'),
	output: '{"deleted": [ids]}',
	exits: [3, 9],
	writes: true,
	severity: 'mild',
	async run(cx, { args }): Promise<ExitCode> {
		const hooks = await findEach(args.id, (text) => findWebhook(cx, text));
		const what = `delete ${nameOrCount(
			hooks.map(({ type, url }) => `the ${type} webhook to ${withoutSecrets(url)}`),
			'webhooks',
		)}`;
		if (cx.dryRun) {
			await cx.wouldDo(what, { delete: hooks.map(({ id }) => id) });
			return exits.done;
		}
		await agreeToAll(cx, { what, count: hooks.length, few: 'ask' });
		const { webhooks } = await cx.api();
		const remove = ({ id }: Webhook) => webhooks.delete(id, { signal: cx.signal });
		const again = (rest: readonly Webhook[]) =>
			mailctl('webhooks', 'delete', ...rest.map(({ id }) => String(id)), '--yes');
		return deleteEach(cx, hooks, { noun: 'webhook', remove, again });
	},
});
