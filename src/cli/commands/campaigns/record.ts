import type { Call } from '../../../api/api.js';
import {
	type Campaign,
	type CampaignFigures,
	type CampaignMessages,
	type CampaignStatus,
	type Campaigns,
	campaignState,
	isOfCalls,
} from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { isForbidden } from '../../../api/errors.js';
import type { Uuid } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { exits } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { given } from '../../frame/values.js';
import { didYouMean } from '../../frame/words.js';
import { type Columns, column } from '../../render/columns.js';
import type { Times } from '../../render/times.js';
import { attachmentLines, counted, numberText, replyText } from '../../render/units.js';
import { collect, walk } from '../../verbs/listing.js';
import { isUuid, orNull } from '../../verbs/resolve.js';

export const campaignArg = {
	name: 'campaign',
	summary: 'a name or a UUID',
	of: 'campaign',
	ask: 'Which campaign:',
} as const;

type Pages = Pick<Campaigns, 'page'>;

export async function lookUpCampaign(campaigns: Pages, text: string, call: Call = {}) {
	const filter = isUuid(text) ? { id: text.toLowerCase() } : { key: text };
	const { results } = await campaigns.page({ ...filter, page_size: 1 }, call);
	return results.find(({ id, key }) => id === filter.id || key === filter.key);
}

export async function findCampaign(cx: CommandContext, campaigns: Pages, text: string): Promise<Campaign> {
	const found = await lookUpCampaign(campaigns, text, { signal: cx.signal });
	if (found !== undefined) return found;
	const request = { ordering: '-date_created', page_size: mostNames } as const;
	const { results } = await campaigns.page(request, { signal: cx.signal });
	const names = isUuid(text) ? [] : results.map(({ key }) => key);
	const hint = didYouMean(text, names) ?? mailctl('campaigns', 'list');
	throw new CliError('not_found', exits.notFound, `campaign "${text}" not found`, { hint });
}

const mostNames = 1_000;

export async function campaignIdOf(cx: CommandContext, text: string | undefined): Promise<Uuid | undefined> {
	if (text === undefined || isUuid(text)) return text?.toLowerCase();
	const campaigns = await need(await cx.api(), 'campaigns', 'names of campaigns');
	return (await findCampaign(cx, campaigns, text)).id;
}

/** Without a terminal, throws `UsageError` if several campaigns are unfinished. */
export async function chooseUnfinished(cx: CommandContext, campaigns: Campaigns): Promise<Campaign> {
	const having = (state: 'sending' | 'staged') =>
		collect(walk(campaigns, { state, ordering: '-date_created' } as const, { signal: cx.signal }));
	const found = [...(await having('sending')), ...(await having('staged'))];
	const [only, ...others] = found;
	const hint = mailctl('campaigns', 'list');
	if (only === undefined)
		throw new CliError('not_found', exits.notFound, 'there is no unfinished campaign', { hint });
	if (others.length === 0) return only;
	const choices = found.map((value) => ({ name: described(value, cx.times), value }));
	if (cx.canAsk) return cx.choose('Which one?', choices);
	const what = `${numberText(found.length)} campaigns are unfinished; give the name of one`;
	throw new UsageError(what, { details: choices.map(({ name }) => name) });
}

function described({ key, state, counts, date_released, date_created }: Campaign, times: Times): string {
	const what = state === 'staged' ? 'staged' : 'sending';
	const when = times.moment(date_released ?? date_created);
	return `${key} (${what}, ${counted(counts.staged, 'message')}, ${when})`;
}

const untold = {
	...{ opened: null, machine_opened: null, clicked: null, machine_clicked: null },
	...{ unsubscribed: null, bounced: null, softbounced: null, hardbounced: null },
};

type CampaignRecord = ReturnType<typeof recordOf>;

export function recordOf(campaign: Campaign, sent: number) {
	const { key, id, type, subject, list_id, source, counts, date_created, date_released } = campaign;
	const joined = joinedTo(campaign);
	return {
		...{ name: key, id, state: campaignState(campaign), type, subject, list_id, source },
		...{ date_created, date_released, ...given({ date_dropped: campaign.date_dropped }) },
		recipients: counts.staged + leftOutOf(counts) + joined,
		...counts,
		...(joined > 0 && { joined }),
		...given({ plan: campaign.plan }),
		...rowsOf(campaign),
		sent,
		...(campaign.figures === null ? untold : toldBy(campaign.figures)),
	};
}

function toldBy({ created: _, sent: __, softbounced, hardbounced, ...figures }: CampaignFigures) {
	return { ...figures, bounced: softbounced + hardbounced, softbounced, hardbounced };
}

function joinedTo(campaign: Campaign): number {
	const { figures, counts, date_released } = campaign;
	if (figures === null || isOfCalls(campaign)) return 0;
	return Math.max(0, figures.created - (date_released === null ? 0 : counts.staged));
}

export function leftOutOf({ suppressed, rejected, left_out = 0 }: Campaign['counts']): number {
	return suppressed + rejected + left_out;
}

export function sentOf({ figures }: Campaign, { messages }: Pick<CampaignStatus, 'messages'>): number {
	return figures?.sent ?? messages.accepted ?? 0;
}

type CampaignDetail = ReturnType<typeof detailOf>;

export function detailOf(campaign: Campaign, status: CampaignStatus) {
	const record = recordOf({ ...campaign, ...status }, sentOf(campaign, status));
	const { attachments, replies } = status;
	const { audience } = campaign;
	return { ...record, messages: messagesOf(status), ...given({ replies, attachments, audience }) };
}

function messagesOf({ messages, joined = {} }: CampaignStatus): CampaignMessages {
	const sums = { ...messages };
	for (const [state, count] of Object.entries(joined) as [keyof CampaignMessages, number][])
		sums[state] = (sums[state] ?? 0) + count;
	return sums;
}

/** Counts the rows read so far. For a campaign of lists, counts the subscribers that are staged or left out. */
function rowsOf(campaign: Campaign): { rows: number; is_complete: boolean } {
	const { position, is_complete, counts, date_released, source } = campaign;
	if (source !== null || position > 0) return { rows: position, is_complete };
	return { rows: counts.staged + leftOutOf(counts), is_complete: is_complete || date_released !== null };
}

const count = { align: 'right', isCount: true } as const;

export const listColumns: Columns<CampaignRecord> = [
	column('name', 'NAME', { isName: true, isKept: 'name' }),
	column('state', 'STATE'),
	{
		key: 'start',
		header: 'START',
		time: 'recent',
		value: ({ date_created, date_released, plan }) =>
			plan?.starts_at ?? plan?.opens_at ?? date_released ?? date_created,
	},
	column('recipients', 'RECIPIENTS', { ...count, isOptional: true }),
	column('sent', 'SENT', count),
	column('opened', 'OPENED', count),
	column('clicked', 'CLICKED', count),
	column('bounced', 'BOUNCED', count),
	column('subject', 'SUBJECT', { wide: true }),
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('unsubscribed', 'UNSUBSCRIBED', { wide: true, ...count }),
	column('machine_opened', 'BOT OPENS', { wide: true, ...count }),
	column('id', 'ID', { wide: true, isWhole: true }),
];

export const detailColumns: Columns<CampaignDetail> = [
	column('name', 'NAME', { isName: true, isKept: 'name' }),
	column('id', 'ID', { isWhole: true }),
	column('state', 'STATE'),
	column('type', 'TYPE'),
	column('subject', 'SUBJECT'),
	column('list_id', 'LIST'),
	{ key: 'source', header: 'SOURCE', value: ({ source }) => source?.['path'] ?? null },
	column('date_created', 'CREATED', { time: 'text' }),
	column('date_released', 'RELEASED', { time: 'text' }),
	{
		key: 'starts_at',
		header: 'STARTS',
		value: ({ plan }) => plan?.opens_at ?? plan?.starts_at ?? null,
		time: 'text',
	},
	{
		key: 'window',
		header: 'WINDOW',
		value: ({ plan }) => (plan?.window ? `${plan.window} ${plan.time_zone}` : null),
	},
	column('rows', 'ROWS READ', { isCount: true }),
	column('is_complete', 'ALL ROWS READ'),
	column('recipients', 'RECIPIENTS', { isCount: true }),
	column('suppressed', 'SUPPRESSED', { isCount: true }),
	column('rejected', 'LEFT OUT', {
		value: ({ rejected, left_out = 0 }) => rejected + left_out,
		isCount: true,
	}),
	column('messages', 'MESSAGES', { value: messagesText }),
	column('sent', 'SENT', { isCount: true }),
	column('opened', 'OPENED', { isCount: true }),
	column('machine_opened', 'BOT OPENS', { isCount: true }),
	column('clicked', 'CLICKED', { isCount: true }),
	column('machine_clicked', 'BOT CLICKS', { isCount: true }),
	column('unsubscribed', 'UNSUBSCRIBED', { isCount: true }),
	column('softbounced', 'SOFT BOUNCES', { isCount: true }),
	column('hardbounced', 'HARD BOUNCES', { isCount: true }),
	column('attachments', 'ATTACHED', { lines: ({ attachments }) => attachmentLines(attachments) }),
	column('replies', 'REPLIES', { lines: ({ replies = [] }) => replies.map(replyText) }),
];

export async function showDetail(cx: CommandContext, detail: CampaignDetail): Promise<void> {
	const names = isTable(cx.out.format) ? await listNames(cx, detail) : [];
	const named = (one: (typeof detailColumns)[number]) =>
		names.length > 0 && one.key === 'list_id' ? { ...one, value: () => names.join(', ') } : one;
	await cx.out.record(detail, detailColumns.map(named));
}

export async function listNames(cx: CommandContext, { list_id, audience }: CampaignDetail) {
	const ids = audience?.lists ?? (list_id === null ? [] : [list_id]);
	const { lists } = await cx.api();
	const nameOf = async (id: number) => {
		const list = await orNull(lists.get(id, { signal: cx.signal })).catch((error: unknown) => {
			if (isForbidden(error)) return null;
			throw error;
		});
		return list?.name ?? String(id);
	};
	return Promise.all(ids.map(nameOf));
}

/** Returns `20 sent; 3 of them from send --to`, or `20 sent; keep_messages began to delete messages on 2026-11-01`. */
function messagesText({ messages, joined, date_dropped }: CampaignDetail): string {
	const states = Object.entries(messages)
		.map(([state, count]) => `${numberText(count)} ${state}`)
		.join(', ');
	const day = date_dropped?.slice(0, 10);
	return [
		states,
		// After retention, `messages` may lack messages that `send --to` added, so omit the number of added messages.
		...(joined === undefined || day !== undefined ? [] : [`${numberText(joined)} of them from send --to`]),
		...(day === undefined ? [] : [`keep_messages began to delete messages on ${day}`]),
	].join('; ');
}
