import type { Lists } from '../api/api.js';
import { type AddedList, type ListsPlus, listDetailsFields, listFields } from '../api/inputs.js';
import type { Command } from '../store/operations.js';
import type { Store } from '../store/store.js';
import { idempotencyKey, keyConflict } from './contents.js';
import { checked, crud, type EngineContext, found, written } from './context.js';

export function createLists(context: EngineContext): Lists {
	const { store, clock } = context;
	const { reads, writes } = store;
	return crud(context, {
		path: '/sub/lists/',
		page: reads.pageLists,
		get: (id: number) => reads.getList({ id }),
		create: async (body) => {
			const input = checked(listFields.parse(body, 'create'));
			return { kind: 'written', record: (await putList(store, { input, now: clock.now() })).list };
		},
		// The service document ("Lists") requires no field in a PUT.
		change: async (id, body) => writes.patchList({ id, patch: checked(listFields.parse(body, 'patch')) }),
		delete: (id, call) => writes.deleteList({ id, now: clock.now() }, call),
	});
}

async function putList(
	{ writes }: Pick<Store, 'writes'>,
	command: Command<'createList'>,
): Promise<AddedList> {
	const outcome = await writes.createList(command);
	if (outcome.kind === 'key_conflict') throw keyConflict();
	return { is_new: outcome.was_there !== true, list: written(outcome) };
}

export function createListsPlus({ store, clock }: EngineContext): ListsPlus {
	const { reads, writes } = store;
	return {
		add: async (body, call) => {
			const input = checked(listFields.parse(body, 'create'));
			const key = idempotencyKey({ operation: 'lists.add', ...input }, call);
			return putList(store, { input, now: clock.now(), unless_named: true, key });
		},
		get: async (id) => found(await reads.getListDetails({ id })),
		patch: async (id, input) => {
			found(await reads.getListDetails({ id }));
			const { public_name } = checked(listDetailsFields.parse(input, 'patch'));
			const patch = public_name === undefined ? {} : { public_name: public_name === '' ? null : public_name };
			return written(await writes.patchListDetails({ id, patch }));
		},
	};
}
