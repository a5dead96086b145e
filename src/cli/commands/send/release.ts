import { isDeepStrictEqual } from 'node:util';
import type { AcceptCounts, CampaignStatus } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits, hinted } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { counted } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { detailOf, lookUpCampaign, showDetail } from '../campaigns/record.js';
import { type Begun, wasCanceled } from './begin.js';
import { type Prepared, warnOfContent, warnOfLinks } from './content.js';
import type { SendOptions } from './options.js';
import type { CampaignPlace } from './place.js';
import type { Selection } from './recipients.js';
import {
	assertExpected,
	describe,
	documentOf,
	Findings,
	noRecipients,
	outcomesOf,
	reasonsOf,
	recipientsOf,
	sayCounts,
	sayOutcomes,
	sender,
	waitingOf,
} from './report.js';
import { sayPlan } from './request.js';
import { eachResult, writeCampaign } from './results.js';
import { afterAcceptance, concludeDelivery, noneSent } from './watch.js';

export type RunOptions = Pick<
	SendOptions,
	'expectCount' | 'maxRecipients' | 'skipInvalid' | 'sample' | 'results' | 'wait' | 'waitTimeout'
> &
	Pick<SendOptions, 'rate' | 'connections' | 'retryUnknown'>;

export interface CampaignRun {
	place: CampaignPlace;
	id: string;
	name: string;
	begun: Begun;
	options: RunOptions;
	/** The recipients in sentences: `list 1 "Readers"`, `people.csv`. */
	of: string;
	subject: string | null;
	/** Null for rows. */
	selection: Selection | null;
	content: Prepared | null;
	/** The `--source` that another run needs, because the rows came through a pipe. */
	source?: string | undefined;
	isBulk(): boolean;
	/** Returns the first errors of recipients. */
	stage(): Promise<readonly string[]>;
}

export async function runCampaign(cx: CommandContext, campaign: CampaignRun): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	if (status.state === 'canceled') throw wasCanceled(name);
	if (status.state === 'staged') await release(cx, campaign);
	else if (isFinished(status)) return reportFinished(cx, campaign, status);
	// Another process may hold a campaign that this machine keeps, which shows only when it is taken.
	else await cx.note(`the campaign "${name}" is released already${place.isForeign ? '' : ': resuming it'}`);
	return deliver(cx, campaign, status.replies);
}

export async function assertStaged(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	assertCount(campaign, (await assertSendable(cx, campaign, [])).counts);
}

/**
 * Stages and checks, and releases nothing where a check fails. A campaign that this run began is dropped if the user or a
 * refusal ends the run; one with a made-up name always, because the user has not seen that name.
 */
async function release(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	const { begun, name } = campaign;
	let step: 'staging' | 'counting' | 'asking' | 'releasing' = 'staging';
	try {
		const errors = await campaign.stage();
		cx.signal.throwIfAborted();
		const status = await assertSendable(cx, campaign, errors);
		step = 'counting';
		assertCount(campaign, status.counts);
		step = 'asking';
		await agree(cx, campaign, status);
		cx.signal.throwIfAborted();
		step = 'releasing';
		await releaseOnce(campaign, status.counts.staged);
	} catch (error) {
		// A campaign whose release got no answer may be on its way, so it is not dropped.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		const isEnded = step === 'asking' || (step === 'staging' && error instanceof UsageError);
		const isDropped = begun === 'unnamed' || (begun === 'named' && isEnded);
		if (isDropped) await drop(cx, campaign);
		const rest = campaign.source === undefined ? [] : ['--source', campaign.source];
		const resume = [mailctl('campaigns', 'resume', name, ...rest), ' continues'];
		if (cx.signal.aborted)
			await cx.hint(
				isDropped ? `nothing was sent, and "${name}" is dropped` : ['nothing was sent; ', ...resume],
			);
		else if (!isDropped && error instanceof Declined)
			throw new Declined({ done: 'nothing was sent', hint: resume });
		throw error;
	}
}

/** A release without a clear answer may have happened; only the campaign itself can tell. Exit 13 where it cannot. */
async function releaseOnce(
	{ place: { campaigns }, id, name }: CampaignRun,
	expect_count: number,
): Promise<void> {
	try {
		await campaigns.release(id, { expect_count });
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const state = (await campaigns.status(id).catch(() => null))?.state ?? null;
		if (state === 'released') return;
		// An error that the service itself answered is done with by now.
		const isError = error.http !== null && error.http.status >= 500;
		if (state !== null && isError && !error.unanswered) throw error;
		const message = `the campaign may or may not be released: ${error.message}`;
		throw new CliError('uncertain', exits.uncertain, message, {
			hint: [mailctl('campaigns', 'resume', name), ': no recipient gets it twice'],
			cause: error,
		});
	}
}

/** The first error is the one to report: a second one only gets a line. A released campaign stays. */
async function drop(cx: CommandContext, { place: { campaigns }, id, name }: CampaignRun): Promise<void> {
	try {
		await campaigns.cancel(id, { forget: true });
	} catch (error) {
		if (error instanceof ApiError && (error.code === 'conflict' || error.code === 'not_found')) return;
		await cx.warn(`what was staged as "${name}" could not be dropped`);
	}
}

async function assertSendable(
	cx: CommandContext,
	{ place, id, begun, name, options, selection, of }: CampaignRun,
	errors: readonly string[],
): Promise<CampaignStatus> {
	const status = await place.campaigns.status(id);
	const { counts, lists = [] } = status;
	const all = recipientsOf(counts) + counts.rejected;
	if (all === 0 && options.expectCount !== 0)
		throw noRecipients(of, selection === null ? [] : sayCounts(lists, selection));
	if (counts.rejected === 0) return status;
	const findings = new Findings(cx);
	if (selection !== null && !place.isForeign) findings.addOfLists(reasonsOf(lists), errors);
	else
		for await (const { line, to, code, text } of eachResult(cx, place.campaigns, id, { only: 'findings' }))
			findings.add({ line, to, code, text: text ?? '' });
	if (!options.skipInvalid) throw findings.refusal(all, begun === 'earlier' ? name : null);
	await findings.warn(cx, all, true);
	return status;
}

function assertCount({ begun, name, of, options }: CampaignRun, counts: AcceptCounts): void {
	// The list of an earlier run may have changed since.
	const counted = begun === 'earlier' ? `the campaign "${name}", staged by an earlier run,` : of;
	const stays = ['it stays staged: ', mailctl('campaigns', 'cancel', name), ' frees its name'];
	assertExpected(recipientsOf(counts), counted, options, begun === 'unnamed' ? [] : [stays]);
}

const shownSample = 3;

async function agree(cx: CommandContext, campaign: CampaignRun, status: CampaignStatus): Promise<void> {
	const { options, of, subject, selection, content } = campaign;
	const { counts } = status;
	await cx.note(`${describe(counts)} of ${of}`);
	for (const line of selection === null ? [] : sayCounts(status.lists ?? [], selection)) await cx.note(line);
	if (content !== null) await warnOfContent(cx, content);
	await warnOfLinks(cx, campaign.isBulk());
	if (options.expectCount !== undefined && cx.globals.yes === true) return;
	const shown = await firstAddresses(cx, campaign, options.sample ?? shownSample);
	// One a line: a terminal would break them anywhere.
	const more = shown.length < counts.staged ? ['  …'] : [];
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`), ...more]);
	const mail = `send${subject === null ? '' : ` "${subject}"`} to ${counted(counts.staged, 'recipient')}`;
	const plan = status.plan && sayPlan({ ...status.plan, opens_at: status.plan.starts_at }, cx.times);
	await cx.confirm({ kind: 'mild', what: plan ? `${mail}, ${plan}` : mail });
}

async function firstAddresses(
	cx: CommandContext,
	{ place, id, selection }: CampaignRun,
	most: number,
): Promise<string[]> {
	const shown: string[] = [];
	if (most === 0) return shown;
	if (selection !== null && !place.isForeign) {
		const messages = await need(await cx.api(), 'messages');
		const filter = { campaign_unique_id: id };
		for await (const { to } of walk(messages, filter, { signal: cx.signal, limit: most })) shown.push(to);
		return shown;
	}
	for await (const { state, to } of eachResult(cx, place.campaigns, id)) {
		if (state !== 'rejected' && state !== 'suppressed') shown.push(to);
		if (shown.length >= most) break;
	}
	return shown;
}

function isFinished({ messages }: CampaignStatus): boolean {
	const { deferred = 0, uncertain = 0 } = messages;
	return waitingOf(messages) + deferred + uncertain === 0;
}

async function reportFinished(
	cx: CommandContext,
	campaign: CampaignRun,
	status: CampaignStatus,
): Promise<ExitCode> {
	await cx.note(`the campaign "${campaign.name}" is finished: ${sayOutcomes(status.messages)}`);
	const found = isTable(cx.out.format)
		? await lookUpCampaign(campaign.place.campaigns, campaign.id)
		: undefined;
	if (found === undefined) await cx.out.document(documentOf(status));
	else await showDetail(cx, detailOf(found, status));
	await writeResults(cx, campaign);
	const { bounced, failed } = outcomesOf(status.messages);
	return codeOf(cx, bounced + failed > 0 ? exits.partly : exits.done, status);
}

/** `known`: replies of an earlier run, read before the release: a fast server sends all of it before the answer. */
async function deliver(
	cx: CommandContext,
	campaign: CampaignRun,
	known: CampaignStatus['replies'],
): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	await cx.note(`campaign ${name}, ${id}`);
	const plan = sayPlan(status.plan, cx.times);
	if (plan !== null) {
		await cx.out.document(documentOf(status), `released: ${describe(status.counts)}`);
		await cx.note(plan);
		await cx.hint(['nothing leaves before; ', await sender(cx), ' has to run then']);
		return exits.done;
	}
	const run = () => deliverReleased(cx, campaign, { counts: status.counts, known });
	// No service has accepted what waits on this machine.
	return place.isForeign ? run() : afterAcceptance(cx, name, run);
}

async function deliverReleased(
	cx: CommandContext,
	campaign: CampaignRun,
	{ counts, known }: Pick<CampaignStatus, 'counts'> & { known: CampaignStatus['replies'] },
): Promise<ExitCode> {
	const { place, id, name, options } = campaign;
	const { local } = await cx.connection();
	if (options.rate !== undefined) await local?.queue.keepRate(id, options.rate);
	const outcome = await place.deliver(id, counts.staged, options).catch(async (error: unknown) => {
		// The cause of the early end is reported, whether the results can be written or not.
		await writeResults(cx, campaign).catch(() => undefined);
		throw error;
	});
	// One moment for all counts: the sending process may have continued since the last look at the delivery.
	const after = await place.campaigns.status(id);
	// Before the results: the command ends with a file that cannot be written.
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	await writeResults(cx, campaign);
	const summary = outcome && { ...outcome, counts: outcomesOf(after.messages) };
	const replies = isDeepStrictEqual(known, after.replies) ? [] : after.replies;
	const end = { name, sentence: sayOutcomes(after.messages), replies };
	const code = await concludeDelivery(cx, summary, { waiting: waitingOf(after.messages), campaign: end });
	return codeOf(cx, code, after);
}

/** An error of the results says that nothing of what was sent is lost. */
async function writeResults(
	cx: CommandContext,
	{ place, id, name, options, selection }: CampaignRun,
): Promise<void> {
	if (options.results === undefined) return;
	try {
		await writeCampaign(cx, place, id, { isRows: selection === null, path: options.results });
	} catch (error) {
		const later = mailctl('campaigns', 'results', name, '--save', 'FILE');
		throw hinted(error, [['only the results are missing: ', later, ' writes them']]);
	}
}

/** `partly` (9) where recipients were left out or no recipient gets the mail, however well the rest went. */
async function codeOf(
	cx: CommandContext,
	code: ExitCode,
	{ counts, messages }: CampaignStatus,
): Promise<ExitCode> {
	if (code !== exits.done) return code;
	const { canceled: _, ...others } = messages;
	const isUnsent = recipientsOf(counts) > 0 && Object.values(others).every((count) => count === 0);
	if (isUnsent) await cx.warn(noneSent);
	return isUnsent || counts.rejected > 0 ? exits.partly : code;
}
