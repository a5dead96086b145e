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
import { isForbidden } from '../../../api/errors.js';
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
import { walk } from '../../verbs/listing.js';
import { isUuid, orNull } from '../../verbs/resolve.js';

export const campaignArg = {
	name: 'campaign',
	summary: 'its name or UUID',
	of: 'campaign',
	ask: 'Which campaign:',
} as const;

export async function lookUpCampaign(
	campaigns: Pick<Campaigns, 'page'>,
	text: string,
	call: Call = {},
): Promise<Campaign | undefined> {
	const filter = isUuid(text) ? { id: text.toLowerCase() } : { key: text };
	const { results } = await campaigns.page({ ...filter, page_size: 1 }, call);
	return results.find(({ id, key }) => id === filter.id || key === filter.key);
}

export async function findCampaign(
	cx: CommandContext,
	campaigns: Campaigns,
	text: string,
): Promise<Campaign> {
	const found = await lookUpCampaign(campaigns, text, { signal: cx.signal });
	if (found !== undefined) return found;
	const request = { ordering: '-date_created', page_size: mostNames } as const;
	const { results } = await campaigns.page(request, { signal: cx.signal });
	const near = isUuid(text)
		? null
		: didYouMean(
				text,
				results.map(({ key }) => key),
			);
	throw new CliError('not_found', exits.notFound, `campaign "${text}" not found`, {
		hint: near ?? mailctl('campaigns', 'list'),
	});
}

const mostNames = 1_000;

/** Returns the only unfinished campaign. Among several, a person chooses; a script gets their names (exit code 2). */
export async function chooseUnfinished(cx: CommandContext, campaigns: Campaigns): Promise<Campaign> {
	const found: Campaign[] = [];
	for (const state of ['sending', 'staged'] as const)
		for await (const one of walk(campaigns, { state, ordering: '-date_created' } as const, {
			signal: cx.signal,
		}))
			found.push(one);
	const [only, ...others] = found;
	if (only === undefined)
		throw new CliError('not_found', exits.notFound, 'no campaign is unfinished', {
			hint: mailctl('campaigns', 'list'),
		});
	if (others.length === 0) return only;
	if (!cx.canAsk)
		throw new UsageError(`${numberText(found.length)} campaigns are unfinished; give the name of one`, {
			details: found.map((one) => described(one, cx.times)),
		});
	return cx.choose(
		'Which one?',
		found.map((value) => ({ name: described(value, cx.times), value })),
	);
}

function described({ key, state, counts, date_released, date_created }: Campaign, times: Times): string {
	const what = state === 'staged' ? 'staged' : 'sending';
	const when = times.moment(date_released ?? date_created);
	return `${key} (${what}, ${counted(counts.staged, 'message')}, ${when})`;
}

const untold = {
	opened: null,
	machine_opened: null,
	clicked: null,
	machine_clicked: null,
	unsubscribed: null,
	bounced: null,
	softbounced: null,
	hardbounced: null,
};

export type CampaignRecord = ReturnType<typeof recordOf>;

export function recordOf(campaign: Campaign, sent: number) {
	const { key, id, type, subject, list_id, source, counts, date_created, date_released } = campaign;
	const joined = joinedTo(campaign);
	return {
		name: key,
		id,
		state: campaignState(campaign),
		type,
		subject,
		list_id,
		source,
		date_created,
		date_released,
		...given({ date_dropped: campaign.date_dropped }),
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

/** Counts recipients without a message: suppressed, rejected, or not in the audience. */
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
	return {
		...record,
		messages: messagesOf(status),
		...given({ replies, attachments, audience }),
	};
}

function messagesOf({ messages, joined = {} }: CampaignStatus): CampaignMessages {
	const sums = { ...messages };
	for (const [state, count] of Object.entries(joined) as [keyof CampaignMessages, number][])
		sums[state] = (sums[state] ?? 0) + count;
	return sums;
}

/** Counts the rows read from a file, or the people of a list, which is complete at the release. */
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
	column('machine_opened', 'MACHINE OPENED', { wide: true, ...count }),
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
	column('is_complete', 'ALL READ'),
	column('recipients', 'RECIPIENTS', { isCount: true }),
	column('suppressed', 'SUPPRESSED', { isCount: true }),
	{
		key: 'rejected',
		header: 'LEFT OUT',
		value: ({ rejected, left_out = 0 }) => rejected + left_out,
		isCount: true,
	},
	{ key: 'messages', header: 'MESSAGES', value: messagesText },
	column('sent', 'SENT', { isCount: true }),
	column('opened', 'OPENED', { isCount: true }),
	column('machine_opened', 'MACHINE OPENED', { isCount: true }),
	column('clicked', 'CLICKED', { isCount: true }),
	column('machine_clicked', 'MACHINE CLICKED', { isCount: true }),
	column('unsubscribed', 'UNSUBSCRIBED', { isCount: true }),
	column('softbounced', 'SOFT BOUNCES', { isCount: true }),
	column('hardbounced', 'HARD BOUNCES', { isCount: true }),
	{
		key: 'attachments',
		header: 'ATTACHED',
		value: ({ attachments }: CampaignDetail) => attachments,
		lines: ({ attachments }: CampaignDetail) => attachmentLines(attachments),
	},
	{
		key: 'replies',
		header: 'REPLIES',
		value: ({ replies }: CampaignDetail) => replies,
		lines: ({ replies = [] }: CampaignDetail) => replies.map(replyText),
	},
];

export async function showDetail(cx: CommandContext, detail: CampaignDetail): Promise<void> {
	const names = isTable(cx.out.format) ? await listNames(cx, detail) : [];
	const named = (one: (typeof detailColumns)[number]) =>
		names.length > 0 && one.key === 'list_id' ? { ...one, value: () => names.join(', ') } : one;
	await cx.out.record(detail, detailColumns.map(named));
}

export async function listNames(
	cx: CommandContext,
	{ list_id, audience }: Pick<CampaignDetail, 'list_id' | 'audience'>,
): Promise<string[]> {
	const ids = audience?.lists ?? (list_id === null ? [] : [list_id]);
	const { lists } = await cx.api();
	const nameOf = async (id: number) => {
		const list = await orNull(lists.get(id, { signal: cx.signal })).catch(unlessForbidden);
		return list?.name ?? String(id);
	};
	return Promise.all(ids.map(nameOf));
}

function unlessForbidden(error: unknown): null {
	if (isForbidden(error)) return null;
	throw error;
}

/** `20 sent, 1 bounced`, how many of them joined the campaign, and when retention deleted them. */
function messagesText({ messages, joined, date_dropped }: CampaignDetail): string {
	const states = Object.entries(messages)
		.map(([state, count]) => `${numberText(count)} ${state}`)
		.join(', ');
	const day = date_dropped?.slice(0, 10);
	return [
		states,
		// The counts of deleted messages by state do not include joined ones.
		...(joined === undefined || day !== undefined ? [] : [`${numberText(joined)} joined by send --to`]),
		...(day === undefined ? [] : [`deleted since ${day} (keep_messages)`]),
	].join('; ');
}
