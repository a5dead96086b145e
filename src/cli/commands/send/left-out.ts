/** Who of its lists a campaign left out, and why, in words. */

import {
	type LeavingOut,
	type LeftOutNames,
	type LeftOutPerson,
	sayLeftOut,
} from '../../../api/campaigns.js';
import { need } from '../../../api/capabilities.js';
import { iterateSlices } from '../../../api/pages.js';
import type { Uuid } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';

/** Subscribers of its lists that got no message; none where the service does not name them. */
export async function* leftOutPeople(
	cx: CommandContext,
	id: Uuid,
	signal: AbortSignal,
): AsyncGenerator<LeftOutPerson & { text: string }> {
	const { audiences } = (await (await cx.api()).capabilities()).ext;
	if (audiences === undefined) return;
	const names = namesOf(cx);
	for await (const { results } of iterateSlices(0, (after) => audiences.leftOut(id, { after }, { signal })))
		for (const person of results) yield { ...person, text: sayLeftOut(person, await names(person)) };
}

/** Names of lists and campaigns, each looked up once. */
function namesOf(cx: CommandContext): (one: LeavingOut) => Promise<LeftOutNames> {
	const known = new Map<string, string>();
	const names: LeftOutNames = {
		list: (id) => JSON.stringify(known.get(id) ?? id),
		campaign: (id) => known.get(id) ?? id,
	};
	return async ({ code, detail }) => {
		if (detail === null || known.has(detail)) return names;
		const api = await cx.api();
		if (code === 'excluded') {
			const name = await api.lists.get(Number(detail)).then(
				(list) => list.name,
				() => detail,
			);
			known.set(detail, name);
		} else if (code === 'opened' || code === 'not_opened') {
			const { results } = await (await need(api, 'campaigns')).page({ id: detail, page_size: 1 });
			known.set(detail, results[0]?.key ?? detail);
		}
		return names;
	};
}
