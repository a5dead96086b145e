/** The public name of a list, an extension of ours: people see it beside the list, `-o json` is the list of the wire. */
import { need } from '../../../api/capabilities.js';
import { ApiError, invalid } from '../../../api/errors.js';
import type { ListsPlus } from '../../../api/lists.js';
import type { List } from '../../../api/records.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { CliError } from '../../frame/errors.js';
import { classify } from '../../frame/exit.js';
import { column, parseFields } from '../../render/columns.js';
import { explained } from '../../verbs/refusals.js';

/** A list as people see it; `public_name` is absent where it was not asked for. */
export interface NamedList extends List {
	public_name?: string | null;
}

export const publicNameColumn = column<NamedList, 'public_name'>('public_name', 'PUBLIC NAME', {
	wide: true,
});

/** Whether the answer has a place for it: a card, or `--fields` that names it. */
export function showsPublicName(cx: CommandContext): boolean {
	return cx.out.format === 'table' || cx.out.format === 'wide' || isAskedFor(cx);
}

/** With its public name where the answer has a place for it and the deployment knows of one. */
export async function withPublicName(cx: CommandContext, list: List): Promise<NamedList | null> {
	if (!showsPublicName(cx)) return null;
	const api = await cx.api();
	if (isAskedFor(cx)) await need(api, 'lists', '--fields public_name');
	const { lists } = (await api.capabilities()).ext;
	if (lists === undefined) return null;
	const { public_name } = await lists.get(list.id, { signal: cx.signal });
	return { ...list, public_name };
}

/** Refuses what the service would refuse, exit 5, before a list is written and its public name is not. */
export async function assertNames(input: object, mode: 'create' | 'patch'): Promise<void> {
	const { listDetailsFields, listFields } = await import('../../../api/lists.js');
	const parsed = [listFields.parse(input, mode), listDetailsFields.parse(input, mode)];
	const errors = Object.assign({}, ...parsed.map((one) => (one.kind === 'invalid' ? one.errors : {})));
	if (Object.keys(errors).length > 0) await explained(Promise.reject(invalid(errors)), { input });
}

/** The second of two writes: when it fails, the list is there, and the error says how to go on. */
export async function putPublicName(
	cx: CommandContext,
	lists: ListsPlus,
	{ list, publicName }: { list: List; publicName: string },
): Promise<NamedList> {
	try {
		const { public_name } = await lists.patch(list.id, { public_name: publicName }, { signal: cx.signal });
		return { ...list, public_name };
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		const { code, exit, message } = classify(error);
		throw new CliError(
			code,
			exit,
			`list ${list.id} "${list.name}" is there, but not its public name: ${message}`,
			{
				hint: mailctl('lists', 'update', String(list.id), '--public-name', publicName),
				cause: error,
			},
		);
	}
}

function isAskedFor({ globals }: CommandContext): boolean {
	return parseFields(globals.fields)?.includes(publicNameColumn.key) === true;
}
