import type { Call } from './api.js';
import { DeletedMessages, MessageDetail, Subscriber, type WireDateTime } from './records.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';
import { Suppression } from './suppressions.js';

const ListedSubscriber = t.record({ ...Subscriber.keys, list_id: t.needed(t.id), list_name: t.text });
export type ListedSubscriber = Infer<typeof ListedSubscriber>;

const LeftOut = t.record({
	campaign: t.needed(t.uuid),
	key: t.needed(t.text),
	state: t.typed<'staged' | 'released' | 'canceled'>(t.text),
	date_created: t.moment,
	code: t.needed(t.text),
	error: t.orNull(t.text),
});
export type LeftOut = Infer<typeof LeftOut>;

export const Person = t.component('Person', {
	email: t.needed(t.text),
	subscribers: t.needed(t.listOf(ListedSubscriber)),
	suppressions: t.needed(t.listOf(Suppression)),
	date_erased: t.orNull(t.moment),
	left_out: t.needed(t.listOf(LeftOut)),
	copies: t.needed(t.listOf(t.uuid)),
	date_sender: t.orNull(t.moment),
	messages: t.needed(t.count),
	old_messages: t.count,
	deleted: t.optional(DeletedMessages),
	is_known: t.needed(t.flag),
});
export type Person = Infer<typeof Person>;

const Visit = t.record({
	type: t.text,
	at: t.moment,
	url: t.orNull(t.text),
	machine: t.flag,
	ip: t.orNull(t.text),
	user_agent: t.orNull(t.text),
	smtp_code: t.orNull(t.text),
	diagnostic: t.orNull(t.text),
});
export type Visit = Infer<typeof Visit>;

const PersonDelivery = t.record({
	id: t.uuid,
	webhook_id: t.id,
	type: t.text,
	state: t.text,
	date_created: t.moment,
	payload: t.text,
});
export type PersonDelivery = Infer<typeof PersonDelivery>;

const PersonMessage = t.record({
	...MessageDetail.keys,
	variables: t.dictOf(t.text),
	visits: t.needed(t.listOf(Visit)),
	webhook_deliveries: t.listOf(PersonDelivery),
});
export type PersonMessage = Infer<typeof PersonMessage>;

export const PersonMessages = t.named('PersonMessages', t.sliceOf(PersonMessage, t.integer));
export type PersonMessages = Infer<typeof PersonMessages>;

export interface People {
	get(email: string, call?: Call): Promise<Person>;
	messages(
		email: string,
		request: { since?: WireDateTime; before?: number; limit: number },
		call?: Call,
	): Promise<PersonMessages>;
}

export const Erasure = t.component('Erasure', {
	subscribers: t.needed(t.count),
	messages: t.needed(t.count),
	canceled: t.count,
	suppressions: t.count,
});
export type Erasure = Infer<typeof Erasure>;

/** Creating, moving or importing a subscriber with an erased address fails with `erased`. */
export interface Erasures {
	erase(email: string, call?: Call): Promise<Erasure>;
	/** Allows the address again, but restores no data. Throws `not_found`. */
	lift(email: string, call?: Call): Promise<void>;
}
