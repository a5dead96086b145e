/** `campaigns list`, `campaigns get`: which campaigns there are, and where each stands. */

import {
	type Campaign,
	type CampaignFilter,
	type Campaigns,
	campaignState,
	campaignStates,
	isOfCalls,
} from '../../../api/campaigns.js';
import { isHeldReason, pauseSentence } from '../../../api/pauses.js';
import { command } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isMachine } from '../../frame/globals.js';
import { beginningOf, listOptions, listRows, type Walk, walk } from '../../verbs/listing.js';
import { noSender, onItsMachine, resumeQueue, senderless } from '../../verbs/refusals.js';
import { watched, watchOption } from '../../verbs/watching.js';
import { campaignPlace } from '../send/begin.js';
import { placeToTell } from '../send/rows.js';
import { campaignArg, findCampaign } from './find.js';
import {
	type CampaignDetail,
	type CampaignRecord,
	detailColumns,
	detailOf,
	listColumns,
	recordOf,
	sentOf,
	showDetail,
} from './record.js';

const listed =
	'an array of campaigns: {"name", "id", "state", "type", "subject", "list_id", "source", "date_created", ' +
	'"date_released", "recipients" (those left out too), "joined" (those of send --to, where there are any), "staged", "suppressed", "rejected" (left out), "rows" (read), "is_complete" (all read), "sent", "opened", ' +
	'"machine_opened", "clicked", "machine_clicked", "unsubscribed", "bounced", "softbounced", "hardbounced"}; opened and ' +
	'clicked are by people, null what a service of others does not tell';

const filterOptions = {
	since: { kind: 'date', summary: 'only those released, or else begun, on this day or later' },
	state: { kind: 'choice', choices: campaignStates, summary: 'only those in this state' },
	sort: listOptions.sort,
	limit: listOptions.limit,
	all: listOptions.all,
} as const;

interface ListOptions {
	since?: string | undefined;
	state?: CampaignFilter['state'];
	sort?: string | undefined;
	limit?: number | undefined;
	all: boolean;
}

export const list = command({
	name: 'list',
	aliases: ['ls'],
	summary: 'list campaigns, newest first',
	description:
		'A single call (send --bulk --to) is in no list: get, results, report, links and cancel know it by its UUID.',
	options: { ...filterOptions, watch: watchOption },
	columns: listColumns,
	output: listed,
	examples: ['mailctl campaigns list', 'mailctl campaigns list --state sending -o json'],
	run: (cx, { options }) => watched(cx, options.watch, (cx) => listCampaigns(cx, options)),
});

export const get = command({
	name: 'get',
	summary: 'show where a campaign stands',
	description: 'With --watch it looks until the campaign is finished or canceled, and then ends with 0.',
	args: [campaignArg],
	options: { watch: watchOption },
	columns: detailColumns,
	output:
		'the campaign as campaigns list has it, with "messages": {"sent": 2, "queued": 1, …}, and of one to lists "audience": {"lists", "exclude_lists", "where", …}',
	exits: [3],
	examples: ['mailctl campaigns get november', 'mailctl campaigns get november -o json'],
	run: (cx, { args, options }) => watched(cx, options.watch, (cx) => showNamed(cx, args.campaign)),
});

async function listCampaigns(cx: CommandContext, options: ListOptions): Promise<undefined> {
	const { campaigns } = await campaignPlace(cx);
	const { since, state, ...how } = options;
	const filter: CampaignFilter = {
		ordering: '-date_created',
		...(since !== undefined && { since: beginningOf(cx, since) }),
		...(state !== undefined && { state }),
	};
	const shown: Campaign[] = [];
	const rows = (limit: number | undefined) => records(cx, campaigns, filter, { limit, shown });
	await listRows(cx, how, { columns: listColumns, rows });
	await sayWhatHolds(cx, shown);
}

type Waiting = Pick<Campaign, 'id' | 'key' | 'state' | 'is_finished' | 'plan'>;

/** Tells a person why messages of these campaigns are not sent, and what sends them. */
async function sayWhatHolds(cx: CommandContext, campaigns: readonly Waiting[]): Promise<void> {
	const { messages } = (await (await cx.api()).capabilities()).ext;
	const waiting = campaigns.filter((one) => ['sending', 'planned'].includes(campaignState(one)));
	const [first] = waiting;
	if (isMachine(cx.out.format) || messages === undefined || first === undefined) return;
	const { paused, has_worker } = await messages.progress({ campaign: first.id }, { signal: cx.signal });
	if (isHeldReason(paused)) return cx.hint(await onItsMachine(cx, ['the queue is paused: ', resumeQueue]));
	// The hours of the others are over for today.
	const due = waiting.filter((one) => campaignState(one) === 'sending' && !one.plan?.opens_at);
	if (due.length === 0) return;
	if (has_worker === false) await cx.hint(await wayToSend(cx, due));
	else if (paused !== null) await cx.warn(pauseSentence(paused));
}

/** The campaign of a single call has no name to resume. */
async function wayToSend(cx: CommandContext, due: readonly Waiting[]): Promise<Hint> {
	const { local } = await cx.connection();
	if (local === null) return senderless(cx);
	const [first, ...others] = due;
	const one = first !== undefined && others.length === 0 ? first : null;
	const next = await local.queue.nextDue(one?.id ?? null);
	if (next !== null && next > cx.clock.now())
		return [`nothing is due before ${cx.times.moment(next)}; `, mailctl('worker'), ' sends it then'];
	if (one !== null && !isOfCalls(one))
		return [noSender, mailctl('campaigns', 'resume', one.key), ' sends the rest'];
	return [noSender, mailctl('worker', '--drain'), ' sends what is due'];
}

/** Only where no figures are kept a campaign's messages are counted, when it is shown. `shown` gets each campaign. */
function records(
	cx: CommandContext,
	campaigns: Campaigns,
	filter: CampaignFilter,
	{ limit, shown }: { limit: number | undefined; shown: Campaign[] },
): Walk<CampaignRecord> {
	const { signal } = cx;
	const all = walk(campaigns, filter, { signal, limit });
	async function* each(): AsyncGenerator<CampaignRecord> {
		for await (const campaign of all) {
			const { figures, id } = campaign;
			const messages = figures === null ? (await campaigns.status(id, { signal })).messages : {};
			shown.push(campaign);
			yield recordOf(campaign, sentOf(campaign, { messages }));
		}
	}
	return { [Symbol.asyncIterator]: each, count: all.count };
}

/** 0 once nothing about it changes by itself any more. */
async function showNamed(cx: CommandContext, text: string): Promise<ExitCode | undefined> {
	const { campaigns } = await campaignPlace(cx);
	const { state } = await showCampaign(cx, campaigns, await findCampaign(cx, campaigns, text));
	return state === 'finished' || state === 'canceled' ? exits.done : undefined;
}

/** Everything about it, and how one that is not released goes on. */
export async function showCampaign(
	cx: CommandContext,
	campaigns: Campaigns,
	campaign: Campaign,
): Promise<CampaignDetail> {
	const status = await campaigns.status(campaign.id, { signal: cx.signal });
	const detail = detailOf(campaign, status);
	await showDetail(cx, detail);
	await sayWhatHolds(cx, [status]);
	if (status.state !== 'staged') return detail;
	const { source, is_complete, key } = campaign;
	const piped = !is_complete && source !== null && placeToTell(source) !== undefined;
	await cx.hint(mailctl('campaigns', 'resume', key, ...(piped ? ['--source', '-'] : [])));
	return detail;
}
