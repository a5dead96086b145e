/**
 * `send --list`, `--csv` and `--batch`: one way for all. A campaign is staged, shown, agreed to and released. A dry run and a
 * preview put its recipients through the same rules without a write (docs/decisions/2026-11-29-dry-runs.md).
 */

import {
	type Campaign,
	type CampaignSession,
	type CampaignSpec,
	campaignState,
	type RequestsSpec,
} from '../../../api/campaigns.js';
import type { SendRequest } from '../../../api/inputs.js';
import { usedVariables } from '../../../api/variables.js';
import {
	joinVariables,
	overlayVariables,
	type Person,
	personVariables,
} from '../../../engine/rules/subscribers.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext, Foreseen } from '../../frame/context.js';
import { type CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import { inputName } from '../../frame/sources.js';
import { assertAcceptable, assertAllowed } from './accept.js';
import { uploadAttachments } from './attach.js';
import { type Beginning, beginCampaign, type CampaignPlace, foreseeOpening, openCampaign } from './begin.js';
import { warnOfContent, warnOfLinks } from './lint.js';
import { type SendOptions, wantsPreview } from './options.js';
import { type Addressee, compose, sendTrial, showDryRun, showPreview } from './preview.js';
import { type CampaignRun, runCampaign } from './release.js';
import { assertExpected, type Findings } from './report.js';
import { contentOf, isOpaque, type Prepared } from './request.js';
import { assertCanDeliver } from './watch.js';

export interface Audience {
	readonly name: string;
	readonly where: string;
	readonly prepared: Prepared | null;
	readonly files: readonly FileToSend[];
	readonly noRecipients: string;
	readonly spec: CampaignSpec | RequestsSpec;
	open(isWhole: boolean): Promise<void>;
	/**
	 * Finds what staging would find. `first`: no further than the first message; `look`: whatever a person should know,
	 * where the recipients can be read twice.
	 */
	survey(depth: 'first' | 'look' | 'all'): Promise<Survey>;
	run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'>;
	sentence(subject: string, survey: Survey): string;
	plan(survey: Survey): Foreseen;
	isBulk(): boolean;
	noFirst(): CliError;
	close(): Promise<void>;
}

export interface Survey {
	recipients: number;
	findings: Findings;
	/** The first that can be sent to, else the first with an address; of `--preview-as` that one. Null: there is none. */
	first: First | null;
	isPart: boolean;
	notes: readonly string[];
}

export interface First {
	prepared: Prepared;
	addressee: Addressee;
	checked: SendRequest;
	request: () => SendRequest;
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
	const beginning = isLook ? null : await beginCampaign(cx, options, audience.name);
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
	const { recipients, findings, first, notes } = survey;
	if (first === null && options.previewAs !== undefined) throw audience.noFirst();
	if (first !== null) await assertAcceptable(cx, first.checked);
	const of = recipients + findings.rejected;
	const [hint] = notes;
	if (of === 0 && options.expectCount !== 0)
		throw new UsageError(audience.noRecipients, hint === undefined ? {} : { hint });
	if (findings.rejected > 0 && !options.skipInvalid) throw findings.refusal(of);
	await findings.warn(cx, of, true);
	for (const line of notes) await cx.note(line);
	assertExpected(recipients, audience.where, options);
	const prepared = audience.prepared ?? first?.prepared ?? null;
	if (prepared !== null) await warnOfContent(cx, prepared);
	await warnOfLinks(cx, audience.isBulk());
	const plan = audience.plan(survey);
	const sentence = (subject: string) => audience.sentence(subject, survey);
	if (first === null || recipients === 0) await cx.wouldDo(sentence('nothing'), plan);
	else if (wantsPreview(options)) await show(cx, first, survey, options);
	else await showDryRun(cx, { ...first, sentence, plan });
	return findings.rejected > 0 ? exits.partly : exits.done;
}

export async function foreseeResume(cx: CommandContext, campaign: Campaign): Promise<undefined> {
	const { key } = campaign;
	const state = campaignState(campaign);
	await cx.wouldDo(`go on with the campaign "${key}", which is ${state}`, { resume: key, state });
}

async function preview(cx: CommandContext, audience: Audience, options: SendOptions): Promise<undefined> {
	const survey = await audience.survey('look');
	const { findings, recipients, first } = survey;
	if (first === null) throw audience.noFirst();
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
	const { first } = await audience.survey('first');
	if (first === null) throw audience.noFirst();
	return sendTrial(cx, { ...first, to, options });
}

export function requestFor(
	prepared: Prepared,
	person: Person,
	given: Readonly<Record<string, string>> = {},
): SendRequest {
	const { context: shared = {}, ...request } = prepared.request;
	const used = isOpaque(prepared) ? null : usedVariables(contentOf(prepared));
	const values = overlayVariables(personVariables(person, used, shared), used, given);
	const context = joinVariables(values, used, shared);
	return { ...request, to: [person.email], ...(Object.keys(context).length > 0 && { context }) };
}
