import { emailKey } from '../../../api/address.js';
import type { Api } from '../../../api/api.js';
import type { ListedSubscriber, Person, PersonMessage } from '../../../api/people.js';
import type { List } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { walk } from '../../verbs/listing.js';
import { findInAllLists } from '../subscribers/walk.js';

/** `told` is null on a service that has only lists and subscribers. */
export interface Held {
	email: string;
	isKnown: boolean;
	subscribers: readonly ListedSubscriber[];
	told: (Omit<Person, 'email' | 'subscribers' | 'is_known'> & { recent: readonly PersonMessage[] }) | null;
}

const sliceSize = 100;

/** `since`: no older messages; null: all. Throws errors of the service. */
export async function readHeld(cx: CommandContext, address: string, since: string | null): Promise<Held> {
	const api = await cx.api();
	const { people } = (await api.capabilities()).ext;
	if (people === undefined) return documented(api, address, cx.signal);
	const { signal } = cx;
	const { email, subscribers, is_known: isKnown, ...told } = await people.get(address, { signal });
	const recent: PersonMessage[] = [];
	for (let before: number | null | undefined; before !== null && told.messages > 0; ) {
		signal.throwIfAborted();
		const request = { limit: sliceSize, ...(since !== null && { since }), ...(before && { before }) };
		const slice = await people.messages(address, request, { signal });
		recent.push(...slice.results);
		before = slice.next;
	}
	return { email, isKnown, subscribers, told: { ...told, recent } };
}

/** By the service document alone. */
async function documented(api: Api, address: string, signal: AbortSignal): Promise<Held> {
	const names = new Map<number, string>();
	const lists = walk<object, List>(api.lists, {}, { signal });
	for await (const { id, name } of lists) names.set(id, name);
	const subscribers: ListedSubscriber[] = [];
	for await (const one of findInAllLists(api, address, signal))
		subscribers.push({ ...one, list_name: names.get(one.list_id) ?? String(one.list_id) });
	return { email: emailKey(address), isKnown: subscribers.length > 0, subscribers, told: null };
}
