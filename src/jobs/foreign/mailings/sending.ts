/** A released mailing goes out: which calls there are, what each says, and how it ended. */
import type { Api } from '../../../api/api.js';
import type { MailingSpec } from '../../../api/capabilities.js';
import { ApiError } from '../../../api/errors.js';
import type { SendRequest } from '../../../api/inputs.js';
import { createPace, type Sleep } from '../pace.js';
import type { SeatCounts } from '../seats.js';
import { type Group, groupItems, maxGroup } from './calls.js';
import { deliverGroups } from './delivery.js';
import type { MailingFile } from './file.js';
import { seatedItems } from './results.js';
import { contextOf } from './rows.js';
import { isOfRequests, wantedOf } from './staging.js';

/** How to deliver. */
export interface ForeignDelivery {
	/** Calls in flight, and so the most that a kill leaves unknown. */
	concurrency: number;
	/** Recipients a second; null = as fast as it goes. */
	rate: number | null;
	/** What an earlier run left unknown; `retry` may send it twice. */
	unknown: 'leave' | 'retry';
	/** Begins nothing new; what is in flight is waited for. */
	signal?: AbortSignal;
	onProgress?: (counts: Readonly<SeatCounts>) => void;
}

/** How a delivery ended: `error` null = nobody is waiting any more; else the signal's reason or an `ApiError`. */
export interface ForeignDelivered {
	counts: Readonly<SeatCounts>;
	error: unknown;
}

/** Throws `conflict` unless the mailing is released, and the system's error when the ledger cannot be written. */
export async function deliverMailing(
	api: Api,
	file: MailingFile,
	{ concurrency, rate, unknown, signal, onProgress, sleep }: ForeignDelivery & { sleep: Sleep },
): Promise<ForeignDelivered> {
	const { book } = file;
	if (book.state !== 'released') throw new ApiError('conflict', `This mailing is ${book.state}.`);
	const stop = signal === undefined ? {} : { signal };
	const pace = createPace({ ceiling: concurrency, sleep, ...stop });
	const error = await deliverGroups({
		book,
		write: file.write,
		groups: groupsOf(file, { rate, unknown }),
		send: (request) => pace.write((call) => api.send(request, call)),
		concurrency,
		rate,
		sleep,
		...stop,
		onProgress: () => onProgress?.(book.seats.counts),
	});
	return { counts: book.seats.counts, error };
}

function groupsOf(
	file: MailingFile,
	{ rate, unknown }: Pick<ForeignDelivery, 'rate' | 'unknown'>,
): AsyncGenerator<Group, void, undefined> {
	const { seats } = file.book;
	const wanted = wantedOf(file);
	const shared = isOfRequests(file.identity.spec) ? null : sharedOf(file.identity.spec);
	return groupItems(seatedItems(file.entries), {
		// A call is one burst: of no more than a second's worth.
		max: rate === null ? maxGroup : Math.min(maxGroup, Math.max(1, Math.floor(rate))),
		isWanted: (seat) => {
			const state = seats.get(seat);
			return state === 'waiting' || (state === 'unknown' && unknown === 'retry');
		},
		requestFor: (own) => {
			if (shared === null) throw new Error('requests bring their own content');
			const context = contextOf(own, wanted);
			return Object.keys(context).length === 0 ? shared : { ...shared, context };
		},
	});
}

/** What is said to all, without what such a service does not know. */
function sharedOf(spec: MailingSpec): Omit<SendRequest, 'to'> {
	const { list_id: _list, strict_vars: _strict, campaign_unique_id: _campaign, ...rest } = spec;
	const { source: _source, context: _context, ...shared } = rest;
	return shared;
}
