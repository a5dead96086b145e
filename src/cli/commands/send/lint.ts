/** Warnings about what is sent, before it is. Nothing is refused here. */

import { ApiError } from '../../../api/errors.js';
import { builtInVariables } from '../../../api/inputs.js';
import { isLoopbackUrl } from '../../../api/schema/url.js';
import { suggest } from '../../../api/suggest.js';
import { hasDefault, usedVariables, variableNames } from '../../../api/variables.js';
import type { ContentFinding } from '../../../content/lint.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { walk } from '../../verbs/listing.js';
import { contentOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';

/** `columns`: the variables that each row has. `strict`: a variable without a value is refused later. */
interface LintOptions {
	columns?: readonly string[];
	strict: boolean;
}

/** What a command has warned of: the guide shows a content before it is sent. */
const warnedOf = new WeakMap<CommandContext, string>();

/** Once for each kind of finding. A text that only the service knows is left out. */
export async function warnOfContent(cx: CommandContext, prepared: Prepared): Promise<void> {
	if (isOpaque(prepared)) return;
	const content = contentOf(prepared);
	const text = JSON.stringify([content.subject, content.text, content.html]);
	if (warnedOf.get(cx) === text) return;
	warnedOf.set(cx, text);
	const { warnOfFindings } = await import('../../verbs/content.js');
	await warnOfFindings(cx, content, { bulk: await wantsLink(cx, prepared) });
}

/** What `warnOfContent` says of the content alone. */
export async function findingsIn(cx: CommandContext, prepared: Prepared): Promise<ContentFinding[]> {
	if (isOpaque(prepared)) return [];
	const { contentFindings } = await import('../../../content/lint.js');
	return contentFindings(contentOf(prepared), { bulk: await wantsLink(cx, prepared) });
}

/** The body is to have a link to unsubscribe: a service of others has one of its own. */
async function wantsLink(cx: CommandContext, { request }: Prepared): Promise<boolean> {
	return request.type === 'BULK' && !(await isMadeElsewhere(cx));
}

/** The content that the warning came with: one that is changed and shown anew is warned of again. */
const warnedOfLinks = new WeakMap<CommandContext, string>();

/** What bulk mail carries that its sender should know of before it leaves. */
export async function warnOfLinks(
	cx: CommandContext,
	options: { bulk: boolean; list?: string | undefined },
): Promise<void> {
	if (options.bulk) return warnOfPublicUrl(cx, { isBulk: true });
	if (options.list !== undefined)
		await cx.hint('with --transactional these mails carry no List-Unsubscribe header');
}

/** The same of mail that is no bulk mail: links to its pages, and those of its HTML, whose clicks are counted. */
export async function warnOfOwnLinks(cx: CommandContext, prepared: Prepared): Promise<void> {
	const { local } = await cx.connection();
	if (local === null || isOpaque(prepared)) return;
	const { findLinks, ownPages } = await import('../../../content/links.js');
	// To another mail server it leaves without such links.
	if (!isLoopbackUrl((await local.settings.get())['smtp_url'] ?? null)) return;
	const content = contentOf(prepared);
	const hasPages = variableNames(usedVariables(content)).some((name) => ownPages.has(name));
	if (hasPages || findLinks(content.html ?? '').length > 0) await warnOfPublicUrl(cx, { isBulk: false });
}

async function warnOfPublicUrl(cx: CommandContext, { isBulk }: { isBulk: boolean }): Promise<void> {
	const { local } = await cx.connection();
	const content = warnedOf.get(cx) ?? '';
	if (local === null || warnedOfLinks.get(cx) === content) return;
	const url = (await local.settings.get())['public_url'];
	if (url !== undefined && (!isBulk || /^https:/i.test(url))) return;
	warnedOfLinks.set(cx, content);
	const links = isBulk ? 'links to unsubscribe' : 'links of this mail';
	await cx.warn(
		url === undefined
			? `${links} point to this machine: no other machine can follow them`
			: 'public_url is http, so mail programs offer no unsubscribing with one click (List-Unsubscribe-Post)',
		mailctl('engine', 'settings', 'set', 'public_url', 'https://HOST'),
	);
}

/**
 * Warns of variables that nothing gives a value to, before the missing values refuse a recipient. Returns the request
 * with those that a warning has named, so that no second one does.
 */
export async function linted(
	cx: CommandContext,
	prepared: Prepared,
	{ columns = [], strict }: LintOptions,
): Promise<Prepared> {
	if (isOpaque(prepared)) return prepared;
	const named = await warnOfUnknown(cx, prepared, { columns, strict });
	return { ...prepared, named };
}

/** Variables that nothing gives a value to. Those that are refused later, or have a default, only where a name is near. */
async function warnOfUnknown(
	cx: CommandContext,
	{ request, template }: Prepared,
	{ columns, strict }: Required<LintOptions>,
): Promise<string[]> {
	const references = usedVariables(contentOf({ request, template }));
	const given = [...builtInVariables, ...Object.keys(request.context ?? {}), ...columns];
	const open = variableNames(references).filter((name) => !given.includes(name));
	if (open.length === 0) return [];
	const known = await fieldsOf(cx);
	if (known === null) return [];
	const named: string[] = [];
	for (const name of open.filter((one) => !known.includes(one))) {
		const near = didYouMean(name, [...given, ...known]);
		const isPlain = references.includes(name) && !strict;
		if (near === undefined && !isPlain) continue;
		named.push(...references.filter((one) => one === name && !hasDefault(one)));
		const text = isPlain ? `no value for #${name}#` : `#${name}# is no known variable`;
		await (near === undefined ? cx.warn(text) : cx.warn(text, near));
	}
	return named;
}

/** As a message names them; a name that differs in case alone is not another one's slip. */
function didYouMean(name: string, candidates: readonly string[]): string | undefined {
	const near = [...new Set(suggest(name, candidates))];
	const same = near.find((one) => one.toLowerCase() === name.toLowerCase());
	if (same !== undefined) return `did you mean #${same}#? Upper and lower case count`;
	return near.length === 0 ? undefined : `did you mean ${near.map((one) => `#${one}#`).join(' or ')}?`;
}

/** null: this token may not read them, or they cannot be read now; what is sent does not depend on it. */
export async function fieldsOf(cx: CommandContext): Promise<string[] | null> {
	const names: string[] = [];
	try {
		const api = await cx.api();
		for await (const { variable } of walk(api.fields, {}, { signal: cx.signal })) names.push(variable);
	} catch (error) {
		if (error instanceof ApiError) return null;
		throw error;
	}
	return names;
}
