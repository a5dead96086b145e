/** The content of a message before it is sent: its variables, their values, and warnings. */

import { parseMailbox } from '../../../api/address.js';
import { ApiError } from '../../../api/errors.js';
import { builtInVariables, type SendRequest } from '../../../api/inputs.js';
import type { Content } from '../../../api/messages.js';
import type { Template } from '../../../api/records.js';
import { suggest } from '../../../api/suggest.js';
import { hasDefault, usedVariables, variableNames } from '../../../api/variables.js';
import type { ContentFinding } from '../../../content/lint.js';
import { mailctl } from '../../frame/command-line.js';
import type { FileToSend } from '../../frame/connection.js';
import type { CommandContext } from '../../frame/context.js';
import { UsageError } from '../../frame/errors.js';
import { collect, walk } from '../../verbs/listing.js';
import { findInAllLists } from '../subscribers/lookup.js';
import type { SendOptions } from './options.js';

export interface Prepared {
	request: Omit<SendRequest, 'to'>;
	template: Template | null;
	files?: readonly FileToSend[];
}

/** True if the service does not show the content of the template. */
export function isOpaque({ request, template }: Prepared): boolean {
	return request.template_unique_id !== undefined && template === null;
}

/** True if the service composes messages itself: a message composed here would differ. */
export async function isMadeElsewhere(cx: CommandContext): Promise<boolean> {
	return (await (await cx.api()).capabilities()).service !== 'mailctl';
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

/** Returns the variables of the content, without their defaults. */
export function namesIn(prepared: Prepared): readonly string[] {
	return variableNames(usedVariables(contentOf(prepared)));
}

export function unknownVariables(): UsageError {
	return new UsageError('--strict-vars cannot be checked: this service does not show its templates');
}

/**
 * Refuses variables without a value for one of the addresses. A field counts only if the subscriber has a value; an
 * address in several lists has none. Other services do not show values, so with them the field is enough.
 */
export async function assertVariables(
	cx: CommandContext,
	prepared: Prepared,
	{ strictVars, bulk, to }: SendOptions,
): Promise<void> {
	if (!(strictVars ?? bulk)) return;
	if (isOpaque(prepared)) {
		if (strictVars === true) throw unknownVariables();
		return;
	}
	const open = openVariables(contentOf(prepared), prepared.request.context ?? {});
	const known = open.length === 0 ? [] : ((await fieldsOf(cx)) ?? []);
	const fields = open.filter((name) => known.includes(name));
	const missing = [
		...open.filter((name) => !known.includes(name)),
		...(await fieldsWithoutValue(cx, fields, to)),
	];
	if (missing.length === 0) return;
	const names = missing.map((name) => `#${name}#`).join(', ');
	throw new UsageError(`no value for ${names}; nothing was sent`, {
		hint: 'give --context NAME=VALUE, write a default (#name|friend#), or add --no-strict-vars',
	});
}

async function fieldsWithoutValue(cx: CommandContext, fields: readonly string[], to: readonly string[]) {
	const api = await cx.api();
	if (fields.length === 0 || (await api.capabilities()).ext.campaigns === undefined) return [];
	const lacking = new Set<string>();
	for (const one of to) {
		const people = await collect(findInAllLists(api, parseMailbox(one)?.address ?? one, cx.signal));
		const meta = people.length === 1 ? people[0]?.meta : undefined;
		for (const name of fields) if ((meta?.[name] ?? null) === null) lacking.add(name);
	}
	return [...lacking];
}

/** Returns variables without a default that neither context nor service sets. A field of the recipient may set them. */
export function openVariables(
	content: Pick<Content, 'subject' | 'text' | 'html'>,
	context: Readonly<Record<string, string>>,
): string[] {
	return usedVariables(content).filter(
		(name) => !hasDefault(name) && !Object.hasOwn(context, name) && !builtInVariables.includes(name),
	);
}

/** Null if the token may not read fields, or the service does not answer. */
export async function fieldsOf(cx: CommandContext): Promise<string[] | null> {
	try {
		const fields = await collect(walk((await cx.api()).fields, {}, { signal: cx.signal }));
		return fields.map(({ variable }) => variable);
	} catch (error) {
		if (error instanceof ApiError) return null;
		throw error;
	}
}

const saidBy = new WeakMap<CommandContext, Set<string>>();

/** True at the first call with this text in a command, so that each warning appears once. */
export function isNews(cx: CommandContext, text: string): boolean {
	const said = saidBy.get(cx) ?? new Set();
	saidBy.set(cx, said);
	return !said.has(text) && said.add(text) !== undefined;
}

export async function warnOfContent(cx: CommandContext, prepared: Prepared): Promise<void> {
	if (isOpaque(prepared) || !isNews(cx, 'content')) return;
	const { warnOfFindings } = await import('../../verbs/content.js');
	await warnOfFindings(cx, contentOf(prepared), { bulk: await wantsLink(cx, prepared) });
}

export async function findingsIn(cx: CommandContext, prepared: Prepared): Promise<ContentFinding[]> {
	if (isOpaque(prepared)) return [];
	const { contentFindings } = await import('../../../content/lint.js');
	return contentFindings(contentOf(prepared), { bulk: await wantsLink(cx, prepared) });
}

async function wantsLink(cx: CommandContext, { request }: Prepared): Promise<boolean> {
	return request.type === 'BULK' && !(await isMadeElsewhere(cx));
}

export async function warnOfLinks(cx: CommandContext, isBulk: boolean): Promise<void> {
	const { local } = await cx.connection();
	if (!isBulk || local === null) return;
	const url = (await local.settings.get())['public_url'];
	if ((url !== undefined && /^https:/i.test(url)) || !isNews(cx, 'links')) return;
	await cx.warn(
		url === undefined
			? 'unsubscribe links point to this machine, so nobody else can open them'
			: 'public_url is http, so mail programs offer no one-click unsubscribe',
		mailctl('engine', 'settings', 'set', 'public_url', 'https://HOST'),
	);
}

export async function warnOfMissing(cx: CommandContext, names: readonly string[]): Promise<void> {
	const unnamed = names.map((name) => `#${name}#`).filter((one) => isNews(cx, one));
	if (unnamed.length > 0) await cx.warn(`no value for ${unnamed.join(', ')}`);
}

/**
 * Warns of variables without a value. With `strict`, a later check refuses them, so this names only those that resemble
 * a known name. `columns`: the variables of each row.
 */
export async function warnOfVariables(
	cx: CommandContext,
	prepared: Prepared,
	{ columns = [], strict }: { columns?: readonly string[]; strict: boolean },
): Promise<void> {
	if (isOpaque(prepared)) return;
	const references = usedVariables(contentOf(prepared));
	const given = [...builtInVariables, ...Object.keys(prepared.request.context ?? {}), ...columns];
	const open = variableNames(references).filter((name) => !given.includes(name));
	const known = open.length === 0 ? null : await fieldsOf(cx);
	if (known === null) return;
	for (const name of open.filter((one) => !known.includes(one))) {
		const near = didYouMean(name, [...given, ...known]);
		const isPlain = references.includes(name) && !strict;
		if ((near === undefined && !isPlain) || !isNews(cx, `#${name}#`)) continue;
		const text = isPlain ? `no value for #${name}#` : `#${name}# is not a known variable`;
		await cx.warn(text, ...(near === undefined ? [] : [near]));
	}
}

function didYouMean(name: string, candidates: readonly string[]): string | undefined {
	const near = [...new Set(suggest(name, candidates))];
	const same = near.find((one) => one.toLowerCase() === name.toLowerCase());
	if (same !== undefined) return `did you mean #${same}#? Case matters`;
	return near.length === 0 ? undefined : `did you mean ${near.map((one) => `#${one}#`).join(' or ')}?`;
}
