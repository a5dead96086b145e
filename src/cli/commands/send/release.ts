/** A campaign from its staging to its end: staged, checked, shown, agreed to, released in one stroke, delivered. */

import { isDeepStrictEqual } from 'node:util';
import type { AcceptCounts, CampaignStatus } from '../../../api/campaigns.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits, hinted } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { paced } from '../../frame/values.js';
import { counted } from '../../render/units.js';
import { lookUpCampaign } from '../campaigns/find.js';
import { detailOf, showDetail } from '../campaigns/record.js';
import { type Begun, type CampaignPlace, wasCanceled } from './begin.js';
import { Findings } from './findings.js';
import type { SendOptions } from './options.js';
import {
	asDelivered,
	assertExpected,
	describe,
	documentOf,
	type Outcomes,
	outcomesOf,
	progressOf,
	recipientsOf,
	sender,
	sentenceOf,
	type Unreleased,
	waitingOf,
	waysToRelease,
} from './report.js';
import { sayPlan } from './timing.js';
import { afterAcceptance, concludeDelivery, defaultWaitMs, noneSent } from './watch.js';

export type RunOptions = Pick<
	SendOptions,
	| 'expectCount'
	| 'maxRecipients'
	| 'skipInvalid'
	| 'sample'
	| 'results'
	| 'wait'
	| 'waitTimeout'
	| 'rate'
	| 'connections'
	| 'retryUnknown'
>;

/** One campaign: where it is kept, how it is called, and what is particular to the kind of its rows. */
export interface CampaignRun extends Unreleased {
	place: CampaignPlace;
	id: string;
	begun: Begun;
	options: RunOptions;
	/** The recipients: `list 1 "Readers"`, `people.csv`. */
	of: string;
	/** The same where they are counted: `the list`, `people.csv`. */
	where: string;
	/** Null where each message has a subject of its own. */
	subject: string | null;
	/** Puts what is not staged yet. */
	stage(): Promise<void>;
	/** Adds the recipients that cannot be sent to. */
	findings(into: Findings): Promise<void>;
	/** The first addresses. */
	sample(most: number): Promise<readonly string[]>;
	/** Writes the outcome of each recipient, as far as it is known. */
	writeResults(path: string): Promise<void>;
	/** Warnings before the question. */
	warn(): Promise<void>;
	sayCounts(status: CampaignStatus): readonly string[];
	/** The refusal where there are no recipients. */
	noRecipients: string;
}

export async function runCampaign(cx: CommandContext, campaign: CampaignRun): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	if (status.state === 'canceled') throw wasCanceled(name);
	if (status.state === 'released') return goOn(cx, campaign, status);
	await release(cx, campaign);
	return deliver(cx, campaign, null);
}

/** Throws `UsageError` where something speaks against sending to what is staged. */
export async function assertStaged(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	assertCount(campaign, await assertSendable(cx, campaign));
}

/**
 * Stages and checks; whatever speaks against it ends here, with nothing released. An end by the user or by a refusal drops
 * what this run began, and every end drops what has a made-up name: no command can name it.
 */
async function release(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	const { begun } = campaign;
	let step: 'staging' | 'counting' | 'asking' | 'releasing' = 'staging';
	try {
		await campaign.stage();
		// After an interrupt nothing else is begun.
		cx.signal.throwIfAborted();
		const counts = await assertSendable(cx, campaign);
		step = 'counting';
		assertCount(campaign, counts);
		step = 'asking';
		await agree(cx, campaign, counts);
		cx.signal.throwIfAborted();
		step = 'releasing';
		await releaseOnce(campaign, counts.staged);
	} catch (error) {
		// What may be on its way is not called back for a lost answer.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		const isAsked = step === 'asking';
		const isEnded = isAsked || (step === 'staging' && error instanceof UsageError);
		const isDropped = begun === 'unnamed' || (begun === 'named' && isEnded);
		if (isDropped) await drop(cx, campaign);
		throw await endOf(cx, campaign, { error, isAsked, isDropped });
	}
}

/** The error to end with, after the hint of an interrupted command. */
async function endOf(
	cx: CommandContext,
	campaign: CampaignRun,
	{ error, isAsked, isDropped }: { error: unknown; isAsked: boolean; isDropped: boolean },
): Promise<unknown> {
	if (cx.signal.aborted) {
		const other = isAsked ? '' : '; one with a name of its own (--campaign) can be gone on with';
		const dropped = `nothing was sent, and "${campaign.name}" is dropped${other}`;
		await cx.hint(isDropped ? dropped : ['nothing was sent; ', ...waysToRelease(campaign)]);
	} else if (!isDropped && error instanceof Declined)
		return new Declined({ done: 'nothing was sent', hint: waysToRelease(campaign) });
	return error;
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

/** The first error is the one to report: a second one only gets a line. What is released by now stays. */
async function drop(cx: CommandContext, { place: { campaigns }, id, name }: CampaignRun): Promise<void> {
	try {
		await campaigns.cancel(id, { forget: true });
	} catch (error) {
		if (error instanceof ApiError && (error.code === 'conflict' || error.code === 'not_found')) return;
		await cx.warn(`what was staged as "${name}" could not be dropped`);
	}
}

async function assertSendable(cx: CommandContext, campaign: CampaignRun): Promise<AcceptCounts> {
	const { place, id, begun, name, options } = campaign;
	// The counts of an earlier run are among them.
	const status = await place.campaigns.status(id);
	const { counts } = status;
	const of = recipientsOf(counts) + counts.rejected;
	if (of === 0 && options.expectCount !== 0) {
		const [leftOut] = campaign.sayCounts(status);
		throw new UsageError(campaign.noRecipients, leftOut === undefined ? {} : { hint: leftOut });
	}
	if (counts.rejected === 0) return counts;
	const findings = new Findings(cx);
	await campaign.findings(findings);
	if (options.skipInvalid) {
		await findings.warn(cx, of, true);
		return counts;
	}
	throw findings.refusal(of, begun === 'earlier' ? name : null);
}

function assertCount({ begun, name, where, options }: CampaignRun, counts: AcceptCounts): void {
	const cancel = ['it stays staged: ', mailctl('campaigns', 'cancel', name), ' frees its name'];
	assertExpected({
		...{ found: recipientsOf(counts), options },
		// Its list may have changed since.
		where: begun === 'earlier' ? `the campaign "${name}", staged by an earlier run,` : where,
		...(begun !== 'unnamed' && { stays: cancel }),
	});
}

/** Recipients that are shown before the question, unless `--sample` says otherwise. */
const shownSample = 3;

async function agree(cx: CommandContext, campaign: CampaignRun, counts: AcceptCounts): Promise<void> {
	const { options, of, subject } = campaign;
	await cx.note(`${describe(counts)} of ${of}`);
	const status = await campaign.place.campaigns.status(campaign.id);
	for (const line of campaign.sayCounts(status)) await cx.note(line);
	await campaign.warn();
	if (options.expectCount !== undefined && cx.globals.yes === true) return;
	const shown = await campaign.sample(options.sample ?? shownSample);
	// One a line: a terminal would break them anywhere.
	const more = shown.length < counts.staged ? ['  …'] : [];
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`), ...more]);
	const mail = `send${subject === null ? '' : ` "${subject}"`} to ${counted(counts.staged, 'recipient')}`;
	// One that waits for its hours alone has no start.
	const plan = status.plan && sayPlan({ ...status.plan, opens_at: status.plan.starts_at }, cx.times);
	await cx.confirm({ kind: 'mild', what: plan ? `${mail}, ${plan}` : mail });
}

/** Messages sent by earlier runs are reported apart from those of this one. */
async function goOn(cx: CommandContext, campaign: CampaignRun, status: CampaignStatus): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const { deferred = 0, uncertain = 0 } = status.messages;
	const before = outcomesOf(status.messages);
	if (waitingOf(status.messages) + deferred + uncertain > 0) {
		// Kept on this machine, another process may have it, which is known only when it is taken.
		const goesOn = place.isForeign ? '' : ': going on with it';
		await cx.note(`the campaign "${name}" is released already${goesOn}`);
		return deliver(cx, campaign, before);
	}
	const sentence = `the campaign "${name}" is finished: ${progressOf(before, null)}`;
	const outcome = { kind: 'settled', reason: null, counts: asDelivered(before), warnings: [] } as const;
	// The sentence is the answer: it stands above the card.
	const code = await concludeDelivery(cx, outcome, { waiting: 0, campaign: { name, sentence } });
	const found = isTable(cx.out.format) ? await lookUpCampaign(place.campaigns, id) : undefined;
	if (found === undefined) await cx.out.document(documentOf(status));
	else await showDetail(cx, detailOf(found, status));
	await concludeResults(campaign);
	return codeOf(cx, code, status);
}

/** `before`: the outcomes of earlier runs; null when this is the first. */
async function deliver(
	cx: CommandContext,
	campaign: CampaignRun,
	before: Outcomes | null,
): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	await cx.note(`campaign ${name}, ${id}`);
	const plan = sayPlan(status.plan, cx.times);
	if (plan !== null) {
		await cx.out.document(documentOf(status), `released: ${describe(status.counts)}`);
		await cx.note(plan);
		const cancel = mailctl('campaigns', 'cancel', name);
		await cx.hint(['nothing leaves before; ', await sender(cx), ' has to run then, ', cancel, ' drops it']);
		return exits.done;
	}
	const run = () => deliverReleased(cx, campaign, status, before);
	// No service has accepted what waits on this machine.
	return place.isForeign ? run() : afterAcceptance(cx, name, run);
}

async function deliverReleased(
	cx: CommandContext,
	campaign: CampaignRun,
	{ counts, replies: known }: CampaignStatus,
	before: Outcomes | null,
): Promise<ExitCode> {
	const { place, id, name, options } = campaign;
	const { local } = await cx.connection();
	if (options.rate !== undefined) await local?.queue.keepRate(id, options.rate);
	const how = {
		total: counts.staged,
		signal: cx.signal,
		stallMs: options.waitTimeout ?? defaultWaitMs,
		waits: options.wait !== false,
		...paced(options.rate),
		...(options.connections !== undefined && { connections: options.connections }),
		...(options.retryUnknown && { retriesUnknown: true }),
	};
	const outcome = await place.deliver(id, how).catch(async (error: unknown) => {
		// The cause of the early end is reported, whether the results can be written or not.
		await concludeResults(campaign).catch(() => undefined);
		throw error;
	});
	const after = await place.campaigns.status(id);
	// Before the results: the command ends with a file that cannot be written.
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	await concludeResults(campaign);
	if (outcome === null) return codeOf(cx, exits.done, after);
	// Of one look: the sending process may have gone on since the last look at the delivery.
	const all = outcomesOf(after.messages);
	const sentence = before === null ? sentenceOf(all) : progressOf(all, before);
	const isNews = before === null || (outcome.isTried ?? !isDeepStrictEqual(known, after.replies));
	const end = { name, rate: options.rate, sentence, ...(isNews && { replies: after.replies }) };
	const waiting = waitingOf(after.messages);
	const code = await concludeDelivery(
		cx,
		{ ...outcome, counts: asDelivered(all) },
		{ waiting, campaign: end },
	);
	return codeOf(cx, code, after);
}

/** Where results cannot be written, nothing of what is sent is lost. */
async function concludeResults({ name, options, writeResults }: CampaignRun): Promise<void> {
	if (options.results === undefined) return;
	try {
		await writeResults(options.results);
	} catch (error) {
		const later = mailctl('campaigns', 'results', name, '--save', 'FILE');
		throw hinted(error, [['what was sent is sent, and is kept: ', later, ' writes the results']]);
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
