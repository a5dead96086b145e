import type { Crud, PageRequest } from '../api/api.js';
import type { SubscriberInput } from '../api/inputs.js';
import { isRecord } from '../api/json.js';
import type { Page, Subscriber, SubscriberFilter } from '../api/records.js';
import { type SubscribersPlus, subscriberFields } from '../api/subscribers.js';
import type { Command } from '../store/operations.js';
import type { SubscriberPatch } from '../store/store.js';
import { checked, checkedBeside, deleted, type EngineContext, found, readPage, written } from './context.js';

export function createSubscribers(
	context: EngineContext,
	list_id: number,
): Crud<Subscriber, SubscriberInput, SubscriberFilter> {
	const { store, clock } = context;
	const { reads, writes } = store;
	const fieldErrors = (id: number | null) => async (patch: SubscriberPatch) => {
		found(id === null ? await reads.getList({ id: list_id }) : await reads.getSubscriber({ list_id, id }));
		return reads.fieldErrors({ kind: 'subscriber', list_id, id, patch, now: clock.now() });
	};
	const change = async (id: number, input: unknown, mode: 'replace' | 'patch') => {
		const isDefault = mode === 'replace' && !(isRecord(input) && Object.hasOwn(input, 'is_active'));
		const activation = isDefault ? { is_active: 'default' as const } : {};
		const given = await checkedBeside(subscriberFields.parse(input, mode), (good) =>
			fieldErrors(id)({ ...good, ...activation }),
		);
		const patch = { ...given, ...activation };
		return written(await writes.patchSubscriber({ list_id, id, patch, now: clock.now() }));
	};
	return {
		page: (request) => readSubscribers(context, list_id, request, reads.pageSubscribers),
		get: async (id) => found(await reads.getSubscriber({ list_id, id })),
		create: async (input) => {
			const value = await checkedBeside(subscriberFields.parse(input, 'create'), fieldErrors(null));
			return written(await writes.createSubscriber({ list_id, input: value, now: clock.now() }));
		},
		replace: (id, input) => change(id, input, 'replace'),
		patch: (id, input) => change(id, input, 'patch'),
		delete: async (id) => deleted(await writes.deleteSubscriber({ list_id, id, now: clock.now() })),
	};
}

export function readSubscribers<Results>(
	context: EngineContext,
	list_id: number,
	request: PageRequest & SubscriberFilter,
	read: (command: Command<'pageSubscribers'>) => Promise<{ count: number; results: Results } | null>,
): Promise<Page<Subscriber, Results>> {
	return readPage(context, request, `/sub/lists/${list_id}/subscribers/`, async (at, filter) =>
		found(await read({ ...at, list_id, filter })),
	);
}

export function createSubscribersPlus({ store, clock }: EngineContext): SubscribersPlus {
	return {
		merge: async (list_id, id, { patch, set, unset }) => {
			const parsed = subscriberFields.parse({ ...patch, meta: set }, 'patch');
			const value = await checkedBeside(parsed, async ({ meta, ...good }) => {
				found(await store.reads.getSubscriber({ list_id, id }));
				return store.reads.fieldErrors({
					kind: 'subscriber',
					list_id,
					id,
					patch: { ...good, ...(meta !== undefined && { merge_meta: meta }) },
					now: clock.now(),
				});
			});
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
		add: async (list_id, subscriber, { if_exists }) => {
			const parsed = subscriberFields.parse(subscriber, 'create');
			if (parsed.kind === 'invalid') found(await store.reads.getList({ id: list_id }));
			const { email } = checked(parsed);
			const input = { ...checked(subscriberFields.parse(subscriber, 'patch')), email };
			return written(await store.writes.createSubscriber({ list_id, input, if_exists, now: clock.now() }));
		},
		clear: async (id, call) => found(await store.writes.clearList({ id, now: clock.now() }, call)),
	};
}
