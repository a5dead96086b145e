/** From options to a send request: files read, headers and variables parsed, contradictions refused. */
import { type MailingSpec, need, type Recipient } from '../../../api/capabilities.js';
import type { SendRequest } from '../../../api/inputs.js';
import type { Template } from '../../../api/records.js';
import type { FileSource } from '../../command.js';
import type { CommandContext } from '../../context.js';
import { UsageError } from '../../errors.js';
import { isUuid } from '../../ids.js';
import { type SendOptions, sendOptions } from './options.js';

/** A request without its recipients, and the template it names, where that can be read. */
export interface Prepared {
	request: Omit<SendRequest, 'to'>;
	template: Template | null;
}

/** True when only the service knows what will be said: its templates cannot be read. */
export function isOpaque({ request, template }: Prepared): boolean {
	return request.template_unique_id !== undefined && template === null;
}

export async function prepare(cx: CommandContext, options: SendOptions): Promise<Prepared> {
	assertBodies(options);
	const template = options.template === undefined ? null : await findTemplate(cx, options.template);
	const text_body = options.text ?? (await options.textFile?.text());
	const html_body = options.html ?? (await options.htmlFile?.text());
	const context = { ...(await readContext(options.contextFile)), ...options.context };
	const headers = parseHeaders(options.header);
	const request: Omit<SendRequest, 'to'> = {
		type: options.bulk ? 'BULK' : 'TRANSACTIONAL',
		from: options.from ?? (await askFrom(cx)),
		...(options.subject !== undefined && { subject: options.subject }),
		...(text_body !== undefined && { text_body }),
		...(html_body !== undefined && { html_body }),
		...(options.template !== undefined && { template_unique_id: template?.id ?? options.template }),
		...(options.replyTo.length > 0 && { reply_to: options.replyTo }),
		...(options.cc.length > 0 && { cc: options.cc }),
		...(options.bcc.length > 0 && { bcc: options.bcc }),
		...(Object.keys(headers).length > 0 && { headers }),
		...(Object.keys(context).length > 0 && { context }),
		...(options.disableInline && { disable_inline: true }),
		...(options.tag !== undefined && { tag: options.tag }),
		...(options.campaign !== undefined && { campaign_unique_id: options.campaign }),
	};
	return { request, template };
}

/** As the spec of a mailing; copies are refused before. */
export function specOf({ request }: Prepared): MailingSpec {
	const { cc, bcc, from, type, ...rest } = request;
	return {
		...rest,
		from: typeof from === 'string' ? from : (from[0] ?? ''),
		type: type ?? 'TRANSACTIONAL',
	};
}

/** With the variables of one recipient over those that all share. */
export function withContext(
	{ request, template }: Prepared,
	{ context }: Pick<Recipient, 'context'>,
): Prepared {
	return { request: { ...request, context: { ...request.context, ...context } }, template };
}

/** What will be said, wherever it was given. */
export function contentOf({ request, template }: Prepared) {
	return {
		subject: template?.name ?? request.subject ?? '',
		text: (template === null ? request.text_body : template.text_body) || null,
		html: (template === null ? request.html_body : template.html_body) || null,
		disable_inline: request.disable_inline ?? false,
	};
}

/** Missing only where each request of a file has its own. */
function askFrom(cx: CommandContext): Promise<string> {
	if (cx.canAsk) return cx.ask('From:');
	throw new UsageError(`missing --from: ${sendOptions.from.summary}`);
}

function assertBodies(options: SendOptions): void {
	const both = (one: unknown, other: unknown, names: string) => {
		if (one !== undefined && other !== undefined)
			throw new UsageError(`${names} both give the same part; give one`);
	};
	both(options.text, options.textFile, '--text and --text-file');
	both(options.html, options.htmlFile, '--html and --html-file');
	const hasBody = [options.text, options.textFile, options.html, options.htmlFile].some(
		(body) => body !== undefined,
	);
	if (options.template === undefined) {
		if (!hasBody)
			throw new UsageError('nothing to say: give --text, --text-file, --html, --html-file or --template');
		if (options.subject === undefined) throw new UsageError('--subject is missing');
		return;
	}
	if (options.subject !== undefined)
		throw new UsageError('--subject does not go with --template: its name is the subject');
	if (hasBody) throw new UsageError('a body does not go with --template; give one of them');
}

/** `null`: a UUID on a deployment whose templates cannot be read; it knows them by UUID alone. */
export async function findTemplate(cx: CommandContext, text: string): Promise<Template | null> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	if (ext.templates === undefined && isUuid(text)) return null;
	await need(api, 'templates');
	const { resolveTemplate } = await import('../../resolve.js');
	return resolveTemplate(api, text, cx.signal);
}

async function readContext(file: FileSource | undefined): Promise<Record<string, string>> {
	if (file === undefined) return {};
	const { parseJson } = await import('../../../api/json.js');
	const parsed = parseJson(await file.text());
	const value = parsed.kind === 'valid' ? parsed.value : null;
	if (typeof value !== 'object' || value === null || Array.isArray(value)) {
		throw new UsageError(`--context-file: ${file.name} is no JSON object`);
	}
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
