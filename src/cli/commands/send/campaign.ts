/** Stages and checks an opened campaign, asks for confirmation, then releases and delivers it. */

import { isDeepStrictEqual } from 'node:util';
import type { AcceptCounts, CampaignSession, CampaignStatus } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import { take } from '../../../api/pages.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits, hinted } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { counted } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';
import { sayWhatHolds } from '../../verbs/refusals.js';
import { detailOf, lookUpCampaign, showDetail } from '../campaigns/record.js';
import { afterAcceptance, concludeDelivery, exitOf } from './delivery.js';
import { type Draft, warnOfLinks } from './draft.js';
import type { RunOptions } from './options.js';
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

export interface Recipients {
	/** The name of the recipients in sentences: `list 1 "Readers"`, `people.csv`. */
	readonly of: string;
	/** Null if the recipients are rows. */
	readonly selection: Selection | null;
	/** Null for requests, because each has its own subject. */
	readonly subject: string | null;
	/** Null if each request has its own content, or if an earlier run has printed the warnings. */
	readonly draft: Draft | null;
	readonly isBulk: boolean;
	/** The `--source` that another run needs, because the rows came through a pipe. */
	readonly again?: string | undefined;
	/** Returns the first errors of recipients. */
	stage(place: CampaignPlace, session: CampaignSession): Promise<readonly string[]>;
}

/**
 * Who began the campaign: this run under a given name (`named`) or a made-up one (`unnamed`), which the user sees at
 * the release; or an `earlier` run, whose staged rows are kept.
 */
export type Begun = 'unnamed' | 'named' | 'earlier';

export interface CampaignRun {
	cx: CommandContext;
	place: CampaignPlace;
	session: CampaignSession;
	begun: Begun;
	options: RunOptions;
	recipients: Recipients;
}

export async function runCampaign(run: CampaignRun): Promise<ExitCode> {
	const { cx, place } = run;
	const { campaigns, isForeign } = place;
	const { id, key: name } = run.session;
	const status = await campaigns.status(id);
	if (status.state === 'canceled') throw wasCanceled(name);
	if (status.state === 'staged') await release(run);
	else if (isFinished(status)) return reportFinished(run, status);
	// If a local database stores the campaign, only the delivery shows whether another process has locked it.
	else await cx.note(`the campaign "${name}" is released already${isForeign ? '' : ': resuming it'}`);
	const released = await campaigns.status(id);
	await cx.note(`campaign ${name}, ${id}`);
	const plan = sayPlan(released.plan, cx.times);
	if (plan === null) {
		const delivering = () => deliver(run, released.counts, status.replies);
		// With another service, waiting messages are only in the local database, so exit codes may ask for a retry.
		return isForeign ? delivering() : afterAcceptance(cx, name, delivering);
	}
	await cx.out.document(documentOf(released), `accepted: ${describe(released.counts)}`);
	await cx.note(plan);
	await cx.hint(['nothing is sent before then; ', await sender(cx), ' must be running']);
	return exits.done;
}

export function wasCanceled(name: string): UsageError {
	return new UsageError(`the campaign "${name}" was canceled; give another name`);
}

export async function assertStaged(run: CampaignRun): Promise<void> {
	assertCount(run, (await assertSendable(run, [])).counts);
}

/**
 * Stages, checks and releases. If a check fails, releases nothing. If the user or a refusal ends the run, drops a
 * campaign that this run began. Always drops one with a made-up name, which the user has not seen.
 */
async function release(run: CampaignRun): Promise<void> {
	const { cx, begun, place, session, recipients } = run;
	const { key: name } = session;
	let step: 'staging' | 'counting' | 'asking' | 'releasing' = 'staging';
	try {
		const errors = await recipients.stage(place, session);
		cx.signal.throwIfAborted();
		const status = await assertSendable(run, errors);
		step = 'counting';
		assertCount(run, status.counts);
		step = 'asking';
		await agree(run, status);
		cx.signal.throwIfAborted();
		step = 'releasing';
		await releaseOnce(run, status.counts.staged);
	} catch (error) {
		// If the release got no answer, the campaign may be released, so do not drop it.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		const isEnded = step === 'asking' || (step === 'staging' && error instanceof UsageError);
		const isDropped = begun === 'unnamed' || (begun === 'named' && isEnded);
		if (isDropped) await drop(run);
		const rest = recipients.again === undefined ? [] : ['--source', recipients.again];
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

/** After a release without a clear answer, reads the state of the campaign. Exit code 13 if the state is unclear too. */
async function releaseOnce({ place, session }: CampaignRun, expect_count: number): Promise<void> {
	const { campaigns } = place;
	try {
		await campaigns.release(session.id, { expect_count });
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const state = (await campaigns.status(session.id).catch(() => null))?.state ?? null;
		if (state === 'released') return;
		// If the service itself answered with an error, it has stopped processing the release.
		const isError = error.http !== null && error.http.status >= 500;
		if (state !== null && isError && !error.unanswered) throw error;
		const message = `the campaign may or may not be released: ${error.message}`;
		throw new CliError('uncertain', exits.uncertain, message, {
			hint: [mailctl('campaigns', 'resume', session.key), ': no recipient gets it twice'],
			cause: error,
		});
	}
}

/** Only warns if the cancellation fails, because another error ends the command. A released campaign stays. */
async function drop({ cx, place, session }: CampaignRun): Promise<void> {
	try {
		await place.campaigns.cancel(session.id, { forget: true });
	} catch (error) {
		if (error instanceof ApiError && (error.code === 'conflict' || error.code === 'not_found')) return;
		await cx.warn(`could not drop what was staged as "${session.key}"`);
	}
}

/** `errors`: the first errors of recipients. */
async function assertSendable(run: CampaignRun, errors: readonly string[]): Promise<CampaignStatus> {
	const { cx, place, session, begun, options } = run;
	const { of, selection } = run.recipients;
	const status = await place.campaigns.status(session.id);
	const { counts, lists = [] } = status;
	const all = recipientsOf(counts) + counts.rejected;
	if (all === 0 && options.expectCount !== 0)
		throw noRecipients(of, selection === null ? [] : sayCounts(lists, selection));
	if (counts.rejected === 0) return status;
	const findings = new Findings(cx);
	if (selection !== null && !place.isForeign) findings.addOfLists(reasonsOf(lists), errors);
	else
		for await (const { text, ...result } of eachResult(cx, place.campaigns, session.id, { only: 'findings' }))
			findings.add({ ...result, text: text ?? '' });
	if (!options.skipInvalid) throw findings.refusal(all, begun === 'earlier' ? session.key : null);
	await findings.warn(cx, all, true);
	return status;
}

function assertCount({ begun, session, options, recipients }: CampaignRun, counts: AcceptCounts): void {
	const { key: name } = session;
	// The list may have changed since an earlier run staged it.
	const of = begun === 'earlier' ? `the campaign "${name}", staged by an earlier run,` : recipients.of;
	const stays = ['it stays staged: ', mailctl('campaigns', 'cancel', name), ' frees its name'];
	assertExpected(recipientsOf(counts), of, options, begun === 'unnamed' ? [] : [stays]);
}

const shownSample = 3;

async function agree(run: CampaignRun, status: CampaignStatus): Promise<void> {
	const { cx } = run;
	const { of, subject, selection, draft, isBulk } = run.recipients;
	const { expectCount, sample = shownSample } = run.options;
	const { staged } = status.counts;
	await cx.note(`${describe(status.counts)} of ${of}`);
	for (const line of selection === null ? [] : sayCounts(status.lists ?? [], selection)) await cx.note(line);
	await draft?.warnOfContent();
	await warnOfLinks(cx, isBulk);
	if (expectCount !== undefined && cx.globals.yes === true) return;
	const shown = await take(addresses(run, sample), sample);
	// Print an address per line, because a terminal would break a long line within addresses.
	const more = shown.length < staged ? ['  …'] : [];
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`), ...more]);
	const mail = `send${subject === null ? '' : ` "${subject}"`} to ${counted(staged, 'recipient')}`;
	const plan = status.plan && sayPlan({ ...status.plan, opens_at: status.plan.starts_at }, cx.times);
	await sayWhatHolds(cx, { campaign: run.session.id }, null);
	await cx.confirm({ kind: 'mild', what: plan ? `${mail}, ${plan}` : mail });
}

async function* addresses(run: CampaignRun, limit: number): AsyncGenerator<string> {
	const { cx, place, session, recipients } = run;
	if (recipients.selection === null || place.isForeign) {
		for await (const { state, to } of eachResult(cx, place.campaigns, session.id))
			if (state !== 'rejected' && state !== 'suppressed') yield to;
		return;
	}
	const messages = await need(await cx.api(), 'messages');
	const filter = { campaign_unique_id: session.id };
	for await (const { to } of walk(messages, filter, { signal: cx.signal, limit })) yield to;
}

function isFinished({ messages }: CampaignStatus): boolean {
	const { deferred = 0, uncertain = 0 } = messages;
	return waitingOf(messages) + deferred + uncertain === 0;
}

async function reportFinished(run: CampaignRun, status: CampaignStatus) {
	const { cx, place, session } = run;
	await cx.note(`the campaign "${session.key}" is finished: ${sayOutcomes(status.messages)}`);
	const found = isTable(cx.out.format) ? await lookUpCampaign(place.campaigns, session.id) : undefined;
	if (found === undefined) await cx.out.document(documentOf(status));
	else await showDetail(cx, detailOf(found, status));
	await writeResults(run);
	return exitOf(cx, outcomesOf(status.messages), unsentOf(status));
}

/** `known`: an earlier run's replies, read before the release, because a fast server sends everything before it answers. */
async function deliver(run: CampaignRun, counts: AcceptCounts, known: CampaignStatus['replies']) {
	const { cx, place, options } = run;
	const { id, key: name } = run.session;
	const { local } = await cx.connection();
	if (options.rate !== undefined) await local?.queue.keepRate(id, options.rate);
	const outcome = await place.deliver(id, counts.staged, options).catch(async (error: unknown) => {
		// Report why the delivery ended early, even if the results cannot be written.
		await writeResults(run).catch(() => undefined);
		throw error;
	});
	// Read all counts now, because another process may have sent more since the delivery ended.
	const after = await place.campaigns.status(id);
	// Print this before the results, because a results file that cannot be written ends the command.
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	await writeResults(run);
	const replies = isDeepStrictEqual(known, after.replies) ? [] : after.replies;
	const campaign = { name, sentence: sayOutcomes(after.messages), replies };
	const summary = outcome && { ...outcome, counts: outcomesOf(after.messages) };
	return concludeDelivery(cx, summary, { waiting: waitingOf(after.messages), campaign, ...unsentOf(after) });
}

/** If the results cannot be written, the error says that only they are missing, and how to get them later. */
async function writeResults({ cx, place, session, options, recipients }: CampaignRun): Promise<void> {
	if (options.results === undefined) return;
	try {
		const isRows = recipients.selection === null;
		await writeCampaign(cx, place, session.id, { isRows, path: options.results });
	} catch (error) {
		const later = mailctl('campaigns', 'results', session.key, '--save', 'FILE');
		throw hinted(error, [['only the results are missing: ', later, ' writes them']]);
	}
}

function unsentOf({ counts, messages }: CampaignStatus) {
	const { canceled: _, ...others } = messages;
	const isUnsent = recipientsOf(counts) > 0 && Object.values(others).every((count) => count === 0);
	return { isUnsent, leftOut: counts.rejected };
}
