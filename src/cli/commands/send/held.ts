/** What holds back messages that a send has waited for in vain. */
import type { Messages } from '../../../api/capabilities.js';
import type { MessageHold, Uuid } from '../../../api/records.js';
import type { DeliveryScope } from '../../connection.js';

/** Where to look for one that still waits. */
export interface Waited {
	scope: NonNullable<DeliveryScope>;
	/** The messages of a submission, which nothing else names; of a mailing none need be given. */
	ids: readonly Uuid[];
	signal: AbortSignal;
}

/** So many of a submission are looked at: the last ones, which are sent last. */
const mostLookedAt = 20;

/** `the limit 100/1h of send_limit holds back what is left until …`; null when it is no limit, or nobody tells. */
export async function whatHolds(messages: Messages, waited: Waited): Promise<string | null> {
	const { signal } = waited;
	for (const id of await candidates(messages, waited)) {
		const { state, held_by = [] } = await messages.get(id, { signal });
		const [hold] = held_by;
		if (state === 'queued') return hold === undefined ? null : sentenceOf(hold);
	}
	return null;
}

async function candidates(messages: Messages, { scope, ids, signal }: Waited): Promise<readonly Uuid[]> {
	if ('submission' in scope) return ids.slice(-mostLookedAt).reverse();
	const filter = { campaign_unique_id: scope.mailing, status: 'queued', page_size: 1 } as const;
	const { results } = await messages.page(filter, { signal });
	return results.map(({ id }) => id);
}

function sentenceOf({ setting, limit, until }: MessageHold): string {
	return `the limit ${limit} of ${setting} holds back what is left until ${until.slice(0, 19)}Z`;
}
