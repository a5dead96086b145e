import { emailKey } from '../../../api/address.js';
import type { Api } from '../../../api/api.js';
import {
	type SubscriberSlice,
	type SubscriberTuple,
	type TupleKeys,
	type TupleSlice,
	tupleKeys,
} from '../../../api/exports.js';
import { iterateSlices } from '../../../api/pages.js';
import type { List, Subscriber, SubscriberFilter } from '../../../api/records.js';
import type { CommandContext } from '../../frame/context.js';
import { type Collection, walk } from '../../verbs/listing.js';

const pieceSize = 1000;

export async function subscribersByKey(
	api: Api,
	list_id: number,
): Promise<Collection<SubscriberFilter, Subscriber>> {
	const { exports } = (await api.capabilities()).ext;
	const subscribers = api.subscribers(list_id);
	if (exports === undefined) return subscribers;
	return {
		page: async (request, call) => {
			const page = await subscribers.page(request, call);
			const last = page.results.at(-1);
			return page.next === null || last === undefined ? page : { ...page, cursor: String(last.id) };
		},
		slice: async ({ cursor, ...request }, call) => {
			const { results, next } = await exports.slice(list_id, { ...request, after: Number(cursor) }, call);
			return { results, next: next === null ? null : String(next) };
		},
	};
}

/** Yields subscribers by ascending id, and keeps none. A long walk is not a snapshot. Throws errors of the service. */
export async function* walkSubscribers(
	cx: CommandContext,
	list: List,
	filter: SubscriberFilter,
): AsyncGenerator<readonly Subscriber[]> {
	const api = await cx.api();
	const { ext } = await api.capabilities();
	const { signal } = cx;
	if (ext.exports === undefined) {
		yield* inPieces(walk(api.subscribers(list.id), filter, { signal }));
		return;
	}
	const { exports } = ext;
	const slices = iterateSlices<number, SubscriberSlice>(0, async (after, onNext) => {
		signal.throwIfAborted();
		return exports.slice(list.id, { ...filter, after, limit: pieceSize }, { signal, onNext });
	});
	for await (const { results } of slices) yield results;
}

export async function* walkTuples(
	cx: CommandContext,
	list: List,
	{ keys, ...filter }: SubscriberFilter & { keys: TupleKeys },
): AsyncGenerator<readonly SubscriberTuple[]> {
	const { tuples } = (await (await cx.api()).capabilities()).ext;
	const { signal } = cx;
	if (tuples === undefined) {
		for await (const people of walkSubscribers(cx, list, filter))
			yield people.map((one) => tupleOf(one, keys));
		return;
	}
	const slices = iterateSlices<number, TupleSlice>(0, async (after, onNext) => {
		signal.throwIfAborted();
		return tuples.slice(list.id, { ...filter, keys, after, limit: pieceSize }, { signal, onNext });
	});
	for await (const { results } of slices) yield results;
}

export function tupleOf(person: Subscriber, keys: TupleKeys): SubscriberTuple {
	return tupleKeys[keys].map((key) => person[key]);
}

export async function* findInAllLists(
	api: Api,
	email: string,
	signal: AbortSignal,
): AsyncGenerator<Subscriber> {
	const lists: List[] = [];
	for await (const one of walk(api.lists, {}, { signal })) lists.push(one);
	const key = emailKey(email);
	const { ext } = await api.capabilities();
	// In other services, "exact" may be case-sensitive, and users do not know the stored case.
	const filter = ext.subscribers === undefined ? { email__icontains: email } : { email__exact: email };
	for (const { id } of lists) {
		// A service may ignore the filter, so compare its answers here.
		for await (const one of walk(api.subscribers(id), filter, { signal })) {
			if (emailKey(one.email) === key) yield one;
		}
	}
}

async function* inPieces(rows: AsyncIterable<Subscriber>): AsyncGenerator<readonly Subscriber[]> {
	let piece: Subscriber[] = [];
	for await (const row of rows) {
		piece.push(row);
		if (piece.length < pieceSize) continue;
		yield piece;
		piece = [];
	}
	if (piece.length > 0) yield piece;
}
