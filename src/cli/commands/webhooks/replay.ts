/** `mailctl webhooks replay`: notifications that were delivered, failed or stopped, once more; or sooner. */

import { need } from '../../../api/capabilities.js';
import type { ReplayRequest } from '../../../api/deliveries.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import { UsageError } from '../../frame/errors.js';
import { answer } from '../../render/columns.js';
import { counted } from '../../render/units.js';
import { beginningOf } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { deliveryId, findDelivery } from './deliveries.js';
import { findWebhook } from './find.js';

export const replay = command({
	name: 'replay',
	summary: 'send notifications once more',
	description:
		'Under the ids they had, so that a receiver that has seen one knows it, and by the whole schedule again; "serve" or ' +
		'"worker" sends them. One that waits for its next attempt and is named is due at once, and goes on in its schedule. ' +
		'A webhook that was stopped by a 410 goes on.',
	args: [
		{ name: 'id', summary: 'the id of a webhook', of: 'webhook', ask: 'Which webhook:' },
		{ name: 'delivery', summary: 'UUIDs of deliveries, those that wait too', optional: true, many: true },
	],
	options: {
		failed: { kind: 'flag', summary: 'all that failed or were stopped' },
		since: {
			kind: 'date',
			summary: 'all that were made on this day or later; with --failed, those of them',
		},
	},
	examples: ['mailctl webhooks replay 3 --failed', 'mailctl webhooks replay 3 --since 7d'],
	columns: answer('replayed'),
	output: '{"replayed": N}',
	exits: [3, 5],
	writes: true,
	async run(cx, { args, options: { failed, since } }) {
		const named = [...new Set(args.delivery.map(deliveryId))];
		if (named.length === 0 && !failed && since === undefined)
			throw new UsageError('nothing says what to replay; give ids of deliveries, --failed or --since');
		if (named.length > 0 && (failed || since !== undefined))
			throw new UsageError('ids of deliveries cannot be given with --failed or --since');
		const log = await need(await cx.api(), 'deliveries');
		const { id } = await findWebhook(cx, args.id);
		// All are found before any is sent.
		for (const uuid of named) await findDelivery(cx, log, { webhookId: id, id: uuid });
		const what: ReplayRequest = {
			...(named.length > 0 && { deliveries: named }),
			...(failed && { failed }),
			...(since !== undefined && { since: beginningOf(cx, since) }),
		};
		const told = { input: what, hint: () => mailctl('webhooks', 'deliveries', String(id)) };
		const { local } = await cx.connection();
		// Undone where it is a database of this machine; elsewhere only the service knows.
		const replaying = () => explained(log.replay(id, what, { signal: cx.signal }), told);
		if (cx.dryRun) {
			if (local !== null) await replaying();
			return cx.wouldDo(`replay deliveries of webhook ${id}`, { replay: id, with: what });
		}
		const replayed = await replaying();
		await cx.out.document(
			{ replayed },
			`${replayed} ${replayed === 1 ? 'delivery is' : 'deliveries are'} due now`,
		);
		if (named.length > 0) return;
		const { count } = await log.page(id, { state: 'pending', page_size: 1 }, { signal: cx.signal });
		const waiting = count - replayed;
		if (waiting > 0)
			await cx.hint([
				`${counted(waiting, 'other waits', 'others wait')} for the next try; one that is named is due at once: `,
				mailctl('webhooks', 'deliveries', String(id), '--state', 'pending'),
			]);
	},
});
