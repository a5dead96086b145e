/**
 * Finds subscribers in a service that offers only pages and filters. For few rows, `SubscriberPages` searches for each
 * address. For more rows than the list has pages, reading the whole list takes fewer requests.
 */
import { type EmailKey, emailKey, parseAddress } from '../api/address.js';
import type { Api, Call, PageRequest } from '../api/api.js';
import type { SubscriberInput } from '../api/inputs.js';
import { iterate } from '../api/pages.js';
import type { Page, Subscriber, SubscriberFilter } from '../api/records.js';
import type { Pace } from './pace.js';
import type { Known } from './single-imports.js';

export interface Subscribers extends Pick<ReturnType<Api['subscribers']>, 'page' | 'get'> {
	create(input: SubscriberInput, call?: Call): Promise<unknown>;
	patch(id: number, input: Partial<SubscriberInput>, call?: Call): Promise<unknown>;
}

const pageSize = 1_000;
const maxWalked = 200_000;

export async function openSubscriberPages(subscribers: Subscribers, pace: Pace): Promise<SubscriberPages> {
	const first = await pace.read((call) => subscribers.page({ page: 1, page_size: pageSize }, call));
	return new SubscriberPages(subscribers, pace, first);
}

export class SubscriberPages {
	readonly #subscribers: Subscribers;
	readonly #pace: Pace;
	readonly #count: number;
	readonly #pages: number;
	#asked = 0;
	#walked: Map<EmailKey, Known> | null = null;

	constructor(subscribers: Subscribers, pace: Pace, first: Page<Subscriber>) {
		this.#subscribers = subscribers;
		this.#pace = pace;
		this.#count = first.count;
		// The service may ignore `page_size`, so count the results of the page.
		this.#pages = first.next === null ? 1 : Math.ceil(first.count / Math.max(1, first.results.length));
		if (first.next === null) this.#walked = new Map(first.results.map(entryOf));
	}

	async prepare(rows: number): Promise<void> {
		this.#asked += rows;
		if (this.#walked === null && this.#asked >= this.#pages && this.#count <= maxWalked) await this.#walk();
	}

	async find(email: string): Promise<{ known: Known; isFresh: boolean } | null> {
		if (this.#walked === null) {
			const known = await this.search(email);
			return known === null ? null : { known, isFresh: true };
		}
		const known = this.#walked.get(emailKey(email));
		return known === undefined ? null : { known, isFresh: false };
	}

	async search(email: string): Promise<Known | null> {
		const read: ReadSubscribers = (request) =>
			this.#pace.read((call) => this.#subscribers.page(request, call));
		const found = await searchAddress(read, email);
		return found === null ? null : knownOf(found);
	}

	async #walk(): Promise<void> {
		const walked = new Map<EmailKey, Known>();
		const read = (request: PageRequest) => this.#pace.read((call) => this.#subscribers.page(request, call));
		for await (const one of iterate(read, { page_size: pageSize })) walked.set(...entryOf(one));
		this.#walked = walked;
	}
}

function entryOf(one: Subscriber): [EmailKey, Known] {
	return [emailKey(one.email), knownOf(one)];
}

function knownOf({ id, email, name, is_active, meta }: Subscriber): Known {
	return { id, email, name, is_active, meta };
}

type ReadSubscribers = (request: SubscriberFilter & PageRequest) => Promise<Page<Subscriber>>;

/** The service's `email__exact` may be case-sensitive. */
export async function searchAddress(read: ReadSubscribers, email: string): Promise<Subscriber | null> {
	const exact = [...new Set([email, email.toLowerCase()])].map((email__exact) => ({ email__exact }));
	for (const filter of [...exact, { email__icontains: email }]) {
		const found = await matching(read, filter, email);
		if (found !== null) return found;
	}
	return null;
}

async function matching(
	read: ReadSubscribers,
	filter: SubscriberFilter,
	email: string,
): Promise<Subscriber | null> {
	const key = emailKey(email);
	for await (const one of iterate((request: PageRequest) => read({ ...filter, ...request }))) {
		if (emailKey(one.email) === key) return one;
	}
	return null;
}

interface PersonOfList {
	email: string;
	to_key: string | null;
	name: string;
	email_reason: string;
	meta: Readonly<Record<string, unknown>>;
}

export async function* peopleOfList(
	api: Api,
	listId: number,
	signal: AbortSignal | undefined,
): AsyncGenerator<PersonOfList[], void, undefined> {
	const call = signal === undefined ? {} : { signal };
	const { email_reason } = await api.lists.get(listId, call);
	const subscribers = api.subscribers(listId);
	const readPage = (request: PageRequest) => {
		signal?.throwIfAborted();
		return subscribers.page({ is_active: true, ...request }, call);
	};
	let people: PersonOfList[] = [];
	for await (const { email, name, meta, is_active } of iterate(readPage, { page_size: pageSize })) {
		// The service may ignore the filter.
		if (!is_active) continue;
		const address = parseAddress(email);
		people.push({ email: address?.address ?? email, to_key: address?.key ?? null, name, email_reason, meta });
		if (people.length < pageSize) continue;
		yield people;
		people = [];
	}
	yield people;
}
