/** The subscribers of a list. What depends on stored state is decided inside the store's operation. */
import type { Crud } from '../api/api.js';
import type { SubscribersPlus } from '../api/capabilities.js';
import type { SubscriberInput } from '../api/inputs.js';
import type { Subscriber, SubscriberFilter } from '../api/records.js';
import { subscriberFields } from '../api/subscribers.js';
import { checked, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

/** An unknown list is `not_found` before the body is looked at. */
export function createSubscribers(
	context: EngineContext,
	list_id: number,
): Crud<Subscriber, SubscriberInput, SubscriberFilter> {
	const { store, clock } = context;
	const { reads, writes } = store;
	const change = async (id: number, input: unknown, mode: 'replace' | 'patch') => {
		found(await reads.getSubscriber({ list_id, id }));
		const patch = checked(subscriberFields.parse(input, mode));
		return written(await writes.patchSubscriber({ list_id, id, patch, now: clock.now() }));
	};
	return {
		page: ({ page, page_size, query: _, ...filter }) => {
			const request = { ...(page !== undefined && { page }), ...(page_size !== undefined && { page_size }) };
			const place = { path: `/sub/lists/${list_id}/subscribers/`, filters: { ...filter } };
			return readPage(context, request, place, async (slice) =>
				found(await reads.pageSubscribers({ ...slice, list_id, filter })),
			);
		},
		get: async (id) => found(await reads.getSubscriber({ list_id, id })),
		create: async (input) => {
			found(await reads.getList({ id: list_id }));
			const value = checked(subscriberFields.parse(input, 'create'));
			return written(await writes.createSubscriber({ list_id, input: value, now: clock.now() }));
		},
		replace: (id, input) => change(id, input, 'replace'),
		patch: (id, input) => change(id, input, 'patch'),
		delete: async (id) => deleted(await writes.deleteSubscriber({ list_id, id, now: clock.now() })),
	};
}

/** What the document lacks about subscribers. */
export function createSubscribersPlus({ store, clock }: EngineContext): SubscribersPlus {
	return {
		merge: async (list_id, id, { patch, set, unset }) => {
			found(await store.reads.getSubscriber({ list_id, id }));
			const value = checked(subscriberFields.parse({ ...patch, meta: set }, 'patch'));
			const { meta, ...rest } = value;
			return written(
				await store.writes.patchSubscriber({
					list_id,
					id,
					patch: { ...rest, merge_meta: meta ?? {}, unset_meta: unset },
					now: clock.now(),
				}),
			);
		},
		clear: async (id) => found(await store.writes.clearList({ id, now: clock.now() })),
	};
}
