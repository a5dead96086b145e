import type { Lists } from '../api/api.js';
import { type AddedList, type ListsPlus, listDetailsFields, listFields } from '../api/inputs.js';
import type { Command } from '../store/operations.js';
import type { Store } from '../store/store.js';
import { idempotencyKey, keyConflict } from './contents.js';
import { checked, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';

export function createLists(context: EngineContext): Lists {
	const { store, clock } = context;
	const { reads, writes } = store;
	// An unknown id is "Not found." whatever the body is. PUT requires no field (service document, "Lists").
	const change = async (id: number, input: unknown) => {
		found(await reads.getList({ id }));
		return written(await writes.patchList({ id, patch: checked(listFields.parse(input, 'patch')) }));
	};
	return {
		page: (request) => readPage(context, request, { path: '/sub/lists/' }, (page) => reads.pageLists(page)),
		get: async (id) => found(await reads.getList({ id })),
		create: async (input) =>
			(await putList(store, { input: checked(listFields.parse(input, 'create')), now: clock.now() })).list,
		replace: change,
		patch: change,
		delete: async (id, call) => deleted(await writes.deleteList({ id, now: clock.now() }, call)),
	};
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
