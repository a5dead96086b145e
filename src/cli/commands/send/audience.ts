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
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { Foreseen } from '../../verbs/dry-run.js';
import { walk } from '../../verbs/listing.js';
import { subscribersByKey } from '../subscribers/walk.js';
import { cannotBeSent, type Finding, type Findings } from './findings.js';
import type { SendOptions } from './options.js';
import { type Composed, showDryRun, showRequest, wantsPreview } from './preview.js';
import { type PreviewCounts, showPreview } from './preview-output.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';

/** What is found of an audience, read row by row. */
export class Survey<Row> {
	/** The first row that can be sent to; null: there is none. */
	first: Row | null = null;
	/** Rows, requests or subscribers read. */
	read = 0;
	/** Recipients that would be sent to. */
	recipients = 0;
	/** Those that were met before; they are rejected too. */
	duplicates = 0;
	readonly findings: Findings;

	constructor(findings: Findings) {
		this.findings = findings;
	}

	/** Recipients that cannot be sent to. */
	get rejected(): number {
		return this.findings.rejected;
	}

	/** `isShown`: it may be the one whose message is shown. */
	add(row: Row, recipients = 1, isShown = true): void {
		this.recipients += recipients;
		if (recipients > 0 && isShown) this.first ??= row;
	}

	reject({ code, error }: Finding, { to, line }: { to: string; line?: number | undefined }): void {
		if (code === 'duplicate') this.duplicates += 1;
		this.findings.add({ line: line ?? null, to, code, text: error });
	}
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
	{ findings, recipients }: Pick<Survey<unknown>, 'findings' | 'recipients'>,
	{ skipInvalid }: SendOptions,
): Promise<void> {
	const of = recipients + findings.rejected;
	if (findings.rejected > 0 && !skipInvalid) throw cannotBeSent(findings, { of });
	for (const line of findings.lines(of)) await cx.warn(`left out: ${line}`);
}

/** What a campaign would do. */
interface Plan {
	prepared: Prepared;
	options: SendOptions;
	/** A sentence about something with that subject. */
	what: (subject: string) => string;
	plan: Foreseen & PreviewCounts;
	/** The first recipient's message, or the call that asks for it; null: there is no recipient. */
	first: { request: () => SendRequest; message: () => Promise<Composed> } | null;
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
	const counts = async () => ({ recipients: plan.recipients, rejected: plan.rejected });
	if (wantsPreview(options)) return showPreview(cx, { composed, prepared, counts }, options);
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
