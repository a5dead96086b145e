/**
 * Opens and runs a campaign for `send --list`, `--csv` and `--batch`. A dry run and a preview apply the rules of
 * staging to the recipients and write nothing (docs/decisions/2026-11-29-dry-runs.md).
 */

import {
	type AnyCampaignSpec,
	type Campaign,
	type CampaignOpening,
	campaignState,
	isOfCalls,
	repeatedKey,
	type Timing,
} from '../../../api/campaigns.js';
import { parseDateTime } from '../../../api/datetime.js';
import { ApiError } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext, Foreseen } from '../../frame/context.js';
import { CliError, Declined, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { counted, numberText, spanText } from '../../render/units.js';
import { assertAllowed } from '../../verbs/allowed.js';
import { explained } from '../../verbs/refusals.js';
import { isUuid } from '../../verbs/resolve.js';
import { lookUpCampaign } from '../campaigns/record.js';
import { type CampaignRun, type Recipients, runCampaign, wasCanceled } from './campaign.js';
import { assertAcceptable, assertCanDeliver } from './delivery.js';
import { type First, warnOfLinks } from './draft.js';
import { type RunOptions, type SendOptions, wantsPreview } from './options.js';
import { type CampaignPlace, campaignPlace } from './place.js';
import { notAmong, sendTest, showDryRun, showPreview } from './preview.js';
import { assertExpected, type Findings, noRecipients } from './report.js';
import { readTiming, sayPlan, sendHint, uploadAttachments } from './request.js';
import { assertResults } from './results.js';

/** `first`: up to the first message; `look`: for a person, if recipients can be read twice; `all`: for a dry run. */
export type Depth = 'first' | 'look' | 'all';

/** Recipients that the options name, not read yet. `of` is their name in sentences. */
export interface Source {
	readonly of: string;
	/** `isWhole`: the recipients will be read to the end, so a pipe is copied to a file first. */
	open(isWhole: boolean): Promise<Audience>;
}

export interface Audience extends Recipients {
	readonly files: readonly FileToSend[];
	readonly spec: AnyCampaignSpec;
	/** Finds the errors that staging would find. */
	survey(depth: Depth): Promise<Survey>;
	close(): Promise<void>;
}

export interface Survey {
	recipients: number;
	findings: Findings;
	/** The recipient of `--preview-as`, or the first that can be sent to, or else the first with an address. */
	first: Checked | null;
	isPart: boolean;
	plan: Foreseen;
	/** Sentences that say who is left out of lists. */
	notes: readonly string[];
}

export interface Checked extends First {
	checked: SendRequest;
}

export async function sourceOf(cx: CommandContext, options: SendOptions): Promise<Source> {
	if (options.list.length > 0) return (await import('./recipients.js')).listSource(cx, options);
	const { requestSource, tableSource } = await import('./rows.js');
	if (options.csv !== undefined) return tableSource(cx, options, inputName(options.csv));
	return requestSource(cx, options, inputName(options.batch ?? ''));
}

export async function sendCampaign(cx: CommandContext, options: SendOptions): Promise<ExitCode | undefined> {
	const source = await sourceOf(cx, options);
	const { testTo } = options;
	const isLook = wantsPreview(options) || testTo !== undefined;
	const beginning = isLook ? null : await beginCampaign(cx, options, source.of);
	const audience = await source.open(beginning !== null || (cx.dryRun && testTo === undefined));
	try {
		if (testTo !== undefined) return await test(cx, audience, options, testTo);
		if (cx.dryRun) return await foresee(cx, audience, options, beginning);
		if (beginning === null) return await preview(cx, audience, options);
		await uploadAttachments(cx, audience.files);
		const { place, timing } = beginning;
		const opened = await openCampaign(beginning, { ...audience.spec, ...timing });
		return await runCampaign({ ...opened, cx, place, options, recipients: audience });
	} finally {
		await audience.close();
	}
}

/** Ends like the campaign: `UsageError` for findings, or exit code 9 with `--skip-invalid`. */
async function foresee(
	cx: CommandContext,
	audience: Audience,
	options: SendOptions,
	beginning: Beginning | null,
) {
	if (beginning !== null) {
		await foreseeOpening(beginning, { ...audience.spec, ...beginning.timing });
		if (beginning.there?.state === 'released') return foreseeResume(cx, beginning.there);
	}
	const survey = await audience.survey('all');
	const { recipients, findings, plan, notes } = survey;
	const { of } = audience;
	const first = options.previewAs === undefined ? survey.first : firstOf(audience, survey, options);
	if (first !== null) await assertAcceptable(cx, first.checked);
	const all = recipients + findings.rejected;
	if (all === 0 && options.expectCount !== 0) throw noRecipients(of, notes);
	if (findings.rejected > 0 && !options.skipInvalid) throw findings.refusal(all);
	await findings.warn(cx, all, true);
	for (const line of notes) await cx.note(line);
	assertExpected(recipients, of, options);
	await (audience.draft ?? first?.draft)?.warnOfContent();
	await warnOfLinks(cx, audience.isBulk);
	const people = counted(recipients, 'recipient');
	const left = findings.rejected === 0 ? '' : `, ${numberText(findings.rejected)} left out`;
	const sentence = (subject: string) =>
		audience.draft === null
			? `send the requests of ${of} to ${people}${left}`
			: `send ${subject} to the ${people} of ${of}${left}`;
	if (first === null || recipients === 0) await cx.wouldDo(sentence('nothing'), plan);
	else if (wantsPreview(options)) await showPreview(cx, first, countsOf(survey), options);
	else await showDryRun(cx, { ...first, sentence, plan });
	return findings.rejected > 0 ? exits.partly : exits.done;
}

export async function foreseeResume(cx: CommandContext, campaign: Campaign): Promise<undefined> {
	const { key } = campaign;
	const state = campaignState(campaign);
	await cx.wouldDo(`resume the campaign "${key}", which is ${state}`, { resume: key, state });
}

async function preview(cx: CommandContext, audience: Audience, options: SendOptions): Promise<undefined> {
	const survey = await audience.survey('look');
	const { findings, recipients } = survey;
	const first = firstOf(audience, survey, options);
	await assertAcceptable(cx, first.checked);
	await first.draft.warnOfContent();
	await findings.warn(cx, recipients + findings.rejected, options.skipInvalid);
	if (findings.rejected > 0 && !options.skipInvalid)
		await cx.hint(['a campaign with these errors is refused: ', findings.wayOut()]);
	await showPreview(cx, first, countsOf(survey), options);
}

function countsOf({ isPart, recipients, findings: { rejected } }: Survey) {
	return isPart ? { recipients: null, rejected: null } : { recipients, rejected };
}

async function test(cx: CommandContext, audience: Audience, options: SendOptions, to: string) {
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	return sendTest(cx, firstOf(audience, await audience.survey('first'), options), to, options);
}

function firstOf({ of }: Audience, { first }: Survey, options: SendOptions): Checked {
	if (first !== null) return first;
	if (options.previewAs !== undefined) throw notAmong(options, `the recipients of ${of}`);
	throw new UsageError(`${of} has nobody to send to`);
}

interface Beginning {
	cx: CommandContext;
	options: SendOptions;
	place: CampaignPlace;
	name: string | null;
	there: Campaign | null;
	timing: Timing;
}

/** A script must give both options, so that neither a habit nor a larger list starts a campaign. */
export function assertConsent(cx: CommandContext, { expectCount }: RunOptions, recipients: string): void {
	const isYes = cx.globals.yes === true;
	if (cx.canAsk || (isYes && expectCount !== undefined)) return;
	const missing = [...(isYes ? [] : ['--yes']), ...(expectCount === undefined ? ['--expect-count N'] : [])];
	throw new UsageError(`sending to ${recipients} must be confirmed`, { hint: `add ${missing.join(' ')}` });
}

/** Throws `UsageError` before anything is staged. A dry run needs no confirmation. `recipients`: their name in sentences. */
async function beginCampaign(
	cx: CommandContext,
	options: SendOptions,
	recipients: string,
): Promise<Beginning> {
	const timing = await readTiming(cx, options);
	const place = await campaignPlace(cx);
	if (!cx.dryRun) assertConsent(cx, options, recipients);
	await assertCanDeliver(cx, options);
	const { campaign, again } = options;
	if (campaign !== undefined) assertName(campaign);
	const found = campaign === undefined ? undefined : await lookUpCampaign(place.campaigns, campaign);
	// A campaign of send calls has its UUID as its name. A campaign with rows starts beside it, and later calls join it.
	const there = found === undefined || isOfCalls(found) ? null : found;
	if (there === null && campaign !== undefined && isUuid(campaign) && options.batch !== undefined)
		throw new UsageError(`campaign ${campaign} not found; give --batch a name for a new one`);
	// An earlier run of the same command may have left a staged campaign.
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
 * hours, asks a person; a script gets exit code 2. Exit code 5 if the name belongs to another campaign.
 */
async function openCampaign(
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

/** In a dry run, refuses for the same reasons as the opening. */
async function foreseeOpening(beginning: Beginning, spec: AnyCampaignSpec): Promise<void> {
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

/** Repeating a command with `--again` does not begin a third campaign. */
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

/** Returns the campaign with the same message to the same recipients, and a refusal. Throws any other error. */
async function repeatedBy({ cx, place }: Beginning, cause: unknown) {
	const key = cause instanceof ApiError ? repeatedKey(cause) : null;
	if (key === null) throw cause;
	const found = await lookUpCampaign(place.campaigns, key);
	const what =
		found === undefined ? `"${key}" is the same message to the same recipients` : sentence(cx, found);
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

/** `"spring-news" was sent to this list 4 minutes ago, and is not finished`. */
function sentence({ clock, times }: CommandContext, campaign: Campaign): string {
	const { key, list_id, date_released, plan } = campaign;
	const recipients = list_id === null ? 'these recipients' : 'this list';
	const state = campaignState(campaign);
	if (state === 'staged') return `"${key}" is the same message to ${recipients}, staged and not released`;
	if (state === 'planned')
		return `"${key}" is the same message to ${recipients}, ${sayPlan(plan, times) ?? state}`;
	const released = date_released === null ? null : parseDateTime(date_released);
	const ago = released === null ? '' : ` ${spanText(clock.now() - released)} ago`;
	const isOver = state === 'finished' ? '' : `, and is ${state === 'canceled' ? 'canceled' : 'not finished'}`;
	return `"${key}" was sent to ${recipients}${ago}${isOver}`;
}
