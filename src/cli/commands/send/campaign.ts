/** Opens a campaign, stages and checks it, asks for confirmation, then releases and delivers it. */

import { isDeepStrictEqual } from 'node:util';
import {
	type AcceptCounts,
	type AnyCampaignSpec,
	type Campaign,
	type CampaignOpening,
	type CampaignSession,
	type CampaignStatus,
	campaignState,
	isOfCalls,
	repeatedKey,
} from '../../../api/campaigns.js';
import { parseDateTime } from '../../../api/datetime.js';
import { ApiError, mayHaveHappened } from '../../../api/errors.js';
import { take } from '../../../api/pages.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { isTable } from '../../frame/globals.js';
import { counted, spanText } from '../../render/units.js';
import { explained, sayWhatHolds } from '../../verbs/refusals.js';
import { isUuid } from '../../verbs/resolve.js';
import { detailOf, lookUpCampaign, showDetail } from '../campaigns/record.js';
import { afterAcceptance, assertCanDeliver, concludeDelivery, exitOf } from './delivery.js';
import { type Draft, warnOfLinks } from './draft.js';
import type { RunOptions, SendOptions } from './options.js';
import { type CampaignPlace, campaignPlace } from './place.js';
import type { Selection } from './recipients.js';
import {
	assertExpected,
	assertResults,
	describe,
	documentOf,
	eachResult,
	Findings,
	messageLines,
	noRecipients,
	outcomesOf,
	type ResultLine,
	recipientsOf,
	rowLines,
	sayCounts,
	sayOutcomes,
	sender,
	waitingOf,
	writeLines,
} from './report.js';
import { readTiming, sayPlan, sendHint } from './request.js';

export interface Recipients {
	/** How sentences name the recipients: `list 1 "Readers"`, `people.csv`. */
	readonly of: string;
	/** Null if the recipients are rows. */
	readonly selection: Selection | null;
	/** Null for a batch, because each request has its own subject. */
	readonly subject: string | null;
	/** The content to warn about. Null if each request has its own, or if an earlier run printed the warnings. */
	readonly draft: Draft | null;
	readonly isBulk: boolean;
	/** The `--source` for `campaigns resume`, such as `-` for a pipe. Absent if that command needs none. */
	readonly again?: string | undefined;
	/** Returns the first errors. */
	stage(place: CampaignPlace, session: CampaignSession): Promise<readonly string[]>;
}

export interface CampaignRun {
	cx: CommandContext;
	place: CampaignPlace;
	session: CampaignSession;
	/**
	 * `earlier`: an earlier run began the campaign. `named`: this run began it with `--campaign`. `unnamed`: this run
	 * generated the name.
	 */
	begun: 'unnamed' | 'named' | 'earlier';
	options: RunOptions;
	recipients: Recipients;
}

export type Beginning = Awaited<ReturnType<typeof beginCampaign>>;

/** A script must add `--expect-count` to `--yes`, because the list may have grown since the script was written. */
export function assertConsent(cx: CommandContext, { expectCount }: RunOptions, recipients: string): void {
	const isYes = cx.globals.yes === true;
	if (cx.canAsk || (isYes && expectCount !== undefined)) return;
	const missing = [...(isYes ? [] : ['--yes']), ...(expectCount === undefined ? ['--expect-count N'] : [])];
	throw new UsageError(`sending to ${recipients} must be confirmed`, { hint: `add ${missing.join(' ')}` });
}

/** `recipients`: how sentences name the recipients. */
export async function beginCampaign(cx: CommandContext, options: SendOptions, recipients: string) {
	const timing = await readTiming(cx, options);
	const place = await campaignPlace(cx);
	if (!cx.dryRun) assertConsent(cx, options, recipients);
	await assertCanDeliver(cx, options);
	const { campaign, again } = options;
	if (campaign !== undefined) assertName(campaign);
	const found = campaign === undefined ? undefined : await lookUpCampaign(place.campaigns, campaign);
	// Ignore a campaign that only send calls made: it accepts no rows. This run opens a campaign with the same UUID.
	const there = found === undefined || isOfCalls(found) ? null : found;
	if (there === null && campaign !== undefined && isUuid(campaign) && options.batch !== undefined)
		throw new UsageError(`campaign ${campaign} not found; to begin a campaign, give a name, not a UUID`);
	// An earlier run of the same command may have left a staged campaign of this name, so continue it.
	if (again && there !== null && there.state !== 'staged')
		throw new UsageError(`--again begins a new campaign, but "${there.key}" exists; give another --campaign`);
	await assertResults(options.results, there === null ? null : { place, id: there.id });
	const named = campaign === undefined || isUuid(campaign) ? null : campaign;
	return { cx, options, place, name: there?.key ?? named, there, timing };
}

const maxLength = 255;

function assertName(name: string): void {
	if (name.trim() === name && name !== '' && name.length <= maxLength && !/[\p{Cc}\p{Cf}]/u.test(name))
		return;
	const shown = JSON.stringify(name.slice(0, 60));
	throw new UsageError(`--campaign ${shown} is not a name: use 1 to ${maxLength} visible characters`);
}

/**
 * Opens a new campaign, or the one that an earlier run began. If the same message went to the same recipients within 24
 * hours, a person must confirm, and a script gets exit code 2. The exit code is 5 if another campaign has the name.
 */
export async function openCampaign(
	beginning: Beginning,
	spec: AnyCampaignSpec,
): Promise<Pick<CampaignRun, 'session' | 'begun'>> {
	const { cx, place, name, there } = beginning;
	const openNew = async (how: CampaignOpening) => {
		const session = await refusalExplained(beginning, spec, place.campaigns.open(name, spec, how));
		return { session, begun: name === null ? 'unnamed' : there === null ? 'named' : 'earlier' } as const;
	};
	try {
		return await openNew(unlessThere(beginning));
	} catch (error) {
		const { found, refusal } = await repeatedBy(beginning, error);
		if (found === undefined || !cx.canAsk || cx.globals.yes === true) throw refusal;
		const isOpen = ['staged', 'sending'].includes(campaignState(found));
		await cx
			.agree(`${sentence(cx, found)}.`, isOpen ? 'Resume it?' : 'Send it once more?')
			.catch((declined: unknown) => {
				if (!isOpen || !(declined instanceof Declined)) throw declined;
				throw new Declined({ hint: waysBeside(found) });
			});
		return isOpen ? goOnWith(beginning, found, spec) : openNew({});
	}
}

/** In a dry run, throws the errors that `openCampaign` would throw. */
export async function foreseeOpening(beginning: Beginning, spec: AnyCampaignSpec): Promise<void> {
	const { place, name, there } = beginning;
	try {
		await refusalExplained(beginning, spec, place.campaigns.check(name, spec, unlessThere(beginning)));
	} catch (error) {
		throw (await repeatedBy(beginning, error)).refusal;
	}
	if (there?.state === 'canceled') throw wasCanceled(there.key);
}

/** A staged campaign gets the times of this run; a released one keeps its own. */
async function goOnWith(beginning: Beginning, session: Campaign, spec: AnyCampaignSpec) {
	const { place, timing } = beginning;
	const { key, state } = session;
	const begun = 'earlier' as const;
	await place.hold(key);
	const isTimed = state === 'staged' && Object.keys(timing).length > 0;
	if (!isTimed) return { session, begun };
	const opening = place.campaigns.open(key, spec);
	return { session: await refusalExplained({ ...beginning, name: key }, spec, opening), begun };
}

/** Without a name, `--again` opens no campaign while an earlier repetition is unfinished. */
function unlessThere({ name, options }: Beginning): CampaignOpening {
	if (!options.again) return { unless: 'sent' };
	return name === null ? { unless: 'repeating' } : {};
}

async function refusalExplained<T>({ place, name }: Beginning, spec: AnyCampaignSpec, opening: Promise<T>) {
	try {
		return await explained(opening, { input: spec, hint: sendHint });
	} catch (error) {
		if (!(error instanceof ApiError) || error.code !== 'conflict' || repeatedKey(error) !== null) throw error;
		const other = name === null ? undefined : await lookUpCampaign(place.campaigns, name);
		// Canceling frees the name only if nothing was sent.
		const cancel = [', or first run ', mailctl('campaigns', 'cancel', name ?? '')];
		throw new CliError('conflict', exits.refused, `the name "${name}" belongs to another campaign`, {
			hint: ['give another --campaign', ...(other?.state === 'staged' ? cancel : [])],
			cause: error,
		});
	}
}

async function repeatedBy({ cx, place }: Beginning, cause: unknown) {
	const key = cause instanceof ApiError ? repeatedKey(cause) : null;
	if (key === null) throw cause;
	const found = await lookUpCampaign(place.campaigns, key);
	const what =
		found === undefined ? `"${key}" has the same message for the same recipients` : sentence(cx, found);
	return { found, refusal: new UsageError(`${what}; nothing was sent`, { hint: waysBeside(found), cause }) };
}

function waysBeside(found: Campaign | undefined): Hint {
	const state = found === undefined ? null : campaignState(found);
	if (found === undefined || state === 'finished' || state === 'canceled')
		return 'add --again to send it once more';
	const first =
		state === 'planned'
			? [mailctl('campaigns', 'cancel', found.key), ' drops it']
			: [mailctl('campaigns', 'resume', found.key), ' continues it'];
	return [...first, '; --again with another --campaign sends it once more'];
}

function sentence({ clock, times }: CommandContext, campaign: Campaign): string {
	const { key, list_id, date_released, plan } = campaign;
	const recipients = list_id === null ? 'these recipients' : 'this list';
	const state = campaignState(campaign);
	if (state === 'staged')
		return `"${key}" has the same message for ${recipients}; it is staged and not released`;
	if (state === 'planned')
		return `"${key}" has the same message for ${recipients}, ${sayPlan(plan, times) ?? state}`;
	const released = date_released === null ? null : parseDateTime(date_released);
	const ago = released === null ? '' : ` ${spanText(clock.now() - released)} ago`;
	const isOver = state === 'finished' ? '' : `, and is ${state === 'canceled' ? 'canceled' : 'not finished'}`;
	return `"${key}" was sent to ${recipients}${ago}${isOver}`;
}

export async function runCampaign(run: CampaignRun): Promise<ExitCode> {
	const { cx, place } = run;
	const { campaigns, isForeign } = place;
	const { id, key: name } = run.session;
	const status = await campaigns.status(id);
	const { deferred = 0, uncertain = 0 } = status.messages;
	if (status.state === 'canceled') throw wasCanceled(name);
	if (status.state === 'staged') await release(run);
	else if (waitingOf(status.messages) + deferred + uncertain === 0) return reportFinished(run, status);
	// With another service, do not announce a resumption: the delivery may fail because another process holds the lock.
	else await cx.note(`the campaign "${name}" is released already${isForeign ? '' : ': resuming it'}`);
	const released = await campaigns.status(id);
	await cx.note(`campaign ${name}, ${id}`);
	const plan = sayPlan(released.plan, cx.times);
	if (plan === null) {
		const delivering = () => deliver(run, released.counts, status.replies);
		// With another service, only a later run of this command sends the rest, so exit codes may suggest a retry.
		return isForeign ? delivering() : afterAcceptance(cx, name, delivering);
	}
	await cx.out.document(documentOf(released), `accepted: ${describe(released.counts)}`);
	await cx.note(plan);
	const orServe: Hint = (await cx.connection()).local === null ? '' : [' or ', mailctl('serve')];
	await cx.hint(['at the planned time, ', await sender(cx), orServe, ' must be running']);
	return exits.done;
}

function wasCanceled(name: string): UsageError {
	return new UsageError(`the campaign "${name}" was canceled; give another name`);
}

export async function assertStaged(run: CampaignRun): Promise<void> {
	assertCount(run, (await assertSendable(run, [])).counts);
}

/**
 * After a failure before the release, cancels a campaign with a generated name, because the user does not know the
 * name. Cancels a `named` one only if staging refused it or the user declined.
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
		// The server may have released the campaign without an answer, so do not drop the campaign.
		if (error instanceof CliError && error.exit === exits.uncertain) throw error;
		const isEnded = step === 'asking' || (step === 'staging' && error instanceof UsageError);
		const isDropped = begun === 'unnamed' || (begun === 'named' && isEnded);
		if (isDropped) await drop(run);
		const rest = recipients.again === undefined ? [] : ['--source', recipients.again];
		const resume = [mailctl('campaigns', 'resume', name, ...rest), ' continues'];
		if (cx.signal.aborted)
			await cx.hint(
				isDropped
					? `nothing was sent; the campaign "${name}" was deleted`
					: ['nothing was sent; ', ...resume],
			);
		else if (!isDropped && error instanceof Declined)
			throw new Declined({ done: 'nothing was sent', hint: resume });
		throw error;
	}
}

async function releaseOnce({ place, session }: CampaignRun, expect_count: number): Promise<void> {
	const { campaigns } = place;
	try {
		await campaigns.release(session.id, { expect_count });
	} catch (error) {
		if (!(error instanceof ApiError) || !mayHaveHappened(error)) throw error;
		const state = (await campaigns.status(session.id).catch(() => null))?.state ?? null;
		if (state === 'released') return;
		// A 5xx from the service itself means that the release has ended, so the state will not change.
		const isError = error.http !== null && error.http.status >= 500;
		if (state !== null && isError && !error.unanswered) throw error;
		const message = `the campaign may or may not have been released: ${error.message}`;
		throw new CliError('uncertain', exits.uncertain, message, {
			hint: [mailctl('campaigns', 'resume', session.key), ': no recipient gets the message twice'],
			cause: error,
		});
	}
}

/** A failure only warns, because another error ends the command. */
async function drop({ cx, place, session }: CampaignRun): Promise<void> {
	try {
		await place.campaigns.cancel(session.id, { forget: true });
	} catch (error) {
		if (error instanceof ApiError && (error.code === 'conflict' || error.code === 'not_found')) return;
		await cx.warn(`the staged campaign "${session.key}" was not deleted`);
	}
}

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
	if (selection !== null && !place.isForeign) findings.addOfLists(lists, errors);
	else
		for await (const { text, ...result } of eachResult(cx, place.campaigns, session.id, { only: 'findings' }))
			findings.add({ ...result, text: text ?? '' });
	if (!options.skipInvalid) throw findings.refusal(all, begun === 'earlier' ? session.key : null);
	await findings.warn(cx, all, true);
	return status;
}

function assertCount({ begun, session, options, recipients }: CampaignRun, counts: AcceptCounts): void {
	const { key: name } = session;
	// Do not name the list if an earlier run staged the campaign, because the list may have changed.
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
	const shown = await take(addresses(linesOf(run, sample)), sample);
	// Print an address per line, because a terminal would break a long line within addresses.
	const more = shown.length < staged ? ['  …'] : [];
	if (shown.length > 0) await cx.note(['first of them:', ...shown.map((to) => `  ${to}`), ...more]);
	const mail = `send${subject === null ? '' : ` "${subject}"`} to ${counted(staged, 'recipient')}`;
	const plan = status.plan && sayPlan({ ...status.plan, opens_at: status.plan.starts_at }, cx.times);
	await sayWhatHolds(cx, { campaign: run.session.id }, null);
	await cx.confirm({ kind: 'mild', what: plan ? `${mail}, ${plan}` : mail });
}

async function* addresses(lines: AsyncIterable<ResultLine>): AsyncGenerator<string> {
	for await (const { state, to } of lines) if (state !== 'rejected' && state !== 'suppressed') yield to;
}

function linesOf({ cx, place, session, recipients }: CampaignRun, limit?: number) {
	const isOfRows = recipients.selection === null || place.isForeign;
	return isOfRows ? rowLines(cx, place, session.id) : messageLines(cx, session.id, limit);
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

/** `known`: the replies before the release, which are not printed again if they have not changed. */
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
	// Read all counts again, because another process may have sent messages too.
	const after = await place.campaigns.status(id);
	// Print this before the results, because a results file that cannot be written ends the command.
	await cx.out.document(documentOf(after), `released: ${describe(counts)}`);
	await writeResults(run);
	const replies = isDeepStrictEqual(known, after.replies) ? [] : after.replies;
	const campaign = { name, sentence: sayOutcomes(after.messages), replies };
	const summary = outcome && { ...outcome, counts: outcomesOf(after.messages) };
	return concludeDelivery(cx, summary, { waiting: waitingOf(after.messages), campaign, ...unsentOf(after) });
}

async function writeResults(run: CampaignRun): Promise<void> {
	const { cx, session, options } = run;
	const later = mailctl('campaigns', 'results', session.key, '--save', 'FILE');
	if (options.results !== undefined)
		await writeLines(cx, options.results, linesOf(run), [later, ' writes them']);
}

function unsentOf({ counts, messages }: CampaignStatus) {
	const { canceled: _, ...others } = messages;
	const isUnsent = recipientsOf(counts) > 0 && Object.values(others).every((count) => count === 0);
	return { isUnsent, leftOut: counts.rejected };
}
