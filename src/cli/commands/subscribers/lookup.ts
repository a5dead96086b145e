import { emailKey } from '../../../api/address.js';
import type { Api, Crud } from '../../../api/api.js';
import { type SubscriberTuple, type TupleKeys, tupleKeys } from '../../../api/exports.js';
import type { SubscriberInput } from '../../../api/inputs.js';
import type { List, Subscriber, SubscriberFilter } from '../../../api/records.js';
import type { OptionValues } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { given } from '../../frame/values.js';
import { type Columns, column } from '../../render/columns.js';
import { type Collection, collect, inSlices, walk } from '../../verbs/listing.js';
import { type By, byOption, isRecordId, missing, orNull, resolveList } from '../../verbs/resolve.js';

type Subscribers = Crud<Subscriber, SubscriberInput, SubscriberFilter>;

export const subscriberColumns: Columns<Subscriber> = [
	column('id', 'ID', { align: 'right' }),
	column('email', 'EMAIL', { isKept: 'address', isName: true }),
	column('name', 'NAME', { isKept: 'name' }),
	column('is_active', 'ACTIVE'),
	column('disable_reason', 'REASON', { isOptional: true }),
	column('meta', 'META', { wide: true }),
	column('is_email_verified', 'VERIFIED', { wide: true }),
	column('source', 'SOURCE', { wide: true }),
	column('opt_in_signed', 'OPTED IN', { time: 'text', wide: true }),
	column('list_id', 'LIST', { wide: true, align: 'right' }),
	column('date_created', 'CREATED', { time: 'text', wide: true }),
];

export const listOption = {
	list: {
		kind: 'text',
		short: 'l',
		placeholder: 'LIST',
		summary: 'select the list by id or exact name',
		env: 'MAILCTL_LIST',
		setting: 'list',
		required: true,
		of: 'list',
		ask: 'Which list:',
	},
	by: byOption,
} as const;

export const filterOptions = {
	emailContains: { kind: 'text', summary: 'filter by a part of the address; reads the whole list' },
	active: { kind: 'tri', off: 'inactive', summary: 'filter by state' },
	where: {
		kind: 'list',
		placeholder: 'CONDITION',
		summary: "filter: 'meta.city=Oslo', 'email~@example.com' (contains), 'created>7d'",
	},
} as const;

type Filtered = Pick<OptionValues<typeof filterOptions>, 'emailContains' | 'active'> & {
	email?: string | undefined;
};

export function filterOf({ emailContains, active, email }: Filtered): SubscriberFilter {
	return given({ email__icontains: emailContains, is_active: active, email__exact: email });
}

export const subscriberArg = {
	name: 'subscriber',
	summary: 'an id or an e-mail address',
	of: 'subscriber',
	ask: 'Which subscriber:',
} as const;

export interface InList {
	list: List;
	subscribers: Subscribers;
}

type ListChoice = { list: string; by?: By | undefined };

export async function inList(cx: CommandContext, { list, by }: ListChoice): Promise<InList> {
	const api = await cx.api();
	const found = await resolveList(api, list, { by, signal: cx.signal });
	return { list: found, subscribers: api.subscribers(found.id) };
}

export async function resolveSubscriber(cx: CommandContext, within: InList, text: string) {
	const found = await findSubscriber(cx, within, text);
	if (found !== null) return found;
	const { id, name } = within.list;
	throw missing('subscriber', `${text} of list ${id} "${name}"`, mailctl('subscribers', 'find', text));
}

/** Compares each answer case-insensitively, because a service may compare by case or ignore the filter. */
export async function findSubscriber(cx: CommandContext, { subscribers }: InList, text: string) {
	const { signal } = cx;
	if (isRecordId(text)) return orNull(subscribers.get(Number(text), { signal }));
	const key = emailKey(text);
	for await (const one of walk(subscribers, { email__exact: text }, { signal }))
		if (emailKey(one.email) === key) return one;
	const { ext } = await (await cx.api()).capabilities();
	if (ext.subscribers !== undefined) return null;
	const { searchAddress } = await import('../../../jobs/subscriber-pages.js');
	return searchAddress((request) => subscribers.page(request, { signal }), text);
}

export async function* findInAllLists(api: Api, email: string, signal: AbortSignal) {
	const lists = await collect(walk(api.lists, {}, { signal }));
	const key = emailKey(email);
	const { ext } = await api.capabilities();
	// In other services, "exact" may be case-sensitive, and users do not know the stored case.
	const filter = ext.subscribers === undefined ? { email__icontains: email } : { email__exact: email };
	for (const { id } of lists) {
		// A service may ignore the filter, so compare its answers here.
		for await (const one of walk(api.subscribers(id), filter, { signal }))
			if (emailKey(one.email) === key) yield one;
	}
}

type ByKey = Collection<SubscriberFilter, Subscriber>;

export async function subscribersByKey(api: Api, list_id: number): Promise<ByKey> {
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

const pieceSize = 1000;

type Pieces = AsyncGenerator<readonly Subscriber[]>;

/** Yields subscribers by ascending id. */
export async function* walkSubscribers(cx: CommandContext, { id }: List, filter: SubscriberFilter): Pieces {
	const api = await cx.api();
	const { exports } = (await api.capabilities()).ext;
	if (exports !== undefined)
		yield* inSlices(cx.signal, 0, (after, call) =>
			exports.slice(id, { ...filter, after, limit: pieceSize }, call),
		);
	else yield* inPieces(walk(api.subscribers(id), filter, { signal: cx.signal }));
}

type TupleFilter = SubscriberFilter & { keys: TupleKeys };

export async function* walkTuples(cx: CommandContext, list: List, { keys, ...filter }: TupleFilter) {
	const { tuples } = (await (await cx.api()).capabilities()).ext;
	if (tuples !== undefined)
		yield* inSlices(cx.signal, 0, (after, call) =>
			tuples.slice(list.id, { ...filter, keys, after, limit: pieceSize }, call),
		);
	else
		for await (const people of walkSubscribers(cx, list, filter))
			yield people.map((one) => tupleOf(one, keys));
}

export function tupleOf(person: Subscriber, keys: TupleKeys): SubscriberTuple {
	return tupleKeys[keys].map((key) => person[key]);
}

async function* inPieces(rows: AsyncIterable<Subscriber>): Pieces {
	let piece: Subscriber[] = [];
	for await (const row of rows) {
		piece.push(row);
		if (piece.length < pieceSize) continue;
		yield piece;
		piece = [];
	}
	if (piece.length > 0) yield piece;
}
