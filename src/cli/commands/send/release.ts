/** A campaign until its release: staged, checked, shown, agreed to; and what becomes of it where it is not released. */
import type { AcceptCounts, CampaignStatus } from '../../../api/campaigns.js';
import { ApiError } from '../../../api/errors.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { classify, exits } from '../../frame/exit.js';
import { counted } from '../../render/units.js';
import { cannotBeSent, type Findings, findingsFor, whereAllAre } from './findings.js';
import type { SendOptions } from './options.js';
import { type CampaignPlace, releaseOnce } from './place.js';
import { assertExpected, describe, recipientsOf, type Unreleased, waysToRelease } from './report.js';
import { type ResultsHow, signalOfEnd } from './results.js';
import { sayStart } from './timing.js';

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

/** Stages and checks; whatever speaks against it ends here, with nothing released. */
export async function release(cx: CommandContext, campaign: CampaignRun): Promise<void> {
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
		// A question that is answered by no, or by the end of the command, drops what this run began.
		const isDropped = isAsked
			? campaign.begun !== 'earlier'
			: await isOfNoUse(cx, campaign, isSendable ? null : error);
		throw await explainEnd(cx, campaign, { error, isAsked, left: await leave(cx, campaign, isDropped) });
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

/** How a run that released nothing leaves the campaign. `released`: by another command, which no lock of this home hinders. */
type Left = 'dropped' | 'staged' | 'released';

/** Only what is not released is dropped. The first error is the one to report: a second one only gets a line. */
async function leave(
	cx: CommandContext,
	{ place: { campaigns }, id, name }: CampaignRun,
	isDropped: boolean,
): Promise<Left> {
	if (!isDropped) {
		const found = await campaigns.status(id, { signal: signalOfEnd(cx) }).catch(() => null);
		return found?.state === 'released' ? 'released' : 'staged';
	}
	try {
		await campaigns.cancel(id, { forget: true });
		return 'dropped';
	} catch (error) {
		if (error instanceof ApiError && error.code === 'conflict') return 'released';
		if (error instanceof ApiError && error.code === 'not_found') return 'dropped';
		await cx.warn(`what was staged as "${name}" could not be dropped`);
		return 'staged';
	}
}

/** The error to end with, after the hint of an interrupted command. */
async function explainEnd(
	cx: CommandContext,
	campaign: CampaignRun,
	{ error, isAsked, left }: { error: unknown; isAsked: boolean; left: Left },
): Promise<unknown> {
	const { name } = campaign;
	if (cx.signal.aborted) {
		await cx.hint(hintAtEnd(campaign, { isAsked, left }));
		return error;
	}
	if (left === 'staged' && error instanceof Declined)
		return new Declined({ done: 'nothing was sent', hint: waysToRelease(campaign) });
	if (left !== 'released') return error;
	const { code, exit, details } = classify(error);
	const released = releasedElsewhere(name);
	if (error instanceof Declined)
		return new CliError(code, exit, `declined, but ${released}`, { hint: waysToLook(name) });
	return new CliError('conflict', exits.refused, released, {
		...(details !== null && { details }),
		hint: waysToLook(name),
		cause: error,
	});
}

function hintAtEnd(campaign: CampaignRun, { isAsked, left }: { isAsked: boolean; left: Left }): Hint {
	const { name } = campaign;
	if (left === 'released') return [`${releasedElsewhere(name)}; `, ...waysToLook(name)];
	if (left === 'staged') return ['nothing was sent; ', ...waysToRelease(campaign)];
	// At the question each is dropped that this run began.
	const other = isAsked ? '' : '; one with a name of its own (--campaign) can be gone on with';
	return `nothing was sent, and "${name}" is dropped${other}`;
}

function releasedElsewhere(name: string): string {
	return `the campaign "${name}" was released by another command meanwhile`;
}

function waysToLook(name: string) {
	const look = [mailctl('campaigns', 'get', name), ' shows how far it is'];
	return [...look, ', ', mailctl('campaigns', 'cancel', name), ' drops what is not sent'];
}

/** Throws `UsageError` where something speaks against sending to what is staged. */
export async function assertStaged(cx: CommandContext, campaign: CampaignRun): Promise<void> {
	assertCount(campaign, await assertSendable(cx, campaign));
}

async function assertSendable(cx: CommandContext, campaign: CampaignRun): Promise<AcceptCounts> {
	const { place, id, options } = campaign;
	// A campaign that was staged before goes on with what is there: its counts are those of all that was added.
	const status = await place.campaigns.status(id);
	const { counts } = status;
	const found = recipientsOf(counts);
	if (found + counts.rejected === 0 && options.expectCount !== 0) {
		const [leftOut] = campaign.sayCounts?.(status) ?? [];
		throw new UsageError(campaign.noRecipients, leftOut === undefined ? {} : { hint: leftOut });
	}
	if (counts.rejected > 0) await assertFindings(cx, campaign, found + counts.rejected);
	return counts;
}

function assertCount({ begun, name, where, options }: CampaignRun, counts: AcceptCounts): void {
	const stays = ['it stays staged: ', mailctl('campaigns', 'cancel', name), ' frees its name'];
	const kept = {
		unnamed: { where },
		named: { where, stays },
		// Its list may have changed since.
		earlier: {
			where: `the campaign "${name}", staged by an earlier run,`,
			stays: [...stays, ', and the same send stages it anew'],
		},
	};
	assertExpected({ found: recipientsOf(counts), ...kept[begun], options });
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
	const more = shown.length < counts.staged ? ['  …'] : [];
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`), ...more]);
	const what = `send${subject === null ? '' : ` "${subject}"`} to ${counted(counts.staged, 'recipient')}`;
	const plan = sayStart(status.plan, cx.times);
	await cx.confirm({ kind: 'mild', what: plan === null ? what : `${what}, ${plan}` });
}
