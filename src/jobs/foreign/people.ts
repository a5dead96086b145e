/**
 * Who is in a list already, on a deployment that can only be asked page by page or by filter. Asked for each row as
 * long as that is cheaper; from the moment on when as many rows were asked for as the list has pages, the list is
 * walked once instead. So it never takes more than twice the requests of the better way, without knowing beforehand
 * how long the file is.
 */
import { type EmailKey, emailKey } from '../../api/address.js';
import type { Crud, PageRequest } from '../../api/api.js';
import type { SubscriberInput } from '../../api/inputs.js';
import { iterate } from '../../api/pages.js';
import type { Page, Subscriber, SubscriberFilter } from '../../api/records.js';
import type { Pace } from './pace.js';
import type { Known } from './rows.js';

/** The subscribers of one list. */
export type Subscribers = Crud<Subscriber, SubscriberInput, SubscriberFilter>;

export interface People {
	/** Before so many further rows are asked for. */
	prepare(rows: number): Promise<void>;
	/** Asks for one who may be there; `isFresh` false: what is known comes from the walk and may have changed. */
	find(email: string): Promise<{ known: Known; isFresh: boolean } | null>;
	/** Asks the service again, without regard to case: it said that the address is taken, or said nothing. */
	search(email: string): Promise<Known | null>;
}

const pageSize = 1_000;
/** About 200 bytes each; beyond that each row is asked for, however long it takes. */
const maxWalked = 200_000;

/** Reads the first page, so an unknown list is `not_found` here. */
export async function openPeople(subscribers: Subscribers, pace: Pace): Promise<People> {
	const first = await pace.read((call) => subscribers.page({ page: 1, page_size: pageSize }, call));
	return new ListedPeople(subscribers, pace, first);
}

class ListedPeople implements People {
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
		// A deployment answers as many a page as it likes.
		this.#pages = first.next === null ? 1 : Math.ceil(first.count / Math.max(1, first.results.length));
		if (first.next === null) this.#walked = new Map(first.results.map(entryOf));
	}

	async prepare(rows: number): Promise<void> {
		this.#asked += rows;
		if (this.#walked === null && this.#asked >= this.#pages && this.#count <= maxWalked) await this.#walk();
	}

	async find(email: string): Promise<{ known: Known; isFresh: boolean } | null> {
		if (this.#walked === null) {
			const known = await this.#exact(email);
			return known === null ? null : { known, isFresh: true };
		}
		const known = this.#walked.get(emailKey(email));
		return known === undefined ? null : { known, isFresh: false };
	}

	async search(email: string): Promise<Known | null> {
		return (await this.#exact(email)) ?? (await this.#matching({ email__icontains: email }, email));
	}

	/** `email__exact` may heed case elsewhere: an address stored in lower case, as most are, is found all the same. */
	async #exact(email: string): Promise<Known | null> {
		for (const text of new Set([email, email.toLowerCase()])) {
			const known = await this.#matching({ email__exact: text }, email);
			if (known !== null) return known;
		}
		return null;
	}

	/** A deployment may ignore the filter: what it answers is compared once more. */
	async #matching(filter: SubscriberFilter, email: string): Promise<Known | null> {
		const key = emailKey(email);
		const read = (request: PageRequest) =>
			this.#pace.read((call) => this.#subscribers.page({ ...filter, ...request }, call));
		for await (const one of iterate(read)) {
			if (emailKey(one.email) === key) return knownOf(one);
		}
		return null;
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
