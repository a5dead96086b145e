/**
 * Sends a campaign to the recipients of `--list`, `--csv` and `--batch`. A dry run and a preview apply the rules of
 * staging to the recipients and write nothing (docs/decisions/2026-11-29-dry-runs.md).
 */

import { type AnyCampaignSpec, type Campaign, campaignState } from '../../../api/campaigns.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext, Foreseen } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { counted, numberText } from '../../render/units.js';
import { assertAllowed } from '../../verbs/allowed.js';
import {
	type Beginning,
	beginCampaign,
	foreseeOpening,
	openCampaign,
	type Recipients,
	runCampaign,
} from './campaign.js';
import { assertAcceptable, assertCanDeliver } from './delivery.js';
import { type First, warnOfLinks } from './draft.js';
import { type SendOptions, wantsPreview } from './options.js';
import { notAmong, sendTest, showDryRun, showPreview } from './preview.js';
import { assertExpected, type Findings, noRecipients } from './report.js';
import { uploadAttachments } from './request.js';

/**
 * How far `survey` reads. `first`: it stops at the first message. `look`: it stops there for a pipe, but may read a
 * whole file or list.
 */
export type Depth = 'first' | 'look' | 'all';

/** The recipients that the options name, before they are read. `of` is their name in sentences. */
export interface Source {
	readonly of: string;
	/** `isWhole`: the recipients will be read to the end, so a pipe is copied to a file first. */
	open(isWhole: boolean): Promise<Audience>;
}

export interface Audience extends Recipients {
	readonly files: readonly FileToSend[];
	readonly spec: AnyCampaignSpec;
	survey(depth: Depth): Promise<Survey>;
	close(): Promise<void>;
}

export interface Survey {
	recipients: number;
	findings: Findings;
	/** The message for `--preview-as`, or else for the first valid recipient, or else the first with an address. */
	first: First | null;
	isPart: boolean;
	plan: Foreseen;
	notes: readonly string[];
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
		if (testTo !== undefined) {
			assertAllowed(cx, [testTo]);
			await assertCanDeliver(cx, options);
			return await sendTest(cx, firstOf(audience, await audience.survey('first'), options), testTo, options);
		}
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
	if (first !== null) await assertAcceptable(cx, requestOf(audience, first));
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
	await assertAcceptable(cx, requestOf(audience, first));
	await first.draft.warnOfContent();
	await findings.warn(cx, recipients + findings.rejected, options.skipInvalid);
	if (findings.rejected > 0 && !options.skipInvalid)
		await cx.hint(['these errors stop the send: ', findings.wayOut()]);
	await showPreview(cx, first, countsOf(survey), options);
}

/** Omits the values of the row, because one wrong value must not fail the check of the whole campaign. */
function requestOf({ draft }: Audience, first: First): SendRequest {
	return first.request ?? { ...(draft ?? first.draft).request, to: [first.addressee.to] };
}

function countsOf({ isPart, recipients, findings: { rejected } }: Survey) {
	return isPart ? { recipients: null, rejected: null } : { recipients, rejected };
}

function firstOf({ of }: Audience, { first }: Survey, options: SendOptions): First {
	if (first !== null) return first;
	if (options.previewAs !== undefined) throw notAmong(options, `the recipients of ${of}`);
	throw new UsageError(`${of} has nobody to send to`);
}
