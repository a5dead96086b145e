/** Where a mailing stands, as the entries of its ledger add up; the same on every run that reads them. */
import type { AcceptCounts, Ack, MailingStatus } from '../../../api/capabilities.js';
import { type SeatCounts, Seats } from '../seats.js';
import { type Item, type MailingEntry, type MailingIdentity, type OutcomeEntry, seatsOf } from './entries.js';

/** Memory: one byte a recipient, and one answer of a batch. */
export class MailingBook {
	readonly seats = new Seats();
	identity: MailingIdentity | null = null;
	state: MailingStatus['state'] = 'staged';
	/** What was found of the recipients. */
	counts: AcceptCounts = noCounts();
	/** Rows of a file acknowledged. */
	position = 0;
	/** No further row comes. */
	isComplete = false;
	/** The last answer to a batch; null before the first. */
	lastAck: { first: number; ack: Ack<AcceptCounts> } | null = null;
	/** The list that was walked or is being walked; null where rows come from a file. */
	list: { id: number; isWhole: boolean } | null = null;

	/** Takes an entry that is durable. */
	apply(entry: MailingEntry): void {
		switch (entry.kind) {
			case 'mailing':
				this.identity = entry;
				return;
			case 'batch':
				this.#stage(entry.items, entry.ack.counts);
				this.position = entry.ack.position;
				this.lastAck = { first: entry.first, ack: entry.ack };
				return;
			case 'list':
				this.#stage(entry.items, entry.counts);
				this.list = { id: entry.list_id, isWhole: entry.isLast };
				return;
			case 'anew':
				this.#clear();
				return;
			case 'complete':
				this.isComplete = true;
				return;
			case 'released':
			case 'canceled':
				this.state = entry.kind;
				return;
			case 'intent':
				for (const seat of entry.seats) this.seats.set(seat, 'intent');
				return;
			case 'outcome':
				this.#settle(entry);
		}
	}

	/** To be called once everything an earlier run wrote is in: what it was doing when it ended, nobody knows. */
	closeEarlierRuns(): void {
		this.seats.turn('intent', 'unknown');
	}

	#stage(items: readonly Item[], counts: AcceptCounts): void {
		this.seats.add(items.reduce((sum, item) => sum + seatsOf(item), 0));
		this.counts = sumOf(this.counts, counts);
	}

	#clear(): void {
		this.seats.clear();
		this.counts = noCounts();
		this.position = 0;
		this.lastAck = null;
		this.list = null;
	}

	#settle({ seats, as }: OutcomeEntry): void {
		for (const seat of seats) this.seats.set(seat, as);
	}
}

/**
 * The messages of a mailing in the words for messages: what the service took is `sent` as far as this side is
 * concerned, `uncertain` is what nobody knows of, and whatever it made no message for is `canceled`.
 */
export function messagesOf(
	{ waiting, intent, accepted, suppressed, failed, unknown }: Readonly<SeatCounts>,
	state: MailingStatus['state'],
): MailingStatus['messages'] {
	const open = waiting + intent;
	const by = {
		staged: state === 'staged' ? open : 0,
		queued: state === 'released' ? open : 0,
		sent: accepted,
		failed,
		uncertain: unknown,
		canceled: suppressed + (state === 'canceled' ? open : 0),
	};
	return Object.fromEntries(Object.entries(by).filter(([, count]) => count > 0));
}

function noCounts(): AcceptCounts {
	return { staged: 0, suppressed: 0, rejected: 0 };
}

function sumOf(a: AcceptCounts, b: AcceptCounts): AcceptCounts {
	return {
		staged: a.staged + b.staged,
		suppressed: a.suppressed + b.suppressed,
		rejected: a.rejected + b.rejected,
	};
}
