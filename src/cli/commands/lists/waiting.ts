/** Mail that goes with the subscribers of lists: what waits of it is canceled. */

import type { CampaignStatus, Campaigns } from '../../../api/campaigns.js';
import { isForbidden } from '../../../api/errors.js';
import type { CommandContext } from '../../frame/context.js';
import { counted } from '../../render/units.js';
import { walk } from '../../verbs/listing.js';

/**
 * How many messages to these lists wait; at most as many where a campaign has other lists too. 0 where the service does
 * not tell: one of others, or one whose token reads no campaigns.
 */
export async function countWaiting(cx: CommandContext, ids: readonly number[]): Promise<number> {
	const { campaigns } = (await (await cx.api()).capabilities()).ext;
	if (campaigns === undefined) return 0;
	try {
		return await sumWaiting(campaigns, { ids, signal: cx.signal });
	} catch (error) {
		if (isForbidden(error)) return 0;
		throw error;
	}
}

async function sumWaiting(
	campaigns: Campaigns,
	{ ids, signal }: { ids: readonly number[]; signal: AbortSignal },
): Promise<number> {
	let sum = 0;
	// Mail of other kinds is sent all the same.
	for (const state of ['sending', 'planned'] as const)
		for await (const { id, type, list_id } of walk(campaigns, { state }, { signal }))
			if (type === 'BULK')
				sum += waitingOf(await campaigns.status(id, { signal }), (list) => ids.includes(list), list_id);
	return sum;
}

function waitingOf(
	{ messages: { queued = 0, deferred = 0 }, lists = [] }: CampaignStatus,
	isGoing: (list: number) => boolean,
	list_id: number | null,
): number {
	const waiting = queued + deferred;
	if (list_id !== null && isGoing(list_id)) return waiting;
	const staged = lists.reduce((sum, one) => sum + (isGoing(one.list_id) ? one.staged : 0), 0);
	return Math.min(staged, waiting);
}

/** Behind what is deleted: ` and cancel the 4,146 messages to them not sent yet`, or nothing. */
export function cancelNote(waiting: number): string {
	return waiting === 0 ? '' : ` and cancel the ${counted(waiting, 'message')} to them not sent yet`;
}

export function canceledNote(waiting: number): string {
	return waiting === 0 ? '' : `; ${counted(waiting, 'message')} to them canceled`;
}
