/**
 * Who is in a list, for a plan that writes nothing: asked address by address while that is cheaper, then read once,
 * page by page, and kept as hashes. Both memory and requests are bounded: what can neither be kept nor be asked for
 * stays unchecked, since a plan must not cost a service more than the import.
 */
import { emailKey } from '../../../../api/address.js';
import { inOrder } from '../../../../jobs/foreign/pace.js';
import { walk } from '../../../walk.js';
import type { Subscribers } from '../lookup.js';
import type { PlannedRow } from './forecast.js';
import { People, type Standing, standingOf } from './people.js';

/** `null`: nobody. `unchecked`: the questions were used up before this row. */
export type Found = Standing | null | 'unchecked';

export interface StandingOptions {
	signal: AbortSignal;
	/** Columns of the import. */
	targets: readonly string[];
	/** Requests in flight. */
	concurrency: number;
	/** Addresses that are asked for at most, and pages that are read at most. */
	maxRequests: number;
	/** What may be kept, in bytes (64 MiB). */
	maxKeptBytes?: number;
}

const pageSize = 1_000;
/** A page costs as much as so many questions. */
const questionsAPage = 20;

export class Standings {
	readonly #subscribers: Subscribers;
	readonly #options: StandingOptions;
	#people: People | null = null;
	/** Questions after which the list is read; infinite where it cannot be kept. */
	#patience: number | null = null;
	#asked = 0;

	constructor(subscribers: Subscribers, options: StandingOptions) {
		this.#subscribers = subscribers;
		this.#options = options;
	}

	/** One entry a row, in order. Throws what the service says. */
	async find(rows: readonly PlannedRow[]): Promise<Found[]> {
		this.#patience ??= await this.#measure();
		if (this.#people === null && this.#asked + rows.length > this.#patience)
			this.#people = await this.#read();
		const people = this.#people;
		if (people !== null) return rows.map(({ key }) => people.find(key));
		const found = new Array<Found>(rows.length).fill('unchecked');
		const allowed = Math.max(0, Math.min(rows.length, this.#options.maxRequests - this.#asked));
		this.#asked += allowed;
		await inOrder(allowed, this.#options.concurrency, async (index) => {
			const row = rows[index];
			if (row !== undefined) found[index] = await this.#ask(row);
		});
		return found;
	}

	async #measure(): Promise<number> {
		const { signal, targets, maxRequests, maxKeptBytes = 64 * 1024 * 1024 } = this.#options;
		const { count, next, results } = await this.#subscribers.page({ page_size: pageSize }, { signal });
		// A deployment answers as many a page as it likes.
		const pages = next === null ? 1 : Math.ceil(count / Math.max(1, results.length));
		const fits = People.bytesFor(count, targets.length) <= maxKeptBytes && pages <= maxRequests;
		return fits ? Math.min(maxRequests, pages * questionsAPage) : Number.POSITIVE_INFINITY;
	}

	async #read(): Promise<People> {
		const found = walk(this.#subscribers, {}, { signal: this.#options.signal });
		let people: People | null = null;
		for await (const one of found) {
			people ??= new People(found.count() ?? 0, this.#options.targets);
			people.add(one);
		}
		return people ?? new People(0, this.#options.targets);
	}

	/** The filter may heed case elsewhere, or be ignored: what is answered is compared once more. */
	async #ask({ email, key }: PlannedRow): Promise<Standing | null> {
		for (const text of new Set([email, email.toLowerCase()])) {
			const found = walk(this.#subscribers, { email__exact: text }, { signal: this.#options.signal });
			for await (const one of found) if (emailKey(one.email) === key) return standingOf(one);
		}
		return null;
	}
}
