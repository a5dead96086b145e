/**
 * `send --list`, `--csv` and `--batch`: a campaign is staged, shown, agreed to and released. A dry run and a preview apply the
 * rules of staging to the recipients and write nothing (docs/decisions/2026-11-29-dry-runs.md).
 */

import {
	type Campaign,
	type CampaignSession,
	type CampaignSpec,
	campaignState,
	type RequestsSpec,
} from '../../../api/campaigns.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext, Foreseen } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { counted, numberText } from '../../render/units.js';
import { assertAcceptable, assertAllowed } from './accept.js';
import { uploadAttachments } from './attach.js';
import { type Beginning, beginCampaign, foreseeOpening, openCampaign } from './begin.js';
import { type Prepared, warnOfContent, warnOfLinks } from './content.js';
import { type SendOptions, wantsPreview } from './options.js';
import type { CampaignPlace } from './place.js';
import { type Addressee, compose, notAmong, sendTest, showDryRun, showPreview } from './preview.js';
import { type CampaignRun, runCampaign } from './release.js';
import { assertExpected, type Findings, noRecipients } from './report.js';
import { assertCanDeliver } from './watch.js';

/** `first`: up to the first message; `look`: for a person, where the recipients can be read twice; `all`: for a dry run. */
export type Depth = 'first' | 'look' | 'all';

export interface Audience {
	/** Its name in sentences: `list 1 "Readers"`, `people.csv`. */
	readonly of: string;
	readonly prepared: Prepared | null;
	readonly files: readonly FileToSend[];
	readonly spec: CampaignSpec | RequestsSpec;
	open(isWhole: boolean): Promise<void>;
	/** Finds what staging would find. */
	survey(depth: Depth): Promise<Survey>;
	run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'>;
	isBulk(): boolean;
	close(): Promise<void>;
}

export interface Survey {
	recipients: number;
	findings: Findings;
	/** The first that can be sent to, else the first with an address; with `--preview-as` that one. */
	first: First | null;
	isPart: boolean;
	plan: Foreseen;
	/** Who is left out of lists. */
	notes: readonly string[];
}

export interface First {
	prepared: Prepared;
	addressee: Addressee;
	checked: SendRequest;
	/** The request as it is, if it came whole. */
	request?: SendRequest;
}

export async function audienceOf(cx: CommandContext, options: SendOptions): Promise<Audience> {
	if (options.list.length > 0) return (await import('./recipients.js')).listAudience(cx, options);
	const { batchAudience, tableAudience } = await import('./row-audience.js');
	if (options.csv !== undefined) return tableAudience(cx, options, inputName(options.csv));
	return batchAudience(cx, options, inputName(options.batch ?? ''));
}

export async function sendCampaign(cx: CommandContext, options: SendOptions): Promise<ExitCode | undefined> {
	const audience = await audienceOf(cx, options);
	const { testTo } = options;
	const isLook = wantsPreview(options) || testTo !== undefined;
	const beginning = isLook ? null : await beginCampaign(cx, options, audience.of);
	try {
		await audience.open(beginning !== null || (cx.dryRun && testTo === undefined));
		if (testTo !== undefined) return await test(cx, audience, options, testTo);
		if (cx.dryRun) return await foresee(cx, audience, options, beginning);
		if (beginning === null) return await preview(cx, audience, options);
		await uploadAttachments(cx, audience.files);
		const { begun, ...session } = await openCampaign(cx, beginning, audience.spec);
		return await runCampaign(cx, { ...audience.run(beginning.place, session), begun });
	} finally {
		await audience.close();
	}
}

/** Ends as the campaign would: `UsageError` for findings, or 9 with `--skip-invalid`. */
async function foresee(
	cx: CommandContext,
	audience: Audience,
	options: SendOptions,
	beginning: Beginning | null,
): Promise<ExitCode | undefined> {
	if (beginning !== null) {
		await foreseeOpening(cx, beginning, audience.spec);
		if (beginning.there?.state === 'released') return foreseeResume(cx, beginning.there);
	}
	const survey = await audience.survey('all');
	const { recipients, findings, plan, notes } = survey;
	const first = options.previewAs === undefined ? survey.first : firstOf(audience, survey, options);
	if (first !== null) await assertAcceptable(cx, first.checked);
	const all = recipients + findings.rejected;
	if (all === 0 && options.expectCount !== 0) throw noRecipients(audience.of, notes);
	if (findings.rejected > 0 && !options.skipInvalid) throw findings.refusal(all);
	await findings.warn(cx, all, true);
	for (const line of notes) await cx.note(line);
	assertExpected(recipients, audience.of, options);
	const prepared = audience.prepared ?? first?.prepared ?? null;
	if (prepared !== null) await warnOfContent(cx, prepared);
	await warnOfLinks(cx, audience.isBulk());
	const people = counted(recipients, 'recipient');
	const left = findings.rejected === 0 ? '' : `, ${numberText(findings.rejected)} left out`;
	const sentence = (subject: string) =>
		audience.prepared === null
			? `send the requests of ${audience.of} to ${people}${left}`
			: `send ${subject} to the ${people} of ${audience.of}${left}`;
	if (first === null || recipients === 0) await cx.wouldDo(sentence('nothing'), plan);
	else if (wantsPreview(options)) await show(cx, first, survey, options);
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
	await warnOfContent(cx, first.prepared);
	await findings.warn(cx, recipients + findings.rejected, options.skipInvalid);
	if (findings.rejected > 0 && !options.skipInvalid)
		await cx.hint(['a campaign is refused for that: ', findings.wayOut()]);
	await show(cx, first, survey, options);
}

async function show(
	cx: CommandContext,
	{ prepared, addressee }: First,
	{ isPart, recipients, findings: { rejected } }: Survey,
	options: SendOptions,
): Promise<void> {
	const composed = await compose(cx, prepared, addressee);
	const counts = isPart ? { recipients: null, rejected: null } : { recipients, rejected };
	await showPreview(cx, { composed, prepared, counts }, options);
}

async function test(
	cx: CommandContext,
	audience: Audience,
	options: SendOptions,
	to: string,
): Promise<ExitCode> {
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	const first = firstOf(audience, await audience.survey('first'), options);
	return sendTest(cx, { ...first, to, options });
}

function firstOf({ of }: Audience, { first }: Survey, options: SendOptions): First {
	if (first !== null) return first;
	if (options.previewAs !== undefined) throw notAmong(options, `the recipients of ${of}`);
	throw new UsageError(`${of} has nobody to send to`);
}
