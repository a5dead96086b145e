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
import {
	assertConsent,
	assertStaged,
	type CampaignRun,
	type Recipients,
	runCampaign,
} from '../send/campaign.js';
import { assertCanDeliver, endOfSend } from '../send/delivery.js';
import { assertWaits, campaignAnswer, type RunOptions, sendOptions } from '../send/options.js';
import { campaignPlace } from '../send/place.js';
import { assertListsAllowed, sayListNames, selectionOf, stageLists } from '../send/recipients.js';
import { assertResults } from '../send/report.js';
import { assertHonoured } from '../send/request.js';
import type { Rest } from '../send/rows.js';
import { foreseeResume } from '../send/stage.js';
import { campaignArg, chooseUnfinished, findCampaign } from './record.js';

export const resume = command({
	name: 'resume',
	summary: 'resume a campaign that stopped',
	description:
		'Without a name, resumes the only unfinished campaign. Sent messages are not sent again. If the campaign is not ' +
		'released yet, the command needs the same confirmation as a send. If some rows are not staged yet, the command reads ' +
		'the original file, or the copy that --source names. The rate stays, unless --rate is given.',
	args: [{ ...campaignArg, optional: true }],
	options: {
		source: { kind: 'path', summary: 'read the rows from this copy of the file; - is standard input' },
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
		await assertHonoured(cx, options, true);
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
				`the campaign ${campaign.id} was released by a single call: there is nothing to resume`,
			);
		if (campaign.state === 'staged' && !cx.dryRun) {
			await place.hold(campaign.key);
			campaign = await findCampaign(cx, place.campaigns, campaign.key);
		}
		if (campaign.state === 'canceled') throw new UsageError(`the campaign "${campaign.key}" was canceled`);
		const rows = restOf(cx, campaign, options.source);
		const rate = options.rate ?? (await keptRate(cx, campaign, options));
		const recipients = await recipientsOf(cx, campaign, rows, options.source);
		const run: CampaignRun = {
			...{ cx, place, session: campaign, begun: 'earlier', recipients },
			options: { ...options, rate },
		};
		if (campaign.state === 'staged' && !cx.dryRun) assertConsent(cx, options, recipients.of);
		await assertCanDeliver(cx, options);
		await assertResults(options.results, { place, id: campaign.id });
		if (!cx.dryRun) return runCampaign(run);
		await (await rows?.())?.close();
		if (campaign.state === 'staged' && campaign.is_complete && !isOverList(campaign)) await assertStaged(run);
		return foreseeResume(cx, campaign);
	},
});

/**
 * Retries messages that the server deferred because it refused the sender. A user who resumes has corrected the sender.
 */
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

type Waiting = Pick<RunOptions, 'wait'>;

async function keptRate(cx: CommandContext, { rate, is_finished }: Campaign, { wait }: Waiting) {
	const { local } = await cx.connection();
	if (rate === undefined || is_finished || local === null || wait === false) return undefined;
	await cx.note(`still at ${rate}; --rate changes the rate`);
	return rate;
}

/** A campaign of rows can have a `list_id` too, but its `position` is not 0. */
function isOverList({ source, list_id, position }: Campaign): boolean {
	return source === null && list_id !== null && position === 0;
}

type Source = string | undefined;

async function recipientsOf(cx: CommandContext, campaign: Campaign, rows: Rest, source: Source) {
	const { key, list_id, state } = campaign;
	const subject = campaign.subject ?? '';
	const shared = { draft: null, isBulk: campaign.type === 'BULK' };
	if (list_id !== null && isOverList(campaign)) {
		const selection = await selectionOf(cx, campaign, list_id);
		if (state === 'staged') await assertListsAllowed(cx, selection);
		const stage: Recipients['stage'] = (place, session) => stageLists(cx, place, session, selection);
		return { ...shared, of: sayListNames(selection), selection, subject, stage };
	}
	const path = campaign.source?.['path'];
	const of = path === undefined ? `the campaign "${key}"` : basename(path);
	const stage: Recipients['stage'] = async (place, session) => {
		const { stageRest } = await import('../send/rows.js');
		return stageRest(cx, place, session, { of, rows });
	};
	return {
		...shared,
		of,
		selection: null,
		subject: campaign.requests ? null : subject,
		again: source,
		stage,
	};
}

/** The returned function throws if the file has changed, because other people could get the mail. */
function restOf(cx: CommandContext, campaign: Campaign, given: string | undefined): Rest {
	if (isOverList(campaign) || campaign.is_complete || campaign.state !== 'staged') return null;
	const { key, source } = campaign;
	const file = given === undefined ? source?.['path'] : inputName(given);
	if (source === null || file === undefined) throw notFromFile(campaign);
	return async () => {
		const { openRowsAgain } = await import('../send/rows.js');
		const rows = await openRowsAgain(cx, file, source);
		if (rows !== null) return rows;
		const name = file === '-' ? 'standard input' : file;
		throw new UsageError(
			`the campaign "${key}" was started with a different file than ${name}; nothing was sent`,
			{ hint: 'give the original file with --source FILE' },
		);
	};
}

/** Suggests piping the rows again if they came from a pipe. This command cannot get rows that an API client sent. */
function notFromFile({ key, source, position }: Campaign): UsageError {
	const again = mailctl('campaigns', 'resume', key, '--source', '-');
	const hint = [mailctl('campaigns', 'cancel', key), ' drops it'];
	const rows = counted(position, 'row');
	const what = `the campaign "${key}" stopped after ${rows}, and its rows did not come from a file; nothing was sent`;
	return new UsageError(what, {
		hint: source === null ? hint : [again, ' continues with the same rows from standard input, ', ...hint],
	});
}
