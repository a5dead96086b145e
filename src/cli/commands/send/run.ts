/** A campaign: staged, checked, shown, released in one stroke, delivered. What its rows are is the caller's. */

import type { AcceptCounts, CampaignStatus } from '../../../api/capabilities.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, UsageError } from '../../frame/errors.js';
import { classify, type ExitCode, exits, hinted } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { parseRate } from '../../frame/values.js';
import { counted } from '../../render/plurals.js';
import { lookUpCampaign } from '../campaigns/find.js';
import { detailOf, showDetail } from '../campaigns/record.js';
import { afterAcceptance, concludeDelivery, defaultWaitMs, noneSent } from './deliver.js';
import { cannotBeSent, type Findings, findingsFor, whereAllAre } from './findings.js';
import type { SendOptions } from './options.js';
import { type CampaignDelivery, type CampaignPlace, releaseOnce } from './place.js';
import {
	asDelivered,
	assertExpected,
	describe,
	documentOf,
	type Outcomes,
	outcomesOf,
	progressOf,
	recipientsOf,
	saysHowToRelease,
	sentenceOf,
	type Unreleased,
	waitingOf,
} from './report.js';
import type { ResultsHow } from './results.js';
import { isAhead, leavePlanned, sayStart } from './timing.js';

/** What a campaign may be told, whether it begins or goes on. */
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

/**
 * By this run under a name that was made up (`unnamed`), so that it cannot be resumed, or was given (`named`), or by an
 * earlier run, whose staging is kept.
 */
export type Begun = 'unnamed' | 'named' | 'earlier';

/** One campaign: where it is kept, what it is called, and what is particular to the kind of its rows. */
export interface CampaignRun extends Unreleased {
	place: CampaignPlace;
	id: string;
	begun: Begun;
	options: RunOptions;
	/** What the recipients are of: `list 1 "Readers"`, `people.csv`. */
	of: string;
	/** What it is called where it is counted: `the list`, `people.csv`. */
	where: string;
	/** The subject; null where each message has a subject of its own. */
	subject: string | null;
	/** Puts what is not staged yet. */
	stage(): Promise<void>;
	/** Results have a line for who is left out too: rows of a file do, those of a list do not. */
	hasRejectLines: boolean;
	/** Adds the recipients that cannot be sent to. */
	findings(into: Findings): Promise<void>;
	/** The first addresses. */
	sample(most: number): Promise<readonly string[]>;
	/** Writes the outcome of each recipient, as far as it is known. */
	writeResults(path: string, how: ResultsHow): Promise<void>;
	/** Warnings before the question. */
	warn(): Promise<void>;
	/** Lines about who of its lists is left out, and why; absent: it has none. */
	sayCounts?(status: CampaignStatus): readonly string[];
	/** The refusal where there are no recipients. */
	noRecipients: string;
}

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
	await showFinished(cx, campaign, status);
	await concludeResults(campaign);
	const outcome = { kind: 'settled', reason: null, counts: asDelivered(before), warnings: [] } as const;
	const end = { waiting: 0, campaign: { name, sentence } };
	return codeOf(cx, await concludeDelivery(cx, outcome, end), status);
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

/** Stages and checks; whatever speaks against it ends here, with nothing released. */
async function release(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	let isAsked = false;
	let isSendable = false;
	try {
		await campaign.stage();
		// After an interrupt nothing else is begun.
		cx.signal.throwIfAborted();
		const counts = await assertSendable(cx, campaign);
		isSendable = true;
		assertCount(campaign, counts);
		isAsked = true;
		await agree(cx, campaign, counts);
		cx.signal.throwIfAborted();
		isAsked = false;
		await releaseOnce(campaign, counts.staged);
	} catch (error) {
		// What may be on its way is not called back for a lost answer.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		// A question that is answered by no, or by the end of the command, drops what was staged.
		const isDropped = isAsked || (await isOfNoUse(cx, campaign, isSendable ? null : error));
		if (isDropped) await drop(cx, campaign);
		if (cx.signal.aborted)
			await cx.hint(
				isDropped
					? `nothing was sent, and "${campaign.name}" is dropped; one with a name of its own (--campaign) can be gone on with`
					: saysHowToRelease(campaign),
			);
		throw error;
	}
}

/**
 * Whether the staged campaign is dropped: its name was made up, so no command can name it; or its content is refused, and
 * the mended content is another campaign, which then gets the name; or it has no recipients. `refusal`: the error thrown
 * before the recipients were known to be good; null: it came later.
 */
async function isOfNoUse(cx: CommandContext, campaign: CampaignRun, refusal: unknown): Promise<boolean> {
	if (campaign.begun === 'unnamed') return true;
	if (cx.signal.aborted) return false;
	return (campaign.begun === 'named' && refusal instanceof UsageError) || isEmpty(campaign);
}

async function isEmpty({ place, id }: CampaignRun): Promise<boolean> {
	const { counts } = await place.campaigns.status(id).catch(() => ({ counts: null }));
	return counts !== null && recipientsOf(counts) + counts.rejected === 0;
}

/** Throws `UsageError` where something speaks against sending to what is staged. */
export async function assertStaged(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	assertCount(campaign, await assertSendable(cx, campaign));
}

async function assertSendable(cx: CommandContext, campaign: CampaignRun): Promise<AcceptCounts> {
	const { place, id, options } = campaign;
	// A campaign that was staged before goes on with what is there: its counts are those of all that was added.
	const { counts } = await place.campaigns.status(id);
	const found = recipientsOf(counts);
	if (found + counts.rejected === 0 && options.expectCount !== 0) throw new UsageError(campaign.noRecipients);
	if (counts.rejected > 0) await assertFindings(cx, campaign, found + counts.rejected);
	return counts;
}

function assertCount({ begun, name, where, options }: CampaignRun, counts: AcceptCounts): void {
	const kept = begun === 'unnamed' ? undefined : name;
	assertExpected({ found: recipientsOf(counts), where, kept, options });
}

/** The first error is the one to report: a second one only gets a line. */
async function drop(cx: CommandContext, { place, id, name }: CampaignRun): Promise<void> {
	await place.campaigns
		.cancel(id, { forget: true })
		.catch(() => cx.warn(`what was staged as "${name}" could not be dropped`));
}

async function assertFindings(cx: CommandContext, campaign: CampaignRun, of: number): Promise<void> {
	const { begun, name, options } = campaign;
	const findings = findingsFor(cx);
	await campaign.findings(findings);
	if (options.skipInvalid) {
		for (const line of findings.lines(of)) await cx.warn(`left out: ${line}`);
		return;
	}
	if (options.results !== undefined && !cx.dryRun)
		await campaign.writeResults(options.results, { isDropped: begun !== 'earlier' });
	const where = whereAllAre(cx, campaign, findings.rejected);
	throw cannotBeSent(findings, { of, where, ...(begun === 'earlier' && { kept: name }) });
}

/** Recipients that are shown before the question, unless `--sample` says otherwise. */
const shownSample = 3;

async function agree(cx: CommandContext, campaign: CampaignRun, counts: AcceptCounts): Promise<void> {
	const { options, of, subject } = campaign;
	await cx.note(`${describe(counts)} of ${of}`);
	const status = await campaign.place.campaigns.status(campaign.id);
	for (const line of campaign.sayCounts?.(status) ?? []) await cx.note(line);
	await campaign.warn();
	if (options.expectCount !== undefined && cx.globals.yes === true) return;
	const shown = await campaign.sample(options.sample ?? shownSample);
	// One a line: a terminal would break them anywhere.
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`)]);
	const what = `send${subject === null ? '' : ` "${subject}"`} to ${counted(counts.staged, 'recipient')}`;
	const plan = sayStart(status.plan, cx.times);
	await cx.confirm({ kind: 'mild', what: plan === null ? what : `${what}, ${plan}` });
}

/** `before`: what earlier runs came to; null when this is the first. */
async function deliver(
	cx: CommandContext,
	campaign: CampaignRun,
	before: Outcomes | null,
): Promise<ExitCode> {
	const { place, id, name } = campaign;
	const status = await place.campaigns.status(id);
	const { counts } = status;
	await cx.note(`campaign ${name}, ${id}`);
	if (isAhead(status.plan)) return leavePlanned(cx, status);
	const run = () => deliverReleased(cx, campaign, { counts, before });
	// What waits on this machine was accepted by no service.
	return place.isForeign ? run() : afterAcceptance(cx, name, run);
}

async function deliverReleased(
	cx: CommandContext,
	campaign: CampaignRun,
	{ counts, before }: { counts: AcceptCounts; before: Outcomes | null },
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
	const end = { waiting: waitingOf(after.messages), campaign: { name, rate: options.rate, sentence } };
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
		...(options.rate !== undefined && { rate: parseRate(options.rate) }),
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
