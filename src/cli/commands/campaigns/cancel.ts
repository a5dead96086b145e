/** `campaigns cancel`: drops what is staged, or what a released campaign has not sent. */

import { setTimeout as delay } from 'node:timers/promises';
import { type Campaign, type CampaignStatus, type Campaigns, campaignState } from '../../../api/campaigns.js';
import { command } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { counted, numberText } from '../../render/units.js';
import { campaignPlace } from '../send/begin.js';
import { describe, outcomesOf, progressOf } from '../send/report.js';
import { campaignArg, findCampaign } from './find.js';
import { detailColumns, detailOf } from './record.js';

/** For messages that are under way. */
const longestWaitMs = 10_000;
const pollMs = 200;

export const cancel = command({
	name: 'cancel',
	summary: 'drop what is staged, or what a released campaign has not sent',
	description:
		'Waits up to 10 s for what is being sent, and says how many messages may still be sent after that.',
	args: [campaignArg],
	writes: true,
	severity: 'mild',
	columns: detailColumns,
	output: 'the campaign, as campaigns get shows it',
	exits: [3],
	examples: ['mailctl campaigns cancel november --yes', 'mailctl campaigns cancel november --dry-run'],
	run: (cx, { args }) => cancelNamed(cx, args.campaign),
});

async function cancelNamed(cx: CommandContext, text: string): Promise<void> {
	const { campaigns } = await campaignPlace(cx);
	const campaign = await findCampaign(cx, campaigns, text);
	const { id, key, state } = campaign;
	const what = await consequence(campaigns, campaign);
	if (cx.dryRun && state !== 'canceled')
		return cx.wouldDo(what, { cancel: key, state: campaignState(campaign) });
	const { messages } = await campaigns.status(id, { signal: cx.signal });
	const tell = async (sentence: (status: CampaignStatus) => string) => {
		const status = await campaigns.status(id, { signal: cx.signal });
		await cx.out.document(detailOf(campaign, status), sentence(status));
	};
	if (state === 'released' && openOf(messages) === 0) {
		await cx.note(`nothing to cancel: ${progressOf(outcomesOf(messages), null)}`);
		return tell(({ counts }) => describe(counts));
	}
	if (state !== 'canceled') {
		await cx.confirm({ kind: 'mild', what });
		await campaigns.cancel(id, { signal: cx.signal });
		// Each worker gives back within a second what it has not begun.
		const end = performance.now() + longestWaitMs;
		while (
			performance.now() < end &&
			openOf((await campaigns.status(id, { signal: cx.signal })).messages) > 0
		)
			await delay(pollMs, undefined, { signal: cx.signal });
	}
	if (state === 'canceled') await cx.note(`the campaign "${key}" was canceled before`);
	await tell(({ messages }) => canceledOf(key, messages));
}

async function consequence(campaigns: Campaigns, { id, key, state, counts }: Campaign): Promise<string> {
	if (state !== 'released')
		return `drop the campaign "${key}" and its ${counted(counts.staged, 'staged message')}`;
	const { queued = 0, deferred = 0 } = (await campaigns.status(id)).messages;
	return `cancel the ${counted(queued + deferred, 'message')} of the campaign "${key}" not sent yet`;
}

/** What is being sent cannot be called back, but may still come back to the queue. */
function openOf({ staged = 0, queued = 0, deferred = 0, leased = 0 }: CampaignStatus['messages']): number {
	return staged + queued + deferred + leased;
}

/** `2,277 canceled; 57,558 had been sent, 5 may still be sent`. */
function canceledOf(key: string, messages: CampaignStatus['messages']): string {
	const { canceled = 0, accepted, sent = accepted ?? 0, leased = 0 } = messages;
	if (canceled + sent + leased === 0) return `the campaign "${key}" is dropped; nothing of it was sent`;
	const left = leased > 0 ? `, ${numberText(leased)} may still be sent` : '';
	const had = accepted === undefined ? 'sent' : 'taken by the service';
	return `${numberText(canceled)} canceled; ${numberText(sent)} had been ${had}${left}`;
}
