/**
 * `send --list`, `--csv` and `--batch`: one way for all. A campaign is staged, shown, agreed to and released. A dry run and a
 * preview put its recipients through the same rules without a write: staging a million and dropping them again takes five to
 * seven times as long (docs/decisions/2026-11-29-dry-runs.md).
 */

import { parseMailbox } from '../../../api/address.js';
import {
	type Campaign,
	type CampaignSession,
	type CampaignSpec,
	campaignState,
	type RequestsSpec,
} from '../../../api/campaigns.js';
import type { SendRequest } from '../../../api/inputs.js';
import { usedVariables } from '../../../api/variables.js';
import { joinVariables, overlayVariables, type Person, personVariables } from '../../../engine/rules/meta.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { type CliError, UsageError } from '../../frame/errors.js';
import { type ExitCode, exits } from '../../frame/exit.js';
import type { Foreseen } from '../../frame/plan.js';
import { inputName } from '../../frame/sources.js';
import { uploadAttachments } from './attach.js';
import { type Beginning, beginCampaign, type CampaignPlace, foreseeOpening, openCampaign } from './begin.js';
import type { Findings } from './findings.js';
import { warnOfContent } from './lint.js';
import { type SendOptions, wantsPreview } from './options.js';
import {
	type Addressee,
	assertAcceptable,
	compose,
	sendTrial,
	showDryRun,
	showPreview,
	showRequest,
} from './preview.js';
import { type CampaignRun, runCampaign } from './release.js';
import { assertExpected } from './report.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';
import { assertCanDeliver } from './watch.js';

export interface Audience {
	readonly name: string;
	/** The words where recipients are counted: `the list`, `people.csv`. */
	readonly where: string;
	/** Null where each request has its own content. */
	readonly prepared: Prepared | null;
	/** The files that go with each mail. */
	readonly files: readonly FileToSend[];
	readonly noRecipients: string;
	/** Only once it is open. */
	readonly spec: CampaignSpec | RequestsSpec;
	/** `isWhole`: all of its rows are wanted, else the first. Refuses lists that the profile may not write to. */
	open(isWhole: boolean): Promise<void>;
	/**
	 * What staging would find. `first`: no further than the first message; `look`: all that a person should know of, where
	 * it can be read twice.
	 */
	survey(depth: 'first' | 'look' | 'all'): Promise<Survey>;
	run(place: CampaignPlace, session: CampaignSession): Omit<CampaignRun, 'begun'>;
	sentence(subject: string, survey: Survey): string;
	plan(survey: Survey): Foreseen;
	/** Warnings of links, after the survey. */
	warn(): Promise<void>;
	/** The refusal where no message can be shown. */
	noFirst(): CliError;
	close(): Promise<void>;
}

/** Recipients before any is staged. */
export interface Survey {
	/** Before suppression, without those with findings. */
	recipients: number;
	findings: Findings;
	/** The first that can be sent to, or the one of `--preview-as`; null: there is none. */
	first: First | null;
	/** The same, or the first with an address, whatever else it lacks. */
	shown: First | null;
	isPart: boolean;
	notes: readonly string[];
	/** The same as the hint of a refusal. */
	hint: string | null;
	/** Counts of this kind alone. */
	plan: object;
}

export interface First {
	prepared: Prepared;
	addressee: Addressee;
	/** Refused as the campaign would be. */
	checked: SendRequest;
	/** The call for this recipient, as a campaign makes it. */
	call: () => SendRequest;
}

/** Its name before it is opened, and what opens it. */
export async function audienceOf(cx: CommandContext, options: SendOptions): Promise<Audience> {
	if (options.list.length > 0) return (await import('./recipients.js')).listAudience(cx, options);
	const { batchAudience, tableAudience } = await import('./row-audience.js');
	if (options.csv !== undefined) return tableAudience(cx, options, inputName(options.csv));
	return batchAudience(cx, options, inputName(options.batch ?? ''));
}

export async function sendCampaign(cx: CommandContext, options: SendOptions): Promise<ExitCode | undefined> {
	const audience = await audienceOf(cx, options);
	const isLook = wantsPreview(options) || options.testTo !== undefined;
	const beginning = isLook ? null : await beginCampaign(cx, options, audience.name);
	try {
		await audience.open(beginning !== null || (cx.dryRun && options.testTo === undefined));
		if (options.testTo !== undefined) return await test(cx, audience, options, options.testTo);
		if (cx.dryRun) return await foresee(cx, audience, { options, beginning });
		if (beginning === null) return await preview(cx, audience, options);
		await uploadAttachments(cx, audience.files);
		const session = await openCampaign(cx, beginning, audience.spec);
		const run = audience.run(beginning.place, session);
		const warn = async () => {
			if (audience.prepared !== null) await warnOfContent(cx, audience.prepared);
			await run.warn();
		};
		return await runCampaign(cx, { ...run, warn, begun: session.begun });
	} finally {
		await audience.close();
	}
}

/** Ends as the campaign would: `UsageError` for findings, or 9 with `--skip-invalid`. */
async function foresee(
	cx: CommandContext,
	audience: Audience,
	{ options, beginning }: { options: SendOptions; beginning: Beginning | null },
): Promise<ExitCode | undefined> {
	if (beginning !== null) {
		await foreseeOpening(cx, beginning, audience.spec);
		if (beginning.there?.state === 'released') return foreseeResume(cx, beginning.there);
	}
	const survey = await audience.survey('all');
	const { recipients, findings, first, notes, hint } = survey;
	if (first === null && options.previewAs !== undefined) throw audience.noFirst();
	if (first !== null) await assertAcceptable(cx, first.checked);
	const of = recipients + findings.rejected;
	if (of === 0 && options.expectCount !== 0)
		throw new UsageError(audience.noRecipients, hint === null ? {} : { hint });
	if (findings.rejected > 0 && !options.skipInvalid) throw findings.refusal(of);
	await findings.warn(cx, of, true);
	for (const line of notes) await cx.note(line);
	assertExpected({ found: recipients, where: audience.where, options });
	const prepared = audience.prepared ?? first?.prepared ?? null;
	if (prepared !== null) await warnOfContent(cx, prepared);
	await audience.warn();
	await showPlan(cx, audience, survey, options);
	return findings.rejected > 0 ? exits.partly : exits.done;
}

/** A dry run shows the first message where there is one and it can be known. */
async function showPlan(
	cx: CommandContext,
	audience: Audience,
	survey: Survey,
	options: SendOptions,
): Promise<void> {
	const { first } = survey;
	const plan = audience.plan(survey);
	const sentence = (subject: string) => audience.sentence(subject, survey);
	if (first === null) return cx.wouldDo(sentence('nothing'), plan);
	const { prepared, addressee } = first;
	const { template_unique_id, subject } = prepared.request;
	if (isOpaque(prepared) && !wantsPreview(options))
		return cx.wouldDo(sentence(`template ${template_unique_id}`), plan);
	if (await isMadeElsewhere(cx))
		return showRequest(cx, { request: first.call(), sentence: sentence(`"${subject}"`), plan });
	const composed = await compose(cx, prepared, addressee);
	if (!wantsPreview(options)) return showDryRun(cx, composed, sentence(`"${composed.subject}"`), plan);
	return showPreview(cx, { composed, prepared, counts: countsOf(survey) }, options);
}

/** Under `--dry-run`: the campaign would be gone on with. */
export async function foreseeResume(cx: CommandContext, campaign: Campaign): Promise<undefined> {
	const { key } = campaign;
	const state = campaignState(campaign);
	await cx.wouldDo(`go on with the campaign "${key}", which is ${state}`, { resume: key, state });
}

/** `--preview` and `--eml`: the first message, and what the campaign would be refused for. */
async function preview(cx: CommandContext, audience: Audience, options: SendOptions): Promise<undefined> {
	const survey = await audience.survey('look');
	const { findings, recipients, shown } = survey;
	if (shown === null) throw audience.noFirst();
	await assertAcceptable(cx, shown.checked);
	await warnOfContent(cx, shown.prepared);
	await findings.warn(cx, recipients + findings.rejected, options.skipInvalid);
	if (findings.rejected > 0 && !options.skipInvalid) await findings.hint(cx);
	const composed = await compose(cx, withNamed(shown.prepared, findings), shown.addressee);
	await showPreview(cx, { composed, prepared: shown.prepared, counts: countsOf(survey) }, options);
}

/** The request with the variables of findings named, so that no second warning is. */
export function withNamed(prepared: Prepared, { variables }: Findings): Prepared {
	return { ...prepared, named: [...(prepared.named ?? []), ...variables] };
}

function countsOf({ isPart, recipients, findings: { rejected } }: Survey) {
	return isPart ? { recipients: null, rejected: null } : { recipients, rejected };
}

/** To an address of the sender's: with the first recipient's variables, in no campaign. */
async function test(
	cx: CommandContext,
	audience: Audience,
	options: SendOptions,
	to: string,
): Promise<ExitCode> {
	assertAllowed(cx, [to]);
	await assertCanDeliver(cx, options);
	const { shown } = await audience.survey('first');
	if (shown === null) throw audience.noFirst();
	return sendTrial(cx, { ...shown, to, options });
}

/** The call for one recipient. `given`: the values of the row over what is known of the person. */
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

/** The profile names the recipients that it may write to. */
export function isLimited(cx: CommandContext): boolean {
	return cx.settings.profile.allowRecipients !== undefined;
}

/** Throws `UsageError` naming the first address that no pattern of the profile covers. */
export function assertAllowed(cx: CommandContext, addresses: readonly string[]): void {
	const { allowRecipients } = cx.settings.profile;
	if (allowRecipients === undefined) return;
	const patterns = allowRecipients.map(toExpression);
	const isAllowed = (text: string) => {
		const address = parseMailbox(text)?.address ?? text;
		return patterns.some((pattern) => pattern.test(address));
	};
	const refused = addresses.find((address) => !isAllowed(address));
	if (refused === undefined) return;
	throw new UsageError(`this profile may not write to ${refused}; nothing was sent`, {
		hint: `allowRecipients: ${allowRecipients.join(', ')}`,
	});
}

/** `*` stands for anything within a part of the address; case does not count. */
function toExpression(glob: string): RegExp {
	const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
	return new RegExp(`^${parts.join('[^@]*')}$`, 'i');
}
