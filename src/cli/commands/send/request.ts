/**
 * From options to a send request and its times: files read, headers and variables parsed, and options refused that
 * exclude each other or that the deployment cannot honour.
 */

import { parseMailbox } from '../../../api/address.js';
import type { CampaignPlan, CampaignSpec, PlannedTiming, Recipient, Timing } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { localTime, parseDateTime } from '../../../api/datetime.js';
import { ApiError, listFieldErrors } from '../../../api/errors.js';
import { builtInVariables, type SendRequest } from '../../../api/inputs.js';
import type { Content } from '../../../api/messages.js';
import type { Template } from '../../../api/records.js';
import { hasDefault, usedVariables, variableName } from '../../../api/variables.js';
import type { FileSource } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import type { Times } from '../../render/times.js';
import { readMarkdown } from '../../verbs/content.js';
import { walk } from '../../verbs/listing.js';
import type { Refused } from '../../verbs/refusals.js';
import { isUuid } from '../../verbs/resolve.js';
import { findSender, withNameOf } from '../../verbs/sender-names.js';
import { findCampaign } from '../campaigns/record.js';
import { findInAllLists } from '../subscribers/walk.js';
import { assertClear, namedIn, readAttachments } from './attach.js';
import { assertContent, assertRules, type SendOptions, sendOptions } from './options.js';

export interface Prepared {
	request: Omit<SendRequest, 'to'>;
	template: Template | null;
	files?: readonly FileToSend[];
}

export function isOpaque({ request, template }: Prepared): boolean {
	return request.template_unique_id !== undefined && template === null;
}

/** True: the service makes the finished message, and composing one here would show another one. */
export async function isMadeElsewhere(cx: CommandContext): Promise<boolean> {
	return (await (await cx.api()).capabilities()).service !== 'mailctl';
}

export async function prepare(cx: CommandContext, options: SendOptions): Promise<Prepared> {
	assertContent(options);
	const template = options.template === undefined ? null : await findTemplate(cx, options.template);
	const context = { ...(await readContext(options.contextFile)), ...options.context };
	const headers = parseHeaders(options.header);
	const from = options.from ?? (await askFrom(cx));
	const sender = await findSender(cx, from);
	const files = await readAttachments(cx, options.attach);
	const given = {
		reply_to:
			options.replyTo.length === 0 && sender?.reply_to_email ? [sender.reply_to_email] : options.replyTo,
		...(await readBodies(options)),
		template_unique_id: template?.id ?? options.template,
		cc: options.cc,
		bcc: options.bcc,
		headers,
		context,
		disable_inline: options.disableInline || undefined,
		disable_tracking: options.track === 'off' || undefined,
		tag: options.tag,
		campaign_unique_id: await campaignOf(cx, options),
		attachments: namedIn(files),
	};
	const isEmpty = (value: unknown) => typeof value === 'object' && Object.keys(value ?? {}).length === 0;
	const parts = Object.entries(given).filter(([, value]) => value !== undefined && !isEmpty(value));
	const request: Omit<SendRequest, 'to'> = {
		type: options.bulk ? 'BULK' : 'TRANSACTIONAL',
		from: withNameOf(sender, from),
		...Object.fromEntries(parts),
	};
	const prepared = { request, template, ...(files.length > 0 && { files }) };
	await assertClear(contentOf(prepared));
	await assertDefaultsKept(cx, prepared);
	return prepared;
}

async function askFrom(cx: CommandContext): Promise<string> {
	if (cx.canAsk) return (await import('./guide.js')).askSender(cx);
	throw new UsageError(`missing --from: ${sendOptions.from.summary}`);
}

async function readBodies(options: SendOptions) {
	const markdown = await readMarkdown(options.markdownFile);
	const subject = options.subject ?? markdown?.subject ?? undefined;
	if (markdown !== null && subject === undefined)
		throw new UsageError('--subject is missing', { hint: 'or begin the Markdown with a heading: # News' });
	const text_body = options.text ?? (await options.textFile?.text()) ?? markdown?.text_body;
	const html_body = options.html ?? (await options.htmlFile?.text()) ?? markdown?.html_body;
	return { subject, text_body, html_body };
}

/** A foreign service would send `#name|friend#` as it is written. */
async function assertDefaultsKept(cx: CommandContext, prepared: Prepared): Promise<void> {
	const [reference] = usedVariables(contentOf(prepared)).filter(hasDefault);
	if (reference === undefined || !(await isMadeElsewhere(cx))) return;
	throw new UsageError(`#${reference}# cannot be kept: this deployment knows no defaults of variables`, {
		hint: `give the value with --context ${variableName(reference)}=VALUE, and write #${variableName(reference)}#`,
	});
}

/** The campaign that a message to some addresses joins has to be there; one over rows with a UUID may be new. */
async function campaignOf(cx: CommandContext, { campaign, to }: SendOptions): Promise<string | undefined> {
	if (campaign === undefined || isUuid(campaign)) return campaign;
	if (to.length === 0) return undefined;
	const campaigns = await need(await cx.api(), 'campaigns', '--campaign');
	return (await findCampaign(cx, campaigns, campaign)).id;
}

export function specOf({ request }: Prepared): CampaignSpec {
	const { cc, bcc, from, type, ...rest } = request;
	return {
		...rest,
		from: typeof from === 'string' ? from : (from[0] ?? ''),
		type: type ?? 'TRANSACTIONAL',
	};
}

export function withContext(
	{ request, ...prepared }: Prepared,
	{ context }: Pick<Recipient, 'context'>,
): Prepared {
	return { ...prepared, request: { ...request, context: { ...request.context, ...context } } };
}

export function contentOf({ request, template }: Prepared): Content {
	const { attachments = [] } = request;
	return {
		subject: template?.name ?? request.subject ?? '',
		text: (template === null ? request.text_body : template.text_body) || null,
		html: (template === null ? request.html_body : template.html_body) || null,
		disable_inline: request.disable_inline ?? false,
		...(attachments.length > 0 && { attachments }),
	};
}

export async function findTemplate(cx: CommandContext, text: string): Promise<Template | null> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.templates === undefined && isUuid(text)) return null;
	await need(api, 'templates', 'a --template by name');
	const { resolveTemplate } = await import('../../verbs/resolve.js');
	return resolveTemplate(api, text, cx.signal);
}

async function readContext(file: FileSource | undefined): Promise<Record<string, string>> {
	if (file === undefined) return {};
	const { isRecord, parseJson, withoutExactNumbers } = await import('../../../api/json.js');
	const parsed = parseJson(await file.text(), { numbers: 'exact' });
	// A send call makes the same texts of numbers.
	const value = parsed.kind === 'valid' ? withoutExactNumbers(parsed.value, String) : null;
	if (!isRecord(value)) throw new UsageError(`--context-file: ${file.name} is not a JSON object`);
	const bad = Object.entries(value).find(
		([, inner]) => !['string', 'number', 'boolean'].includes(typeof inner),
	);
	if (bad !== undefined) throw new UsageError(`--context-file: the value of "${bad[0]}" is not a text`);
	return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, String(inner)]));
}

function parseHeaders(lines: readonly string[]): Record<string, string> {
	const headers = new Map<string, [name: string, value: string]>();
	for (const line of lines) {
		const colon = line.indexOf(':');
		if (colon < 1) throw new UsageError(`--header "${line}" is not a header`, { hint: "--header 'X-Id: 1'" });
		const name = line.slice(0, colon).trim();
		if (headers.has(name.toLowerCase())) throw new UsageError(`--header ${name} is given twice`);
		headers.set(name.toLowerCase(), [name, line.slice(colon + 1).trim()]);
	}
	return Object.fromEntries(headers.values());
}

type Honoured = Partial<
	Pick<SendOptions, 'campaign' | 'results' | 'idempotencyKey' | 'rate' | 'connections' | 'wait'> &
		Pick<SendOptions, 'retryUnknown' | 'strictVars' | 'template' | 'preview' | 'eml' | 'attach'>
>;

export async function assertHonoured(
	cx: CommandContext,
	options: Honoured,
	{ isOfRows }: { isOfRows: boolean },
): Promise<void> {
	const { campaign, results, idempotencyKey, rate, connections, retryUnknown, wait, strictVars } = options;
	const api = await cx.api();
	await assertShown(cx, options);
	const given = [campaign, results, idempotencyKey, rate, connections].some((one) => one !== undefined);
	const concernsRows = isOfRows && (wait === false || strictVars === true);
	if (!given && !concernsRows && retryUnknown !== true) return;
	const { local } = await cx.connection();
	const { ext, idempotentSend } = await api.capabilities();
	const keepsCampaigns = local !== null || ext.campaigns !== undefined;
	const isKeptHere = isOfRows && !keepsCampaigns;
	const isPaced = local === null && !isKeptHere;
	const pace = (flag: string) =>
		`${flag} is for the machine that owns the database: a deployment sends at its own rate`;
	assertRules([
		[
			retryUnknown === true && keepsCampaigns,
			'--retry-unknown is for foreign deployments: here nothing is left unknown',
		],
		[
			idempotencyKey !== undefined && local === null && !idempotentSend,
			"--idempotency-key is not for this deployment: only mailctl's own engine and server keep such keys",
		],
		[
			wait === false && isKeptHere,
			'--no-wait cannot be kept: this deployment has no campaigns, so this command does the work',
		],
		[strictVars === true && isKeptHere && options.template !== undefined, untoldVariables],
		[rate !== undefined && isPaced, pace('--rate')],
		[connections !== undefined && isPaced, pace('--connections')],
	]);
	if (local !== null || isKeptHere) return;
	if (campaign !== undefined && !isOfRows) await need(api, 'campaigns', '--campaign');
	if (results !== undefined) await need(api, 'messages', '--results');
}

/** A foreign service neither sends files nor shows its messages. */
async function assertShown(cx: CommandContext, { preview, eml, attach = [] }: Honoured): Promise<void> {
	if (attach.length > 0) await need(await cx.api(), 'attachments', '--attach');
	if ((preview !== undefined || eml !== undefined) && (await isMadeElsewhere(cx)))
		throw new UsageError(
			`${eml === undefined ? '--preview' : '--eml'} cannot be kept: this deployment makes its messages by itself and shows none`,
			{ hint: '--dry-run shows what it will be asked' },
		);
}

const untoldVariables =
	'--strict-vars cannot be kept: this deployment does not tell what is in its templates';

export async function assertVariables(
	cx: CommandContext,
	prepared: Prepared,
	{ strictVars, bulk, to }: SendOptions,
): Promise<void> {
	if (!(strictVars ?? bulk)) return;
	if (isOpaque(prepared)) {
		if (strictVars === true) throw new UsageError(untoldVariables);
		return;
	}
	const missing = await missingForPeople(cx, prepared, to);
	if (missing.length === 0) return;
	throw new UsageError(`no value for ${missing.map((name) => `#${name}#`).join(', ')}; nothing was sent`, {
		hint: 'give --context NAME=VALUE, write a default (#name|friend#), or leave them as they are with --no-strict-vars',
	});
}

/**
 * A field counts where the subscriber has a value, and an address in several lists is not a subscriber, as in the engine.
 * The values of another deployment are unknown here, so there a field is enough.
 */
async function missingForPeople(
	cx: CommandContext,
	prepared: Prepared,
	to: readonly string[],
): Promise<string[]> {
	const api = await cx.api();
	const [content, context] = [contentOf(prepared), prepared.request.context ?? {}];
	const missing = await missingVariables(cx, content, context);
	const fields = openVariables(content, context).filter((name) => !missing.includes(name));
	if (fields.length === 0 || (await api.capabilities()).ext.campaigns === undefined) return missing;
	const lacking = new Set<string>();
	for (const one of to) {
		const people = [];
		for await (const person of findInAllLists(api, parseMailbox(one)?.address ?? one, cx.signal))
			people.push(person);
		const meta = people.length === 1 ? people[0]?.meta : undefined;
		for (const name of fields) if ((meta?.[name] ?? null) === null) lacking.add(name);
	}
	return [...missing, ...lacking];
}

export async function missingVariables(
	cx: CommandContext,
	content: Content,
	context: Readonly<Record<string, string>>,
): Promise<string[]> {
	const open = openVariables(content, context);
	if (open.length === 0) return [];
	const api = await cx.api();
	const fields = new Set<string>();
	for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) fields.add(variable);
	return open.filter((name) => !fields.has(name));
}

export function openVariables(
	content: Pick<Content, 'subject' | 'text' | 'html'>,
	context: Readonly<Record<string, string>>,
): string[] {
	return usedVariables(content).filter(
		(name) => !hasDefault(name) && !Object.hasOwn(context, name) && !builtInVariables.includes(name),
	);
}

export function sendHint({ path, code }: Refused, { hasSenders = true } = {}): Hint | undefined {
	if (code === 'not_verified' && !hasSenders) return 'verify the address at the service';
	return path.startsWith('template_unique_id') ? mailctl('templates', 'list') : undefined;
}

export async function readTiming(
	cx: CommandContext,
	{ at, in: wait, window }: Pick<SendOptions, 'at' | 'in' | 'window'>,
): Promise<Timing> {
	if (at === undefined && wait === undefined && window === undefined) return {};
	const flag = at !== undefined ? '--at' : wait !== undefined ? '--in' : '--window';
	const request = {
		...(at !== undefined && { at }),
		...(wait !== undefined && { in_ms: wait }),
		...(window !== undefined && { window }),
	};
	const audiences = await need(await cx.api(), 'audiences', flag);
	const planned = await audiences.plan(request, { signal: cx.signal }).catch((error: unknown) => {
		const fields = error instanceof ApiError && error.code === 'invalid' ? error.fields : null;
		const [first] = listFieldErrors(fields ?? {});
		if (first === undefined) throw error;
		const message = first.message.replace(/\.$/, '');
		throw new UsageError(`--${first.path}: ${message}; nothing was sent`, { cause: error });
	});
	const { note, opens_at, ...timing } = planned;
	if (note === 'skipped')
		await cx.warn(
			`clocks of ${timing.time_zone} skip that time: it is ${sayTime(timing.starts_at, timing)} instead`,
		);
	if (note === 'repeated')
		await cx.warn(`clocks of ${timing.time_zone} show that time twice: the first is meant`);
	if (cx.dryRun && opens_at !== null) await cx.note(sayPlan(planned, cx.times) ?? '');
	return timing;
}

/**
 * `planned for 2026-12-01 09:00 Europe/Oslo (2026-12-01 03:00 UTC-5)`, with the time as tables show it where that is
 * another; null: it may leave now.
 */
export function sayPlan(
	plan: Pick<CampaignPlan | PlannedTiming, 'opens_at' | 'window' | 'time_zone'> | undefined,
	times: Times,
): string | null {
	if (plan === undefined || plan.opens_at === null) return null;
	const hours = plan.window == null ? '' : `, each day ${plan.window}`;
	const at = sayTime(plan.opens_at, plan);
	const here = times.moment(plan.opens_at);
	return `planned for ${at} ${plan.time_zone}${hours}${here.startsWith(at) ? '' : ` (${here})`}`;
}

export function sayTime(at: string | undefined, { time_zone = 'UTC' }: { time_zone?: string }): string {
	const moment = at === undefined ? null : parseDateTime(at);
	return moment === null ? '' : localTime(moment, time_zone).slice(0, 16).replace('T', ' ');
}
