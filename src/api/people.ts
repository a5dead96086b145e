/** The person behind one address, all that is stored about it and its erasure: our extensions of the service document. */
import type { Call } from './api.js';
import type { DeletedMessages, MessageDetail, Subscriber, Uuid, WireDateTime } from './records.js';
import type { Suppression } from './suppressions.js';

/** A subscriber with the name of its list. */
export interface ListedSubscriber extends Subscriber {
	list_name: string;
}

/** A campaign that made no message for the address, and why. */
export interface LeftOut {
	/** The campaign's UUID. */
	campaign: Uuid;
	/** The name of the campaign. */
	key: string;
	state: 'staged' | 'released' | 'canceled';
	date_created: WireDateTime;
	/** `suppressed`, `missing_variable`, `invalid`, … */
	code: string;
	/** For people; null where the code says all. */
	error: string | null;
}

/** The stored data of an address, apart from its messages. */
export interface Person {
	/** In the form for comparison: lower case, the domain in punycode. */
	email: string;
	/** By list. */
	subscribers: ListedSubscriber[];
	/** By reason and list; those that have expired too. */
	suppressions: Suppression[];
	/** When the person was erased; null: never, or the erasure was lifted. */
	date_erased: WireDateTime | null;
	/** The newest first; at most 1,000. */
	left_out: LeftOut[];
	/** Messages that have the address as a copy or as the address for replies, the newest first; at most 1,000. */
	copies: Uuid[];
	/** Since when it is a verified sender; null: it is none. */
	date_sender: WireDateTime | null;
	/** The number of messages to the address. */
	messages: number;
	/** The number of deleted messages to the address whose links go on working. */
	old_messages: number;
	/** Older messages of all people; absent: none was deleted. */
	deleted?: DeletedMessages;
	/** False: nothing is stored under this address. */
	is_known: boolean;
}

/** One open, click, unsubscription or bounce with all that was recorded of it. */
export interface Visit {
	type: string;
	at: WireDateTime;
	/** The target of a click. */
	url: string | null;
	/** A program did it, not a person. */
	machine: boolean;
	ip: string | null;
	user_agent: string | null;
	smtp_code: string | null;
	diagnostic: string | null;
}

/** A webhook delivery about a message. */
export interface PersonDelivery {
	id: Uuid;
	webhook_id: number;
	type: string;
	state: string;
	date_created: WireDateTime;
	/** The body as it is sent. */
	payload: string;
}

/** A message with all that is stored about its recipient. */
export interface PersonMessage extends MessageDetail {
	/** The values of the recipient that the message was made with. */
	variables: Record<string, string>;
	/** Each event by itself; `events` counts them. */
	visits: Visit[];
	webhook_deliveries: PersonDelivery[];
}

/** `next`: the cursor to continue with; null at the end. */
export interface PersonMessages {
	results: PersonMessage[];
	next: number | null;
}

/** People by their address, without regard to its case. Throws `invalid` for a text that is not an address. */
export interface People {
	/** Also of an unknown address: `is_known` is false then. */
	get(email: string, call?: Call): Promise<Person>;
	/** Messages to the address, the newest first, created at `since` or later; at most 100 a call. */
	messages(
		email: string,
		request: { since?: WireDateTime; before?: number; limit: number },
		call?: Call,
	): Promise<PersonMessages>;
}

/** The result of an erasure: rows deleted or emptied. */
export interface Erasure {
	/** Subscribers deleted, in all lists. */
	subscribers: number;
	/** Messages whose address, variables and replies were emptied. */
	messages: number;
	/** How many of these were waiting and are not sent any more. */
	canceled: number;
	/** Suppressions deleted; the erasure replaces them. */
	suppressions: number;
}

/**
 * Erasures of persons. Throws `invalid` for a text that is not an address. An erased address gets no bulk mail, and
 * creating, moving or importing a subscriber with it is refused with the code `erased`.
 */
export interface Erasures {
	/** Also for an unknown address: all counts are 0, and the address is refused from then on. */
	erase(email: string, call?: Call): Promise<Erasure>;
	/** The address may be added again; erased data does not come back. Throws `not_found`. */
	lift(email: string, call?: Call): Promise<void>;
}
