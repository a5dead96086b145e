/** `--where` of the subscribers of a list. */
import { parseDateTime } from '../../../api/datetime.js';
import type { Subscriber } from '../../../api/records.js';
import { meets } from '../../../engine/rules/conditions.js';
import type { CommandContext } from '../../frame/context.js';
import { readConditions } from '../../verbs/conditions.js';

/** Picks rows here, for an API that knows no such filter. All conditions must hold; null: there are none. */
export async function matcherOf(
	cx: CommandContext,
	texts: readonly string[],
): Promise<((subscriber: Subscriber) => boolean) | null> {
	if (texts.length === 0) return null;
	const conditions = await readConditions(cx, texts);
	const zone = await zoneOf(cx);
	return ({ date_created, ...person }) => {
		const created_at = parseDateTime(date_created) ?? 0;
		return conditions.every((one) => meets({ ...person, created_at }, one, zone));
	};
}

async function zoneOf(cx: CommandContext): Promise<string> {
	const { ext } = await (await cx.api()).capabilities();
	return ext.audiences === undefined ? cx.timeZone() : (await ext.audiences.plan({})).time_zone;
}
