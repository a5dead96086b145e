/** Which recipients share a call: neighbours to whom the very same is said, or those of one send request. */
import type { SendRequest } from '../../../api/inputs.js';
import { type Item, seatsOf } from './entries.js';

/** A recipient and the number of his seat. */
export interface Seated {
	seat: number;
	to: string;
}

/** The recipients of one call, in the order of their seats, and what is said to them. */
export interface Group {
	people: readonly Seated[];
	request: Omit<SendRequest, 'to'>;
	/** `shared`: every call of the mailing says it, but for a recipient's variables. `own`: a send request of its own. */
	content: 'shared' | 'own';
}

/** An item and the number of its first seat. */
export interface SeatedItem {
	seat: number;
	item: Item;
}

/** What decides who shares a call. */
export interface Grouping {
	/** Addresses of a call where all get the same. */
	max: number;
	/** Whether the seat is to be called. */
	isWanted: (seat: number) => boolean;
	/** What is said to somebody whose own context this is. */
	requestFor: (context: Readonly<Record<string, string>>) => Group['request'];
}

/** Assumption: addresses of one call, as our own service takes them (api-decisions 21). */
export const maxGroup = 1_000;

/**
 * Calls in the order of seats. Whoever has a context of his own is alone in his call. Assumption: several addresses of one
 * call are several messages, as the document's answer names them, and nobody reads the others' addresses.
 */
export async function* groupItems(
	items: AsyncIterable<SeatedItem>,
	{ max, isWanted, requestFor }: Grouping,
): AsyncGenerator<Group, void, undefined> {
	let plain: Seated[] = [];
	for await (const { seat, item } of items) {
		const people = peopleOf(item, seat).filter((one) => isWanted(one.seat));
		if (people.length === 0) continue;
		if ('request' in item) yield { people, request: item.request, content: 'own' };
		else if ('context' in item && item.context !== undefined)
			yield { people, request: requestFor(item.context), content: 'shared' };
		else plain.push(...people);
		if (plain.length < max) continue;
		yield { people: plain, request: requestFor({}), content: 'shared' };
		plain = [];
	}
	if (plain.length > 0) yield { people: plain, request: requestFor({}), content: 'shared' };
}

function peopleOf(item: Item, first: number): Seated[] {
	if (seatsOf(item) === 0) return [];
	const addresses = typeof item.to === 'string' ? [item.to] : item.to;
	return addresses.map((to, index) => ({ seat: first + index, to }));
}
