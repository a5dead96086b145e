import { builtInVariables } from '../../../api/inputs.js';
import { suggest } from '../../../api/suggest.js';
import { usedVariables, variableNames } from '../../../api/variables.js';
import type { ContentFinding } from '../../../content/lint.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { contentOf, fieldsOf, isMadeElsewhere, isOpaque, type Prepared } from './request.js';

const saidBy = new WeakMap<CommandContext, Set<string>>();

/** Each warning is given once a command. */
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
 * Warns of variables without a value. One that is refused later (`strict`) is named only if it resembles a known name.
 * `columns`: the variables of each row.
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
