/** What is told of mailings: each in a line, and the results of one page by page. */
import { invalid } from '../../../api/errors.js';
import type { Mailing, MailingResult, MailingResults, ResultsRequest } from '../../../api/mailings.js';
import type { Page } from '../../../api/records.js';
import type { MailingBook } from './book.js';
import type { MailingIdentity } from './entries.js';
import type { MailingShelf } from './shelf.js';
import { isOfRequests } from './staging.js';

const defaultPageSize = 100;

/** Jobs of the deployment; `key`: the one of that name, or none. Only those of the page are read. */
export async function pageOfMailings(
	shelf: MailingShelf,
	{ key, page = 1, page_size = defaultPageSize }: { key?: string; page?: number; page_size?: number },
): Promise<Page<Mailing>> {
	const keys = key === undefined ? await shelf.keys() : [key];
	const end = page * page_size;
	const books = await inTurn(keys.slice(end - page_size, end), (one) => shelf.look(one));
	const results = books.flatMap((book) => (book?.identity == null ? [] : [describe(book, book.identity)]));
	return {
		count: key === undefined ? keys.length : results.length,
		next: end < keys.length ? `?page=${page + 1}` : null,
		previous: page > 1 ? `?page=${page - 1}` : null,
		results,
	};
}

const maxResults = 1_000;

/**
 * Reads results once, however many pages they are asked for in: `after` is where the last page ended. Asked for
 * anything else, it begins anew.
 */
export class ResultsCursor {
	#reading: AsyncGenerator<MailingResult, void, undefined> | null = null;
	#only: ResultsRequest['only'];
	#at = 0;

	/** `begin` reads from the first result on. Throws `invalid` for a limit that is none. */
	async read(
		begin: () => AsyncGenerator<MailingResult, void, undefined>,
		{ after = 0, limit = maxResults, only }: ResultsRequest,
	): Promise<MailingResults> {
		if (!Number.isInteger(limit) || limit < 1)
			throw invalid({ limit: [{ code: 'invalid', message: 'A valid integer is required.' }] });
		if (this.#reading === null || after !== this.#at || only !== this.#only) {
			await this.#reading?.return();
			this.#reading = begin();
			this.#only = only;
			this.#at = 0;
			while (this.#at < after && (await this.#next()) !== null);
		}
		const results: MailingResult[] = [];
		while (results.length < Math.min(limit, maxResults)) {
			const result = await this.#next();
			if (result === null) {
				this.#reading = null;
				return { results, next: null };
			}
			results.push(result);
		}
		return { results, next: this.#at };
	}

	async #next(): Promise<MailingResult | null> {
		for (;;) {
			const next = await this.#reading?.next();
			if (next === undefined || next.done === true) return null;
			if (this.#only === 'findings' && next.value.state !== 'rejected') continue;
			this.#at += 1;
			return next.value;
		}
	}
}

function describe(book: MailingBook, { id, key, spec, date_created }: MailingIdentity): Mailing {
	const { state, counts, position, isComplete, list } = book;
	const shared = isOfRequests(spec) ? null : spec;
	return {
		id,
		key,
		state,
		counts,
		position,
		is_complete: isComplete || list?.isWhole === true,
		type: shared?.type ?? 'TRANSACTIONAL',
		subject: shared?.subject ?? null,
		list_id: shared?.list_id ?? null,
		source: spec.source ?? null,
		requests: isOfRequests(spec),
		date_created,
	};
}

async function inTurn<A, B>(all: readonly A[], work: (one: A) => Promise<B>): Promise<B[]> {
	const done: B[] = [];
	for (const one of all) done.push(await work(one));
	return done;
}
