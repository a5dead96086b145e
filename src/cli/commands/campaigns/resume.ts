import { basename } from 'node:path';
import { type Campaign, isOfCalls } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { ApiError } from '../../../api/errors.js';
import { isRefusalOfSender } from '../../../api/pauses.js';
import type { Uuid } from '../../../api/records.js';
import { command } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { ExitCode } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { counted } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { assertConsent } from '../send/begin.js';
import { assertWaits, campaignAnswer, sendOptions } from '../send/options.js';
import { type CampaignPlace, campaignPlace } from '../send/place.js';
import { assertListAllowed, listCampaign, selectionOf } from '../send/recipients.js';
import { assertStaged, type CampaignRun, type RunOptions, runCampaign } from '../send/release.js';
import { assertHonoured } from '../send/request.js';
import { assertResults } from '../send/results.js';
import { type Rest, rowCampaign } from '../send/row-audience.js';
import { openRowsAgain } from '../send/rows.js';
import { foreseeResume } from '../send/stage.js';
import { assertCanDeliver, endOfSend } from '../send/watch.js';
import { campaignArg, chooseUnfinished, findCampaign } from './record.js';

export const resume = command({
	name: 'resume',
	summary: 'resume a campaign that stopped',
	description:
		'Without a name it resumes the only unfinished campaign. Sent messages are not sent again. A campaign that was not ' +
		'released yet needs the same consent as a send. Reads rows that are not staged yet from the same file, or from a ' +
		'copy of it in --source. The rate stays, unless --rate is given.',
	args: [{ ...campaignArg, optional: true }],
	options: {
		source: {
			kind: 'path',
			summary: 'read the rows from this copy of the file; - is standard input',
		},
		expectCount: sendOptions.expectCount,
		maxRecipients: sendOptions.maxRecipients,
		skipInvalid: sendOptions.skipInvalid,
		sample: sendOptions.sample,
		rate: sendOptions.rate,
		connections: sendOptions.connections,
		wait: sendOptions.wait,
		waitTimeout: sendOptions.waitTimeout,
		results: sendOptions.results,
		retryUnknown: sendOptions.retryUnknown,
		failed: { kind: 'flag', summary: 'send failed messages again, unless the address is bad' },
	},
	writes: true,
	columns: campaignAnswer,
	output: 'the campaign and its counts',
	exits: [3, 6, 9, 12, 13, 14, 130],
	examples: [
		'mailctl campaigns resume november',
		'mailctl campaigns resume november --failed',
		'mailctl campaigns resume november --results november.csv',
	],
	whenStopped: endOfSend,
	run: async (cx, { args, options }): Promise<ExitCode | undefined> => {
		assertWaits(options);
		await assertHonoured(cx, options, { isOfRows: true });
		const place = await campaignPlace(cx);
		let campaign =
			args.campaign === undefined
				? await chooseUnfinished(cx, place.campaigns)
				: await findCampaign(cx, place.campaigns, args.campaign);
		if (campaign.state === 'released') await retryRefused(cx, campaign);
		if (options.failed) {
			await retryAll(cx, campaign, 'failed');
			campaign = await findCampaign(cx, place.campaigns, campaign.key);
		}
		if (isOfCalls(campaign))
			throw new UsageError(
				`the campaign ${campaign.id} was released by a single call: there is nothing to go on with`,
			);
		if (campaign.state === 'staged' && !cx.dryRun) {
			await place.hold(campaign.key);
			campaign = await findCampaign(cx, place.campaigns, campaign.key);
		}
		if (campaign.state === 'canceled') throw new UsageError(`the campaign "${campaign.key}" was canceled`);
		const rows = restOf(cx, campaign, options.source);
		const how = { ...options, rate: options.rate ?? (await keptRate(cx, campaign, options)) };
		const run = { ...(await runOf(cx, { place, campaign, rows, options: how })), begun: 'earlier' as const };
		if (campaign.state === 'staged' && !cx.dryRun) assertConsent(cx, options, run.of);
		await assertCanDeliver(cx, options);
		await assertResults(options.results, { place, id: campaign.id });
		if (cx.dryRun) return foresee(cx, { campaign, run, rows });
		return runCampaign(cx, run);
	},
});

/** Makes messages due that are deferred for a refused sender, because whoever resumes has corrected the cause. */
async function retryRefused(cx: CommandContext, campaign: Campaign): Promise<void> {
	if ((await (await cx.api()).capabilities()).ext.messages === undefined || cx.dryRun) return;
	const { replies = [] } = await (await campaignPlace(cx)).campaigns.status(campaign.id);
	if (replies.some(({ state, reply }) => state === 'deferred' && isRefusalOfSender(reply)))
		await retryAll(cx, campaign, 'deferred');
}

const groupSize = 100;

async function retryAll(cx: CommandContext, { id }: Campaign, status: 'failed' | 'deferred'): Promise<void> {
	const messages = await need(await cx.api(), 'messages', '--failed');
	const chosen: Uuid[] = [];
	const filter = { campaign_unique_id: id, status } as const;
	for await (const one of walk(messages, filter, { signal: cx.signal }))
		if (status === 'failed' || isRefusalOfSender(one.last_reply ?? '')) chosen.push(one.id);
	if (chosen.length === 0) return;
	if (cx.dryRun) return cx.note(`${counted(chosen.length, 'failed message')} would be sent again`);
	let queued = 0;
	for (let at = 0; at < chosen.length; at += groupSize) {
		const group = chosen.slice(at, at + groupSize).map((one) => messages.retry(one));
		for (const one of await Promise.allSettled(group))
			if (one.status === 'fulfilled') queued += 1;
			// A message whose content or recipient was deleted stays failed.
			else if (!(one.reason instanceof ApiError && one.reason.code === 'invalid')) throw one.reason;
	}
	if (queued > 0) await cx.note(`${counted(queued, `${status} message`)} queued again`);
}

async function keptRate(
	cx: CommandContext,
	{ rate, is_finished }: Pick<Campaign, 'rate' | 'is_finished'>,
	{ wait }: Pick<RunOptions, 'wait'>,
): Promise<string | undefined> {
	const { local } = await cx.connection();
	if (rate === undefined || is_finished || local === null || wait === false) return undefined;
	await cx.note(`at ${rate}, as before; --rate names another`);
	return rate;
}

async function foresee(
	cx: CommandContext,
	{ campaign, run, rows }: { campaign: Campaign; run: CampaignRun; rows: Rest },
): Promise<undefined> {
	await (await rows?.())?.close();
	if (campaign.state === 'staged' && campaign.is_complete && !isOverList(campaign))
		await assertStaged(cx, run);
	await foreseeResume(cx, campaign);
}

function isOverList({ source, list_id, position }: Campaign): boolean {
	return source === null && list_id !== null && position === 0;
}

async function runOf(
	cx: CommandContext,
	{
		place,
		campaign,
		rows,
		options,
	}: {
		place: CampaignPlace;
		campaign: Campaign;
		rows: Rest;
		options: RunOptions & { source: string | undefined };
	},
): Promise<Omit<CampaignRun, 'begun'>> {
	const { id, key: name, list_id, position } = campaign;
	const isBulk = () => campaign.type === 'BULK';
	const run = { place, id, name, content: null, isBulk, options };
	const subject = campaign.subject ?? '';
	if (list_id !== null && isOverList(campaign)) {
		const selection = await selectionOf(cx, campaign, list_id);
		if (campaign.state === 'staged') for (const list of selection.lists) await assertListAllowed(cx, list.id);
		return listCampaign(cx, { ...run, selection, subject });
	}
	const path = campaign.source?.['path'];
	const of = path === undefined ? `the campaign "${name}"` : basename(path);
	const { source } = options;
	return rowCampaign(cx, { ...run, source, position, of, rows, subject: campaign.requests ? null : subject });
}

/** Reads the remaining rows, only from a file with the original content, so that other people get no mail. */
function restOf(cx: CommandContext, campaign: Campaign, given: string | undefined): Rest {
	if (isOverList(campaign) || campaign.is_complete || campaign.state !== 'staged') return null;
	const { key, source, position } = campaign;
	const file = given === undefined ? source?.['path'] : inputName(given);
	if (source === null || file === undefined) throw notFromFile({ key, source, position });
	return async () => {
		const rows = await openRowsAgain(cx, file, source);
		if (rows !== null) return rows;
		const name = file === '-' ? 'standard input' : file;
		throw new UsageError(`the campaign "${key}" was begun with another file than ${name}; nothing was sent`, {
			hint: '--source FILE names what it was begun with',
		});
	};
}

/** A pipe can send its rows again; only the caller of the API has the rows of an API call. */
function notFromFile({ key, source, position }: Pick<Campaign, 'key' | 'source' | 'position'>): UsageError {
	const rows = counted(position, 'row');
	const again = [
		mailctl('campaigns', 'resume', key, '--source', '-'),
		' goes on with the same from standard input, ',
	];
	return new UsageError(
		`the campaign "${key}" was broken off after ${rows} that came from no file; nothing was sent`,
		{ hint: [...(source === null ? [] : again), mailctl('campaigns', 'cancel', key), ' drops it'] },
	);
}
