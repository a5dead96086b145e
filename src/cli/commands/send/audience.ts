/**
 * Who a campaign is for, before anything is staged: rows, requests and subscribers go through the rules by which they are
 * staged. Not done and undone, as other dry runs are: a campaign is many transactions, each of which builds on those before,
 * and a deployment can only be read. So suppressions count where recipients are staged, and not here.
 */

import { parseMailbox } from '../../../api/address.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { List } from '../../../api/records.js';
import { usedVariables } from '../../../api/variables.js';
import {
	joinVariables,
	missingVariables,
	overlayVariables,
	type Person,
	personVariables,
} from '../../../engine/rules/meta.js';
import type { ComposedMessage } from '../../frame/composition.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { isMachine } from '../../frame/globals.js';
import type { Foreseen } from '../../verbs/foreseen.js';
import { walk } from '../../verbs/listing.js';
import { subscribersByKey } from '../subscribers/walk.js';
import type { SendOptions } from './options.js';
import { showDryRun, showPreview, showRequest, wantsPreview } from './preview.js';
import {
	cannotBeSent,
	type Findings,
	findingLine,
	listed,
	missingVariable,
	shownFindings,
} from './report.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';

/** Why a recipient cannot be sent to. */
export interface Finding {
	code: string;
	error: string;
}

/** What is found of an audience, read row by row. */
export class Survey<Row> implements Findings {
	/** The first row that can be sent to; null: there is none. */
	first: Row | null = null;
	/** Rows, requests or subscribers read. */
	read = 0;
	/** Recipients that would be sent to. */
	recipients = 0;
	/** Those that were met before; they are rejected too. */
	duplicates = 0;
	rejected = 0;
	lacksValues = false;
	readonly lines: string[] = [];
	readonly #most: number;

	/** `most`: findings to keep. */
	constructor(most: number) {
		this.#most = most;
	}

	/** `isShown`: it may be the one whose message is shown. */
	add(row: Row, recipients = 1, isShown = true): void {
		this.recipients += recipients;
		if (recipients > 0 && isShown) this.first ??= row;
	}

	reject({ code, error }: Finding, { to, line }: { to: string; line?: number | undefined }): void {
		this.rejected += 1;
		if (code === 'duplicate') this.duplicates += 1;
		this.lacksValues ||= code === missingVariable;
		if (this.lines.length < this.#most)
			this.lines.push(findingLine({ line: line ?? null, to, code, text: error }));
	}
}

/** Findings that a dry run keeps. */
export function mostFindings(cx: CommandContext): number {
	return isMachine(cx.out.format) ? Number.POSITIVE_INFINITY : shownFindings;
}

/** What all recipients share, as far as one is checked against it. */
interface Shared {
	/** The variables the content uses; null: a template of the service, which does not tell. */
	used: readonly string[] | null;
	context: Readonly<Record<string, string>>;
}

export function sharedBy(prepared: Prepared): Shared {
	const used = isOpaque(prepared) ? null : usedVariables(contentOf(prepared));
	return { used, context: prepared.request.context ?? {} };
}

/** The used variables that have a value nowhere. `given`: what the row says over what is known of the person. */
export function lacking(
	person: Person,
	{ used, context }: Shared,
	given: Readonly<Record<string, string>> = {},
): string[] {
	return missingVariables(valuesOf(person, { used, context }, given), used, context);
}

/** The finding of a recipient without those values. */
export function lacks(email: string, missing: readonly string[]): Finding {
	return { code: missingVariable, error: `${email}: no value for ${sayVariables(missing)}.` };
}

/** Of an address that is in the audience already. */
export function metBefore(email: string): Finding {
	return { code: 'duplicate', error: `${email} is in this campaign already.` };
}

/** `#a#, #b#`, as people write them. */
export function sayVariables(names: readonly string[]): string {
	return names.map((name) => `#${name}#`).join(', ');
}

/** The call for one recipient, as a campaign makes it. */
export function requestFor(
	prepared: Prepared,
	person: Person,
	given: Readonly<Record<string, string>> = {},
): SendRequest {
	const { context: _, ...request } = prepared.request;
	const shared = sharedBy(prepared);
	const context = joinVariables(valuesOf(person, shared, given), shared.used, shared.context);
	return { ...request, to: [person.email], ...(Object.keys(context).length > 0 && { context }) };
}

function valuesOf(
	person: Person,
	{ used, context }: Shared,
	given: Readonly<Record<string, string>>,
): Record<string, string> {
	return overlayVariables(personVariables(person, used, context), used, given);
}

/** Ends as the campaign would: `UsageError` for findings, unless they are to be left out. */
export async function assertFindings(
	cx: CommandContext,
	found: Findings,
	{ skipInvalid }: SendOptions,
): Promise<void> {
	if (found.rejected > 0 && !skipInvalid) throw cannotBeSent(found, { where: '', isNamed: false });
	for (const line of listed(found)) await cx.warn(`left out: ${line}`);
}

/** What a campaign would do. */
interface Plan {
	prepared: Prepared;
	options: SendOptions;
	/** A sentence about something with that subject. */
	what: (subject: string) => string;
	plan: Foreseen;
	/** The first recipient's message, or the call that asks for it; null: there is no recipient. */
	first: { request: () => SendRequest; message: () => Promise<ComposedMessage> } | null;
}

/** A dry run shows the first message where there is one and it can be known. */
export async function showPlan(
	cx: CommandContext,
	{ prepared, options, what, plan, first }: Plan,
): Promise<void> {
	if (isOpaque(prepared) && !wantsPreview(options))
		return cx.wouldDo(what(`template ${prepared.request.template_unique_id}`), plan);
	if (first === null) return cx.wouldDo(what('nothing'), plan);
	if (await isMadeElsewhere(cx)) {
		const request = first.request();
		return showRequest(cx, { request, what: what(`"${prepared.request.subject}"`), plan });
	}
	const composed = await first.message();
	if (wantsPreview(options)) return showPreview(cx, composed, options);
	return showDryRun(cx, composed, what(`"${composed.subject}"`), plan);
}

/** Throws `UsageError` naming the first address that no pattern covers. Without patterns every address is allowed. */
export function assertAllowed(cx: CommandContext, addresses: readonly string[]): void {
	const patterns = patternsOf(cx);
	const refused = patterns === null ? undefined : addresses.find((address) => !isAllowed(patterns, address));
	if (refused !== undefined) throw notAllowed(cx, refused);
}

/** The same for the active subscribers of a list. */
export async function assertListAllowed(cx: CommandContext, list: Pick<List, 'id'>): Promise<void> {
	const patterns = patternsOf(cx);
	if (patterns === null) return;
	const api = await cx.api();
	for await (const { email } of walk(
		await subscribersByKey(api, list.id),
		{ is_active: true },
		{ signal: cx.signal },
	)) {
		if (!isAllowed(patterns, email)) throw notAllowed(cx, email);
	}
}

function patternsOf(cx: CommandContext): RegExp[] | null {
	return cx.settings.profile.allowRecipients?.map(toExpression) ?? null;
}

/** `*` stands for anything within a part of the address; case does not count. */
function toExpression(glob: string): RegExp {
	const parts = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
	return new RegExp(`^${parts.join('[^@]*')}$`, 'i');
}

function isAllowed(patterns: readonly RegExp[], text: string): boolean {
	const address = parseMailbox(text)?.address ?? text;
	return patterns.some((pattern) => pattern.test(address));
}

function notAllowed(cx: CommandContext, address: string): UsageError {
	return new UsageError(`this profile may not write to ${address}; nothing was sent`, {
		hint: `allowRecipients: ${cx.settings.profile.allowRecipients?.join(', ')}`,
	});
}
