/** Builds a send request, its files and its times from the options. Refuses options that the service cannot honor. */

import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { emailKey, formatMailbox, parseMailbox } from '../../../api/address.js';
import { type Attachment, maxAttachedBytes, maxAttachments, nameFault } from '../../../api/attachments.js';
import type { CampaignPlan, PlannedTiming, Timing } from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { localTime, parseDateTime } from '../../../api/datetime.js';
import { ApiError, listFieldErrors, NoSenders } from '../../../api/errors.js';
import type { Content } from '../../../api/messages.js';
import type { Sender, Template } from '../../../api/records.js';
import { hasDefault, usedVariables, variableName } from '../../../api/variables.js';
import type { FileSource } from '../../frame/command.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { given } from '../../frame/values.js';
import type { Times } from '../../render/times.js';
import { sizeText } from '../../render/units.js';
import { noAddress } from '../../verbs/address-faults.js';
import { readMarkdown } from '../../verbs/content.js';
import { walk } from '../../verbs/listing.js';
import type { Refused } from '../../verbs/refusals.js';
import { isUuid, orNull, resolveTemplate } from '../../verbs/resolve.js';
import { findCampaign } from '../campaigns/record.js';
import { Draft, isMadeElsewhere, unknownVariables } from './draft.js';
import { assertContent, type SendOptions, sendOptions } from './options.js';

export async function prepare(cx: CommandContext, options: SendOptions): Promise<Draft> {
	assertContent(options);
	const template = options.template === undefined ? null : await findTemplate(cx, options.template);
	const context = { ...(await readContext(options.contextFile)), ...options.context };
	const headers = parseHeaders(options.header);
	if (options.from === undefined && !cx.canAsk)
		throw new UsageError(`missing --from: ${sendOptions.from.summary}`);
	const from = options.from ?? (await (await import('./guide.js')).askSender(cx));
	const sender = await findSender(cx, from);
	const files = await readAttachments(cx, options.attach);
	const all = {
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
	const parts = Object.entries(all).filter(([, value]) => value !== undefined && !isEmpty(value));
	const type = options.bulk ? ('BULK' as const) : ('TRANSACTIONAL' as const);
	const request = { type, from: withNameOf(sender, from), ...Object.fromEntries(parts) };
	const draft = new Draft(cx, { request, template, files });
	await assertClear(draft.content);
	const withDefault = usedVariables(draft.content).find(hasDefault);
	if (withDefault !== undefined && (await isMadeElsewhere(cx))) throw noDefaults(withDefault);
	return draft;
}

async function findSender(cx: CommandContext, from: string): Promise<Sender | null> {
	const mailbox = parseMailbox(from);
	const api = await cx.api();
	if (mailbox === null || (await isMadeElsewhere(cx))) return null;
	try {
		for await (const sender of walk(api.senders, {}, { signal: cx.signal }))
			if (emailKey(sender.from_email) === mailbox.key) return sender;
	} catch (error) {
		// Send without the sender's name if the service lists no senders, or does not show them to this token.
		if (!(error instanceof NoSenders || error instanceof ApiError)) throw error;
	}
	return null;
}

function withNameOf(sender: Sender | null, from: string): string {
	const mailbox = parseMailbox(from);
	const name = sender?.full_name ?? '';
	if (mailbox === null || mailbox.name !== '' || name === '') return from;
	const named = formatMailbox({ ...mailbox, name });
	return noAddress(named, 'mailbox') === null ? named : from;
}

async function readBodies(options: SendOptions) {
	const markdown = await readMarkdown(options.markdownFile);
	const subject = options.subject ?? markdown?.subject ?? undefined;
	if (markdown !== null && subject === undefined)
		throw new UsageError('missing --subject', { hint: 'or begin the Markdown with a heading: # News' });
	const text_body = options.text ?? (await options.textFile?.text()) ?? markdown?.text_body;
	const html_body = options.html ?? (await options.htmlFile?.text()) ?? markdown?.html_body;
	return { subject, text_body, html_body };
}

/** Without this refusal, another service would send `#name|friend#` literally. */
function noDefaults(reference: string): UsageError {
	const name = variableName(reference);
	return new UsageError(`#${reference}#: this service does not support defaults of variables`, {
		hint: `write #${name}#, and give --context ${name}=VALUE`,
	});
}

/** Returns the id of `--campaign` for a send to `--to`. A campaign of this name must exist, but a UUID may be new. */
async function campaignOf(cx: CommandContext, { campaign, to }: SendOptions): Promise<string | undefined> {
	if (campaign === undefined || isUuid(campaign)) return campaign;
	if (to.length === 0) return undefined;
	const campaigns = await need(await cx.api(), 'campaigns', '--campaign');
	return (await findCampaign(cx, campaigns, campaign)).id;
}

export async function findTemplate(cx: CommandContext, text: string): Promise<Template | null> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.templates === undefined && isUuid(text)) return null;
	await need(api, 'templates', 'a --template by name');
	return resolveTemplate(api, text, cx.signal);
}

async function readContext(file: FileSource | undefined): Promise<Record<string, string>> {
	if (file === undefined) return {};
	const { isRecord, parseJson, withoutExactNumbers } = await import('../../../api/json.js');
	const parsed = parseJson(await file.text(), { numbers: 'exact' });
	// Turn numbers into the same strings as a send call does.
	const value = parsed.kind === 'valid' ? withoutExactNumbers(parsed.value, String) : null;
	if (!isRecord(value)) throw new UsageError(`--context-file: ${file.name} is not a JSON object`);
	const isText = (inner: unknown) => ['string', 'number', 'boolean'].includes(typeof inner);
	const bad = Object.entries(value).find(([, inner]) => !isText(inner));
	if (bad !== undefined)
		throw new UsageError(`--context-file: the value of "${bad[0]}" is not a string, number or boolean`);
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

export async function readAttachments(cx: CommandContext, paths: readonly string[]): Promise<FileToSend[]> {
	if (paths.length > maxAttachments)
		throw new UsageError(`--attach: ${paths.length} files are more than ${maxAttachments}`);
	const files: FileToSend[] = [];
	let left = maxAttachedBytes;
	for (const path of paths) {
		if (path === '-') throw new UsageError('--attach: standard input has no name; give a file');
		// Refuse a file of many gigabytes before it is read. A device or a pipe has no known size.
		const size = (await stat(path).catch(() => null))?.size ?? 0;
		const bytes = size > left ? null : await cx.sources.file(path, '--attach').bytes(maxAttachedBytes);
		left -= bytes?.length ?? size;
		if (bytes === null || left < 0) {
			const hint = 'put large files on a web server, and link to them';
			const most = sizeText(maxAttachedBytes);
			throw new UsageError(`--attach: ${paths.join(', ')}: larger than ${most} together`, { hint });
		}
		const name = basename(path);
		const fault = nameFault(name);
		if (fault !== null) throw new UsageError(`--attach: ${JSON.stringify(path)}: ${fault}`);
		const sha256 = createHash('sha256').update(bytes).digest('hex');
		files.push({ name, type: await mediaTypeOf(name), sha256, bytes });
	}
	return files;
}

/** Attached mails are application/octet-stream: a message/rfc822 part may not be base64 (RFC 2046 s.5.2.1). */
export async function mediaTypeOf(name: string): Promise<string> {
	const { detectMimeType } = await import('nodemailer/lib/mime-funcs');
	const type = detectMimeType(name);
	return /^(message|multipart)\//.test(type) ? 'application/octet-stream' : type;
}

async function assertClear({ html, attachments = [] }: Content): Promise<void> {
	if (attachments.length < 2) return;
	const { cidFaults } = await import('../../../content/attachments.js');
	const [first] = cidFaults(html, attachments).unclear;
	if (first !== undefined)
		throw new UsageError(`--attach: the HTML shows cid:${first}; only one file may have this name`);
}

export function namedIn(files: readonly FileToSend[]): Attachment[] {
	return files.map(({ name, type, sha256 }) => ({ name, type, sha256 }));
}

export async function uploadAttachments(cx: CommandContext, files: readonly FileToSend[]): Promise<void> {
	if (files.length === 0) return;
	const attachments = await need(await cx.api(), 'attachments', '--attach');
	const call = { signal: cx.signal };
	const each = new Map(files.map((file) => [file.sha256, file]));
	for (const { sha256, bytes } of each.values())
		if ((await orNull(attachments.find(sha256, call))) === null) await attachments.put(sha256, bytes, call);
}

/** `isOfRows`: the recipients are `--list`, `--csv` or `--batch`. */
export async function assertHonoured(cx: CommandContext, options: Partial<SendOptions>, isOfRows: boolean) {
	const { campaign, results, idempotencyKey, wait } = options;
	const { api, local } = await cx.connection();
	await assertShown(cx, options);
	const { ext, idempotentSend } = await api.capabilities();
	const keepsCampaigns = local !== null || ext.campaigns !== undefined;
	const isKeptHere = isOfRows && !keepsCampaigns;
	if (options.retryUnknown === true && keepsCampaigns)
		throw new UsageError('--retry-unknown has no effect here: it is for services without campaigns');
	if (idempotencyKey !== undefined && local === null && !idempotentSend)
		throw new UsageError('--idempotency-key needs a mailctl server: this service keeps no such keys');
	if (wait === false && isKeptHere)
		throw new UsageError(
			'--no-wait cannot be used: this service has no campaigns, so this command sends the mail',
		);
	if (options.strictVars === true && isKeptHere && options.template !== undefined)
		throw new UsageError(unknownVariables);
	if (local !== null || isKeptHere) return;
	for (const key of ['rate', 'connections'] as const)
		if (options[key] !== undefined)
			throw new UsageError(`--${key} needs a local database: a server sends at its own rate`);
	if (campaign !== undefined && !isOfRows) await need(api, 'campaigns', '--campaign');
	if (results !== undefined) await need(api, 'messages', '--results');
}

async function assertShown(cx: CommandContext, { preview, eml, attach = [] }: Partial<SendOptions>) {
	if (attach.length > 0) await need(await cx.api(), 'attachments', '--attach');
	if ((preview ?? eml) === undefined || !(await isMadeElsewhere(cx))) return;
	const flag = eml === undefined ? '--preview' : '--eml';
	throw new UsageError(`this service renders its messages itself, so ${flag} cannot show them`, {
		hint: '--dry-run shows the request',
	});
}

export function sendHint({ path }: Refused): Hint | undefined {
	return path.startsWith('template_unique_id') ? mailctl('templates', 'list') : undefined;
}

export async function readTiming(
	cx: CommandContext,
	{ at, in: in_ms, window }: Pick<SendOptions, 'at' | 'in' | 'window'>,
): Promise<Timing> {
	const request = given({ at, in_ms, window });
	const [first] = Object.keys(request);
	if (first === undefined) return {};
	const audiences = await need(await cx.api(), 'audiences', first === 'in_ms' ? '--in' : `--${first}`);
	const planned = await audiences.plan(request, { signal: cx.signal }).catch((error: unknown) => {
		const fields = error instanceof ApiError && error.code === 'invalid' ? error.fields : null;
		const [fault] = listFieldErrors(fields ?? {});
		if (fault === undefined) throw error;
		const message = fault.message.replace(/\.$/, '');
		throw new UsageError(`--${fault.path}: ${message}; nothing was sent`, { cause: error });
	});
	const { note, opens_at, ...timing } = planned;
	if (note === 'skipped')
		await cx.warn(`clocks in ${timing.time_zone} skip that time; using ${sayTime(timing.starts_at, timing)}`);
	if (note === 'repeated')
		await cx.warn(`clocks in ${timing.time_zone} show that time twice; using the first`);
	if (cx.dryRun && opens_at !== null) await cx.note(sayPlan(planned, cx.times) ?? '');
	return timing;
}

/**
 * Returns `planned for 2026-12-01 09:00 Europe/Oslo (2026-12-01 03:00 UTC-5)`. The second time is the one that tables
 * show, if it differs. Returns null if the campaign may start now.
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
