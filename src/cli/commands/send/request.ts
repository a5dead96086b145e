/**
 * From options to a send request: files read, headers and variables parsed; contradictions, options that the deployment
 * cannot honour and variables without a value refused.
 */

import { parseMailbox } from '../../../api/address.js';
import type { CampaignSpec, Recipient } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import type { Content } from '../../../api/content.js';
import { builtInVariables } from '../../../api/fields.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { Template } from '../../../api/records.js';
import { hasDefault, usedVariables, variableName } from '../../../api/variables.js';
import type { FileSource } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { readMarkdown } from '../../verbs/content.js';
import { walk } from '../../verbs/listing.js';
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
	const markdown = await readMarkdown(options.markdownFile);
	const subject = options.subject ?? markdown?.subject ?? undefined;
	if (markdown !== null && subject === undefined)
		throw new UsageError('--subject is missing', { hint: 'or begin the Markdown with a heading: # News' });
	const text_body = options.text ?? (await options.textFile?.text()) ?? markdown?.text_body;
	const html_body = options.html ?? (await options.htmlFile?.text()) ?? markdown?.html_body;
	const context = { ...(await readContext(options.contextFile)), ...options.context };
	const headers = parseHeaders(options.header);
	const files = await readAttachments(cx, options.attach);
	const request: Omit<SendRequest, 'to'> = {
		type: options.bulk ? 'BULK' : 'TRANSACTIONAL',
		...(await senderOf(cx, options)),
		...(subject !== undefined && { subject }),
		...(text_body !== undefined && { text_body }),
		...(html_body !== undefined && { html_body }),
		...(options.template !== undefined && { template_unique_id: template?.id ?? options.template }),
		...(options.cc.length > 0 && { cc: options.cc }),
		...(options.bcc.length > 0 && { bcc: options.bcc }),
		...(Object.keys(headers).length > 0 && { headers }),
		...(Object.keys(context).length > 0 && { context }),
		...switchesOf(options),
		...(options.tag !== undefined && { tag: options.tag }),
		...(await campaignOf(cx, options)),
	};
	const prepared = withFiles({ request, template }, files);
	await assertClear(contentOf(prepared));
	await assertDefaultsKept(cx, prepared);
	return prepared;
}

function switchesOf({ disableInline, track }: SendOptions) {
	return {
		...(disableInline && { disable_inline: true }),
		...(track === 'off' && { disable_tracking: true }),
	};
}

function withFiles({ request, template }: Prepared, files: readonly FileToSend[]): Prepared {
	if (files.length === 0) return { request, template };
	return { request: { ...request, attachments: namedIn(files) }, template, files };
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

/** With the variables of one recipient over those that all share. */
export function withContext(
	{ request, ...prepared }: Prepared,
	{ context }: Pick<Recipient, 'context'>,
): Prepared {
	return { ...prepared, request: { ...request, context: { ...request.context, ...context } } };
}

/** The content of the request, from any option. */
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

/** Missing only where each request of a file has its own. */
/** The name and the address for replies are those of the sender, unless others are given. */
async function senderOf(
	cx: CommandContext,
	{ from: given, replyTo }: SendOptions,
): Promise<Pick<SendRequest, 'from' | 'reply_to'>> {
	const from = given ?? (await askFrom(cx));
	const sender = await findSender(cx, from);
	const known = sender === null || sender.reply_to_email === '' ? [] : [sender.reply_to_email];
	const reply_to = replyTo.length > 0 ? replyTo : known;
	return { from: withNameOf(sender, from), ...(reply_to.length > 0 && { reply_to }) };
}

async function askFrom(cx: CommandContext): Promise<string> {
	if (cx.canAsk) return (await import('./questions.js')).askSender(cx);
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

/** A name twice would silently lose one of the values. */
function assertOnce(headers: readonly (readonly [name: string, value: string])[]): void {
	const seen = new Set<string>();
	for (const [name] of headers) {
		if (seen.has(name.toLowerCase())) throw new UsageError(`--header ${name} is given twice`);
		seen.add(name.toLowerCase());
	}
}

function parseHeaders(lines: readonly string[]): Record<string, string> {
	const headers = lines.map((line): [string, string] => {
		const colon = line.indexOf(':');
		if (colon < 1) throw new UsageError(`--header "${line}" is no header`, { hint: "--header 'X-Id: 1'" });
		return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
	});
	assertOnce(headers);
	return Object.fromEntries(headers);
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
	>
> & {
	attach?: readonly string[];
	/** Recipients come from a list or a file. */
	isJob: boolean;
};

/** `MissingExtension` or `UsageError` (exit 2). Goes to the deployment only when one of these options is given. */
export async function assertHonoured(cx: CommandContext, options: Honoured): Promise<void> {
	const { campaign, results, idempotencyKey, rate, connections, retryUnknown, isJob } = options;
	const given = [campaign, results, idempotencyKey, rate, connections].some((one) => one !== undefined);
	await assertShown(cx, options);
	const concernsJobs = isJob && (options.wait === false || options.strictVars === true);
	if (!given && !concernsJobs && retryUnknown !== true) return;
	const { api, local } = await cx.connection();
	const { ext, idempotentSend } = await api.capabilities();
	const keepsCampaigns = local !== null || ext.campaigns !== undefined;
	if (retryUnknown === true && keepsCampaigns)
		throw new UsageError('--retry-unknown is for deployments of others: here nothing is left unknown');
	if (local !== null) return;
	if (isJob && !keepsCampaigns) assertKeptHere(options);
	else if (rate !== undefined || connections !== undefined) throw sentElsewhere(options);
	if (campaign !== undefined && !isJob) await need(api, 'campaigns', '--campaign');
	if (results !== undefined && !(isJob && !keepsCampaigns)) await need(api, 'messages', '--results');
	if (idempotencyKey !== undefined && !idempotentSend)
		throw new UsageError(
			"--idempotency-key is not for this deployment: only mailctl's own engine and server keep such keys",
		);
}

/** Where this command makes the calls itself, and the service keeps no campaign. */
function assertKeptHere({ wait, strictVars, template }: Honoured): void {
	if (wait === false)
		throw new UsageError(
			'--no-wait cannot be kept: this deployment has no campaigns, so this command does the work',
		);
	if (strictVars === true && template !== undefined)
		throw new UsageError(
			'--strict-vars cannot be kept: this deployment does not tell what is in its templates',
		);
}

/** Neither a file nor a message that is composed here is in what a service of others sends. */
async function assertShown(cx: CommandContext, { attach = [], preview, eml }: Honoured): Promise<void> {
	if (attach.length > 0) await need(await cx.api(), 'attachments', '--attach');
	if ((preview === undefined && eml === undefined) || !(await isMadeElsewhere(cx))) return;
	const flag = eml === undefined ? '--preview' : '--eml';
	throw new UsageError(
		`${flag} cannot be kept: this deployment makes its messages by itself and shows none`,
		{
			hint: '--dry-run shows what it will be asked',
		},
	);
}

function sentElsewhere({ rate }: Honoured): UsageError {
	const flag = rate === undefined ? '--connections' : '--rate';
	return new UsageError(`${flag} is for the machine that owns the database: a deployment sends as it does`, {
		hint: ['on a mailctl server: ', mailctl('serve', flag), ' …'],
	});
}

/** Neither in the context, nor built in, nor a field of subscribers. */
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
 * Of one message to each address: a field counts where the subscriber has a value, and an address in several lists is
 * no subscriber, as in the engine. The values of another deployment are unknown here, so there a field is enough.
 */
export async function missingForPeople(
	cx: CommandContext,
	content: Content,
	{ context, to }: { context: Readonly<Record<string, string>>; to: readonly string[] },
): Promise<string[]> {
	const api = await cx.api();
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

/** The refusal of one message whose variables have no value. */
export function lacksValues(missing: readonly string[]): UsageError {
	return new UsageError(`no value for ${missing.map((name) => `#${name}#`).join(', ')}; nothing was sent`, {
		hint: 'give --context NAME=VALUE, write a default (#name|friend#), or leave them as they are with --no-strict-vars',
	});
}

/** Neither in the context nor built in. */
export function openVariables(
	content: Pick<Content, 'subject' | 'text' | 'html'>,
	context: Readonly<Record<string, string>>,
): string[] {
	return usedVariables(content).filter(
		(name) => !hasDefault(name) && !Object.hasOwn(context, name) && !builtInVariables.includes(name),
	);
}
