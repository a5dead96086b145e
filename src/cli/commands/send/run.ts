/** A campaign: released in one stroke, delivered, gone on with. What its rows are is the caller's. */

import { isDeepStrictEqual } from 'node:util';
import type { AcceptCounts, CampaignStatus } from '../../../api/campaigns.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { paced } from '../../frame/values.js';
import { lookUpCampaign } from '../campaigns/find.js';
import { detailOf, showDetail } from '../campaigns/record.js';
import { afterAcceptance, concludeDelivery, defaultWaitMs, noneSent } from './deliver.js';
import type { CampaignDelivery } from './place.js';
import { type CampaignRun, type RunOptions, release } from './release.js';
import {
	asDelivered,
	describe,
	documentOf,
	type Outcomes,
	outcomesOf,
	progressOf,
	recipientsOf,
	sentenceOf,
	waitingOf,
} from './report.js';
import { isAhead, leavePlanned } from './timing.js';

/** In a script both are wanted, so that neither a habit nor a grown list sends by itself. */
export function assertConsent(cx: CommandContext, { expectCount }: RunOptions, what: string): void {
	if (cx.canAsk) return;
	const isYes = cx.globals.yes === true;
	if (isYes && expectCount !== undefined) return;
	const count = '--expect-count N, N being the recipients you expect';
	const missing = isYes ? count : expectCount === undefined ? `--yes ${count}` : '--yes';
	throw new UsageError(`sending to ${what} needs consent`, { hint: `add ${missing}` });
}

/** From wherever the campaign stands to the end. */
export async function runCampaign(cx: CommandContext, campaign: CampaignRun): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const { state } = await place.campaigns.status(id);
	if (state === 'canceled') throw wasCanceled(name);
	if (state === 'released') return goOn(cx, campaign);
	await release(cx, campaign);
	return deliver(cx, campaign, null);
}

/** The refusal to begin under the name of a campaign that was canceled. */
export function wasCanceled(name: string): UsageError {
	return new UsageError(`the campaign "${name}" was canceled; give another name`);
}

/** Messages sent by earlier runs are reported apart from those of this one. */
async function goOn(cx: CommandContext, campaign: CampaignRun): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	const before = outcomesOf(status.messages);
	if (!isFinished(status.messages)) {
		// Kept on this machine, it may be in the hands of another process, which is known only when it is taken.
		const goesOn = place.isForeign ? '' : ': going on with it';
		await cx.note(`the campaign "${name}" is released already${goesOn}`);
		return deliver(cx, campaign, before);
	}
	const sentence = `the campaign "${name}" is finished: ${progressOf(before, null)}`;
	const outcome = { kind: 'settled', reason: null, counts: asDelivered(before), warnings: [] } as const;
	const end = { waiting: 0, campaign: { name, sentence } };
	// The sentence is the answer: it stands above the card.
	const code = await concludeDelivery(cx, outcome, end);
	await showFinished(cx, campaign, status);
	await concludeResults(campaign);
	return codeOf(cx, code, status);
}

/** A person gets it as `campaigns get` has it. */
async function showFinished(
	cx: CommandContext,
	{ place, id }: CampaignRun,
	status: CampaignStatus,
): Promise<void> {
	const found = isTable(cx.out.format) ? await lookUpCampaign(place.campaigns, id) : undefined;
	if (found === undefined) await cx.out.document(documentOf(status));
	else await showDetail(cx, detailOf(found, status));
}

/** Nothing of it waits to be sent, as what is deferred does, and nothing is to be decided about what is uncertain. */
function isFinished(messages: CampaignStatus['messages']): boolean {
	const { deferred = 0, uncertain = 0 } = messages;
	return waitingOf(messages) + deferred + uncertain === 0;
}

/** `before`: what earlier runs came to; null when this is the first. */
async function deliver(
	cx: CommandContext,
	campaign: CampaignRun,
	before: Outcomes | null,
): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	const { counts, replies: known } = status;
	await cx.note(`campaign ${name}, ${id}`);
	if (isAhead(status.plan)) return leavePlanned(cx, status);
	const run = () => deliverReleased(cx, campaign, { counts, before, known });
	// What waits on this machine was accepted by no service.
	return place.isForeign ? run() : afterAcceptance(cx, name, run);
}

async function deliverReleased(
	cx: CommandContext,
	campaign: CampaignRun,
	{
		counts,
		before,
		known,
	}: { counts: AcceptCounts; before: Outcomes | null; known: CampaignStatus['replies'] },
): Promise<ExitCode> {
	const { place, id, name, options } = campaign;
	const { local } = await cx.connection();
	if (options.rate !== undefined) await local?.queue.keepRate(id, options.rate);
	const outcome = await place.deliver(id, deliveryOf(cx, campaign, counts)).catch(async (error: unknown) => {
		await leaveResults(cx, campaign);
		throw error;
	});
	const after = await place.campaigns.status(id);
	// Before the results: the command ends with a file that cannot be written.
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	if (outcome?.kind === 'stopped') await leaveResults(cx, campaign);
	else await concludeResults(campaign);
	if (outcome === null) return codeOf(cx, exits.done, after);
	const all = outcomesOf(after.messages);
	// Of one look, as what waits is: the sending process may have gone on since the last look at the delivery.
	const sentence = before === null ? sentenceOf(all) : progressOf(all, before);
	const isNews = before === null || (outcome.isTried ?? !isDeepStrictEqual(known, after.replies));
	const replies = isNews ? after.replies : undefined;
	const end = {
		waiting: waitingOf(after.messages),
		campaign: { name, rate: options.rate, sentence, ...(replies && { replies }) },
	};
	return codeOf(cx, await concludeDelivery(cx, { ...outcome, counts: asDelivered(all) }, end), after);
}

function deliveryOf(
	cx: CommandContext,
	{ name, options }: CampaignRun,
	{ staged }: AcceptCounts,
): CampaignDelivery {
	return {
		campaign: name,
		total: staged,
		signal: cx.signal,
		stallMs: options.waitTimeout ?? defaultWaitMs,
		waits: options.wait !== false,
		...paced(options.rate),
		...(options.connections !== undefined && { connections: options.connections }),
		...(options.retryUnknown && { retriesUnknown: true }),
	};
}

/** The results of what is sent: where they cannot be written, nothing of it is lost. */
async function concludeResults({ name, options, writeResults }: CampaignRun): Promise<void> {
	if (options.results === undefined) return;
	try {
		await writeResults(options.results, { isDropped: false });
	} catch (error) {
		const later = mailctl('campaigns', 'results', name, '--save', 'FILE');
		throw hinted(error, [['what was sent is sent, and is kept: ', later, ' writes the results']]);
	}
}

/** Writes the known results at an early end. The cause of the end is reported, whether this works or not. */
async function leaveResults(cx: CommandContext, { name, options, writeResults }: CampaignRun): Promise<void> {
	if (options.results === undefined) return;
	try {
		await writeResults(options.results, { isDropped: false });
	} catch (error) {
		await cx.warn(`--results: ${options.results} is not written: ${classify(error).message}`, [
			mailctl('campaigns', 'resume', name, '--results', options.results),
			' writes it',
		]);
	}
}

/** `partly` (9) where recipients were left out or no recipient gets the mail, however well the rest went. */
async function codeOf(
	cx: CommandContext,
	code: ExitCode,
	{ counts, messages }: CampaignStatus,
): Promise<ExitCode> {
	if (code !== exits.done) return code;
	const isUnsent = recipientsOf(counts) > 0 && !hasGone(messages);
	if (isUnsent) await cx.warn(noneSent);
	return isUnsent || counts.rejected > 0 ? exits.partly : code;
}

/** Something of it was sent, or may be yet. */
function hasGone({ canceled: _, ...others }: CampaignStatus['messages']): boolean {
	return Object.values(others).some((count) => count > 0);
}
