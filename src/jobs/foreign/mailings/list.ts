/** Stages the active subscribers of a list: walked page by page, since such a service cannot be told to. */
import type { Api, PageRequest } from '../../../api/api.js';
import type { AcceptCounts, Ack, Reject } from '../../../api/capabilities.js';
import { ApiError } from '../../../api/errors.js';
import { iterate } from '../../../api/pages.js';
import type { Subscriber } from '../../../api/records.js';
import type { Item } from './entries.js';
import type { MailingFile } from './file.js';
import { checkSubscriber } from './rows.js';
import { assertStaged, countsOf, wantedOf } from './staging.js';

const pageSize = 1_000;
const maxListed = 100;

/**
 * A walk that was broken off begins again: nobody can tell where a list that changes meanwhile stood. Whoever is met
 * twice, or stands there twice, gets one mail. Throws `not_found`, and `conflict` for a mailing that has other rows.
 */
export async function addList(
	file: MailingFile,
	listId: number,
	{ api, signal }: { api: Api; signal: AbortSignal | undefined },
): Promise<Ack<AcceptCounts>> {
	const { book } = file;
	if (book.position > 0 || (book.list !== null && book.list.id !== listId))
		throw new ApiError('conflict', 'This mailing has other recipients.');
	if (book.list?.isWhole === true) return ackOf(file);
	assertStaged(file);
	if (book.list !== null) {
		await file.write([{ kind: 'anew' }]);
		file.forgetAddresses();
	}
	try {
		await walkList(file, listId, { api, signal });
	} catch (error) {
		// Some were met and not written.
		file.forgetAddresses();
		throw error;
	}
	return ackOf(file);
}

async function walkList(
	file: MailingFile,
	listId: number,
	{ api, signal }: { api: Api; signal: AbortSignal | undefined },
): Promise<void> {
	const call = signal === undefined ? {} : { signal };
	const { email_reason } = await api.lists.get(listId, call);
	const subscribers = api.subscribers(listId);
	const readPage = (request: PageRequest) => {
		signal?.throwIfAborted();
		return subscribers.page({ is_active: true, ...request }, call);
	};
	const wanted = wantedOf(file);
	const addresses = await file.addresses();
	const take = (one: Subscriber): Item[] => {
		// A deployment may ignore the filter.
		if (!one.is_active) return [];
		const { key, item } = checkSubscriber(one, email_reason, wanted);
		return key === null || addresses.add(key) ? [item] : [];
	};
	let items: Item[] = [];
	for await (const one of iterate(readPage, { page_size: pageSize })) {
		items.push(...take(one));
		if (items.length < pageSize) continue;
		await file.write([pageOf(listId, items, 'more')]);
		items = [];
	}
	await file.write([pageOf(listId, items, 'last')]);
}

function pageOf(list_id: number, items: readonly Item[], which: 'more' | 'last') {
	const rejects = items.flatMap((item, row): Reject[] =>
		'code' in item ? [{ row, code: item.code, error: item.error }] : [],
	);
	const isLast = which === 'last';
	return { kind: 'list', list_id, counts: countsOf(items), rejects, items, isLast } as const;
}

/** What the whole list came to; at most 100 rejects are listed. */
async function ackOf(file: MailingFile): Promise<Ack<AcceptCounts>> {
	const rejects: Reject[] = [];
	if (file.book.counts.rejected > 0) {
		for await (const entry of file.entries()) {
			if (entry.kind === 'anew') rejects.splice(0);
			if (entry.kind === 'list') rejects.push(...entry.rejects.slice(0, maxListed - rejects.length));
		}
	}
	return { position: file.book.position, counts: file.book.counts, rejects };
}
