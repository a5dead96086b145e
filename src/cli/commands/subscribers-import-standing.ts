/**
 * Who is in a list, for a plan that writes nothing: asked address by address while that is cheaper, then read once and
 * kept, as long as the list is small enough to be kept. Memory is bounded either way; what bounds the requests is a
 * number of questions, since a plan must not cost a service as much as the import.
 */
import { type EmailKey, emailKey } from '../../api/address.js';
import { inOrder } from '../../jobs/foreign/pace.js';
import { walk } from '../walk.js';
import type { Subscribers } from './subscribers-common.js';
import type { PlannedRow, Standing } from './subscribers-import-forecast.js';

/** `null`: nobody. `unchecked`: the questions were used up before this row. */
export type Found = Standing | null | 'unchecked';

export interface StandingOptions {
	signal: AbortSignal;
	/** Requests in flight. */
	concurrency: number;
	/** Addresses that are asked for at most. */
	maxQuestions: number;
}

const pageSize = 1_000;
/** Some 500 bytes each. */
const maxKept = 50_000;

export class Standings {
	readonly #subscribers: Subscribers;
	readonly #options: StandingOptions;
	#kept: Map<EmailKey, Standing> | null = null;
	#size: { count: number; pages: number } | null = null;
	#asked = 0;

	constructor(subscribers: Subscribers, options: StandingOptions) {
		this.#subscribers = subscribers;
		this.#options = options;
	}

	/** One entry a row, in order. Throws what the service says. */
	async find(rows: readonly PlannedRow[]): Promise<Found[]> {
		const { count, pages } = await this.#measure();
		if (this.#kept === null && count <= maxKept && this.#asked + rows.length >= pages) await this.#keep();
		const kept = this.#kept;
		if (kept !== null) return rows.map(({ key }) => kept.get(key) ?? null);
		const found = new Array<Found>(rows.length).fill('unchecked');
		const allowed = Math.max(0, Math.min(rows.length, this.#options.maxQuestions - this.#asked));
		this.#asked += allowed;
		await inOrder(allowed, this.#options.concurrency, async (index) => {
			const row = rows[index];
			if (row !== undefined) found[index] = await this.#ask(row);
		});
		return found;
	}

	async #measure(): Promise<{ count: number; pages: number }> {
		if (this.#size !== null) return this.#size;
		const { signal } = this.#options;
		const { count, next, results } = await this.#subscribers.page({ page_size: pageSize }, { signal });
		// A deployment answers as many a page as it likes.
		const pages = next === null ? 1 : Math.ceil(count / Math.max(1, results.length));
		this.#size = { count, pages };
		return this.#size;
	}

	async #keep(): Promise<void> {
		const kept = new Map<EmailKey, Standing>();
		for await (const one of walk(this.#subscribers, {}, { signal: this.#options.signal })) {
			const { email, name, is_active, disable_reason, meta } = one;
			kept.set(emailKey(email), { email, name, is_active, disable_reason, meta });
		}
		this.#kept = kept;
	}

	/** The filter may heed case elsewhere, or be ignored: what is answered is compared once more. */
	async #ask({ email, key }: PlannedRow): Promise<Standing | null> {
		for (const text of new Set([email, email.toLowerCase()])) {
			const found = walk(this.#subscribers, { email__exact: text }, { signal: this.#options.signal });
			for await (const one of found) if (emailKey(one.email) === key) return one;
		}
		return null;
	}
}
