/** `mailctl webhooks secret`: the key that signs notifications. It is printed in full: it has no other use. */
import { need } from '../../../api/capabilities.js';
import type { SigningSecret } from '../../../api/deliveries.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { type Columns, column } from '../../render/columns.js';
import { findWebhook } from './find.js';

const columns: Columns<SigningSecret> = [
	column('secret', 'SECRET', { isName: true, isWhole: true }),
	column('date_created', 'CREATED', { time: 'text' }),
	column('date_retired', 'SIGNS UNTIL', { time: 'text' }),
];

export const secret = command({
	name: 'secret',
	summary: 'print the secret that signs notifications, or make a new one',
	description:
		'Notifications are signed by Standard Webhooks; one secret signs those of all webhooks. After --rotate the one ' +
		'before signs too, for 24 hours: give the new one to every receiver in that time.',
	args: [{ name: 'id', summary: 'the id of a webhook; any of them has this secret', optional: true }],
	options: { rotate: { kind: 'flag', summary: 'make a new secret' } },
	examples: ['mailctl webhooks secret -o name', 'mailctl webhooks secret --rotate'],
	output: 'an array of secrets, newest first: {"secret", "date_created", "date_retired"}',
	exits: [3],
	writes: true,
	columns,
	async run(cx, { args, options: { rotate } }) {
		const log = await need(await cx.api(), 'deliveries');
		if (args.id !== undefined) await findWebhook(cx, args.id);
		if (rotate && cx.dryRun) return cx.wouldDo('make a new secret for notifications', { rotate: 'secret' });
		const call = { signal: cx.signal };
		if (rotate) await agree(cx, await log.secrets(call));
		const secrets = rotate ? await log.rotateSecret(call) : await log.secrets(call);
		await cx.out.rows(secrets, columns, { all: true });
	},
});

/** At most two secrets sign: a target that does not have the newer one yet would refuse every notification. */
async function agree(cx: CommandContext, [, before]: readonly SigningSecret[]): Promise<void> {
	if (before === undefined || before.date_retired === null) return;
	await cx.confirm({
		kind: 'mild',
		what: `drop the secret that was to sign until ${before.date_retired}: receivers that still have it refuse what comes`,
	});
}
