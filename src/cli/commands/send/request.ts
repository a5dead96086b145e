/**
 * From options to a send request: files read, headers and variables parsed; contradictions, options that the deployment
 * cannot honour and variables without a value refused.
 */

import { parseMailbox } from '../../../api/address.js';
import type { CampaignSpec, Recipient } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import type { SendRequest } from '../../../api/inputs.js';
import { builtInVariables } from '../../../api/inputs.js';
import type { Content } from '../../../api/messages.js';
import type { Template } from '../../../api/records.js';
import { hasDefault, usedVariables, variableName } from '../../../api/variables.js';
import type { FileSource } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { readMarkdown } from '../../verbs/content.js';
import { walk } from '../../verbs/listing.js';
import type { Refused } from '../../verbs/refusals.js';
import { isUuid } from '../../verbs/resolve.js';
import { findSender, withNameOf } from '../../verbs/sender-names.js';
import { findCampaign } from '../campaigns/find.js';
import { assertClear, namedIn, readAttachments } from './attach.js';
import { type SendOptions, sendOptions } from './options.js';

/** A request without its recipients, and the template it names, where that can be read. */
export interface Prepared {
	request: Omit<SendRequest, 'to'>;
	template: Template | null;
	/** With their bytes, those that its `attachments` name; absent: none. */
	files?: readonly FileToSend[];
	/** Variables without a value that a warning has named. */
	named?: readonly string[];
}

/** True when only the service knows what will be said: its templates cannot be read. */
export function isOpaque({ request, template }: Prepared): boolean {
	return request.template_unique_id !== undefined && template === null;
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
		// The address for replies is that of the sender, unless another is given.
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
		...(await campaignOf(cx, options)),
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

async function readBodies(options: SendOptions) {
	const markdown = await readMarkdown(options.markdownFile);
	const subject = options.subject ?? markdown?.subject ?? undefined;
	if (markdown !== null && subject === undefined)
		throw new UsageError('--subject is missing', { hint: 'or begin the Markdown with a heading: # News' });
	const text_body = options.text ?? (await options.textFile?.text()) ?? markdown?.text_body;
	const html_body = options.html ?? (await options.htmlFile?.text()) ?? markdown?.html_body;
	return { subject, text_body, html_body };
}

/** A service of others would send `#name|friend#` as it is written. */
async function assertDefaultsKept(cx: CommandContext, prepared: Prepared): Promise<void> {
	const [reference] = usedVariables(contentOf(prepared)).filter(hasDefault);
	if (reference === undefined || !(await isMadeElsewhere(cx))) return;
	throw new UsageError(`#${reference}# cannot be kept: this deployment knows no defaults of variables`, {
		hint: `give the value with --context ${variableName(reference)}=VALUE, and write #${variableName(reference)}#`,
	});
}

/** Of a message to some addresses its campaign has to be there; a campaign over rows with a UUID may be new. */
async function campaignOf(
	cx: CommandContext,
	{ campaign, to }: SendOptions,
): Promise<Pick<SendRequest, 'campaign_unique_id'>> {
	if (campaign === undefined) return {};
	if (isUuid(campaign)) return { campaign_unique_id: campaign };
	if (to.length === 0) return {};
	const campaigns = await need(await cx.api(), 'campaigns', '--campaign');
	return { campaign_unique_id: (await findCampaign(cx, campaigns, campaign)).id };
}

/** As the spec of a campaign; copies are refused before. */
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

async function askFrom(cx: CommandContext): Promise<string> {
	if (cx.canAsk) return (await import('./guide.js')).askSender(cx);
	throw new UsageError(`missing --from: ${sendOptions.from.summary}`);
}

/** Throws `UsageError` for parts of a message that exclude each other. */
export function assertOneContent(options: SendOptions): void {
	const both = (one: unknown, other: unknown, names: string) => {
		if (one !== undefined && other !== undefined)
			throw new UsageError(`${names} both give the same part; give one`);
	};
	both(options.text, options.textFile, '--text and --text-file');
	both(options.html, options.htmlFile, '--html and --html-file');
	both(options.html ?? options.htmlFile, options.markdownFile, '--markdown-file and an HTML body');
	if (options.template === undefined) return;
	if (options.subject !== undefined)
		throw new UsageError('--subject does not go with --template: its name is the subject');
	if (hasBody(options)) throw new UsageError('a body does not go with --template; give one of them');
}

/** True: something is to be said, without a template. */
export function hasBody({ text, textFile, html, htmlFile, markdownFile }: SendOptions): boolean {
	return [text, textFile, html, htmlFile, markdownFile].some((body) => body !== undefined);
}

function assertContent(options: SendOptions): void {
	assertOneContent(options);
	if (options.template !== undefined) return;
	if (!hasBody(options))
		throw new UsageError(
			'nothing to say: give --text, --text-file, --html, --html-file, --markdown-file or --template',
		);
	if (options.subject === undefined && options.markdownFile === undefined)
		throw new UsageError('--subject is missing');
}

/** `null`: a UUID on a deployment whose templates cannot be read; it knows them by UUID alone. */
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
	// Numbers as the texts that a send call makes of them.
	const value = parsed.kind === 'valid' ? withoutExactNumbers(parsed.value, String) : null;
	if (!isRecord(value)) throw new UsageError(`--context-file: ${file.name} is no JSON object`);
	const bad = Object.entries(value).find(
		([, inner]) => !['string', 'number', 'boolean'].includes(typeof inner),
	);
	if (bad !== undefined) throw new UsageError(`--context-file: the value of "${bad[0]}" is no text`);
	return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, String(inner)]));
}

function parseHeaders(lines: readonly string[]): Record<string, string> {
	const headers = new Map<string, [name: string, value: string]>();
	for (const line of lines) {
		const colon = line.indexOf(':');
		if (colon < 1) throw new UsageError(`--header "${line}" is no header`, { hint: "--header 'X-Id: 1'" });
		const name = line.slice(0, colon).trim();
		if (headers.has(name.toLowerCase())) throw new UsageError(`--header ${name} is given twice`);
		headers.set(name.toLowerCase(), [name, line.slice(colon + 1).trim()]);
	}
	return Object.fromEntries(headers.values());
}

/** True: the finished message is the service's own, and composing one here would show another one. */
export async function isMadeElsewhere(cx: CommandContext): Promise<boolean> {
	return (await (await cx.api()).capabilities()).service !== 'mailctl';
}

type Honoured = Partial<
	Pick<
		SendOptions,
		| 'campaign'
		| 'results'
		| 'idempotencyKey'
		| 'rate'
		| 'connections'
		| 'wait'
		| 'retryUnknown'
		| 'strictVars'
		| 'template'
		| 'preview'
		| 'eml'
		| 'attach'
	>
>;

/** `MissingExtension` or `UsageError` (exit 2). Goes to the deployment only when one of these options is given. */
export async function assertHonoured(
	cx: CommandContext,
	options: Honoured,
	{ isOfRows }: { isOfRows: boolean },
): Promise<void> {
	const { campaign, results, idempotencyKey, rate, connections, retryUnknown, wait, strictVars } = options;
	await assertShown(cx, options);
	const given = [campaign, results, idempotencyKey, rate, connections].some((one) => one !== undefined);
	const concernsRows = isOfRows && (wait === false || strictVars === true);
	if (!given && !concernsRows && retryUnknown !== true) return;
	const { api, local } = await cx.connection();
	const { ext, idempotentSend } = await api.capabilities();
	const keepsCampaigns = local !== null || ext.campaigns !== undefined;
	if (retryUnknown === true && keepsCampaigns)
		throw new UsageError('--retry-unknown is for deployments of others: here nothing is left unknown');
	if (local !== null) return;
	if (idempotencyKey !== undefined && !idempotentSend)
		throw new UsageError(
			"--idempotency-key is not for this deployment: only mailctl's own engine and server keep such keys",
		);
	if (isOfRows && !keepsCampaigns) return assertKeptHere(options);
	assertNoRate(options);
	if (campaign !== undefined && !isOfRows) await need(api, 'campaigns', '--campaign');
	if (results !== undefined) await need(api, 'messages', '--results');
}

/** A server sends at its own rate. */
function assertNoRate({ rate, connections }: Honoured): void {
	if (rate === undefined && connections === undefined) return;
	const flag = rate === undefined ? '--connections' : '--rate';
	throw new UsageError(`${flag} is for the machine that owns the database: a deployment sends as it does`, {
		hint: ['on a mailctl server: ', mailctl('serve', flag), ' …'],
	});
}

/** A service of others sends neither a file nor a message that is composed here. */
async function assertShown(cx: CommandContext, options: Honoured): Promise<void> {
	if ((options.attach ?? []).length > 0) await need(await cx.api(), 'attachments', '--attach');
	if ((options.preview !== undefined || options.eml !== undefined) && (await isMadeElsewhere(cx)))
		throw new UsageError(
			`${options.eml === undefined ? '--preview' : '--eml'} cannot be kept: this deployment makes its messages by itself and shows none`,
			{ hint: '--dry-run shows what it will be asked' },
		);
}

/** This command makes the calls itself, and keeps the campaign. */
function assertKeptHere({ wait, strictVars, template }: Honoured): void {
	if (wait === false)
		throw new UsageError(
			'--no-wait cannot be kept: this deployment has no campaigns, so this command does the work',
		);
	if (strictVars === true && template !== undefined) throw untoldVariables();
}

function untoldVariables(): UsageError {
	return new UsageError(
		'--strict-vars cannot be kept: this deployment does not tell what is in its templates',
	);
}

/** Refuses a message to addresses whose variables have no value. */
export async function assertVariables(
	cx: CommandContext,
	prepared: Prepared,
	{ strictVars, bulk, to }: SendOptions,
): Promise<void> {
	if (!(strictVars ?? bulk)) return;
	if (isOpaque(prepared)) {
		// By default variables are checked only where that is possible.
		if (strictVars === true) throw untoldVariables();
		return;
	}
	const missing = await missingForPeople(cx, prepared, to);
	if (missing.length === 0) return;
	throw new UsageError(`no value for ${missing.map((name) => `#${name}#`).join(', ')}; nothing was sent`, {
		hint: 'give --context NAME=VALUE, write a default (#name|friend#), or leave them as they are with --no-strict-vars',
	});
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
	if ((await api.capabilities()).ext.campaigns === undefined || fields.length === 0) return missing;
	const { findInAllLists } = await import('../subscribers/walk.js');
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

export function openVariables(
	content: Pick<Content, 'subject' | 'text' | 'html'>,
	context: Readonly<Record<string, string>>,
): string[] {
	return usedVariables(content).filter(
		(name) => !hasDefault(name) && !Object.hasOwn(context, name) && !builtInVariables.includes(name),
	);
}

/** The way out of a refusal. `hasSenders`: a command verifies addresses there; elsewhere that is done at the service. */
export function sendHint({ path, code }: Refused, { hasSenders = true } = {}): Hint | undefined {
	if (code === 'not_verified' && !hasSenders) return 'verify the address at the service';
	return path.startsWith('template_unique_id') ? mailctl('templates', 'list') : undefined;
}
