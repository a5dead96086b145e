import type { Call, PageRequest } from './api.js';
import { type Page, Subscriber, type SubscriberFilter } from './records.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';

export const SubscriberSlice = t.named('SubscriberSlice', t.sliceOf(Subscriber, t.integer));
export type SubscriberSlice = Infer<typeof SubscriberSlice>;

export interface ExportRequest extends SubscriberFilter {
	after: number;
	limit: number;
}

export interface Exports {
	slice(listId: number, request: ExportRequest, call?: Call): Promise<SubscriberSlice>;
}

export type TupleKeys = 'imported' | 'all';

export const tupleKeys: Readonly<Record<TupleKeys, readonly (keyof Subscriber)[]>> = {
	imported: ['email', 'name', 'is_active', 'disable_reason', 'meta'],
	all: Object.keys(Subscriber.keys) as (keyof Subscriber)[],
};

export const tupleKeyNames: readonly TupleKeys[] = ['imported', 'all'];

export type SubscriberTuple = readonly unknown[];

interface TupleRequest extends ExportRequest {
	keys: TupleKeys;
}

export const TupleSlice = t.named('TupleSlice', t.sliceOf(t.typed<SubscriberTuple>(t.array), t.integer));
export type TupleSlice = Infer<typeof TupleSlice>;

/** Reading a million tuples takes half the time of reading a million records. */
export interface Tuples {
	slice(listId: number, request: TupleRequest, call?: Call): Promise<TupleSlice>;
}

/** Subscribers as JSON text from the database, so that the server creates no object per subscriber. */
export interface EncodedSubscribers {
	json: string;
	length: number;
	last: number | null;
}

export class Encoded {
	readonly json: string;
	readonly length: number;

	constructor({ json, length }: EncodedSubscribers) {
		this.json = json;
		this.length = length;
	}
}

export interface EncodedSlice {
	results: Encoded;
	next: number | null;
}

export interface EncodedReads {
	page(listId: number, request: PageRequest & SubscriberFilter): Promise<Page<Subscriber, Encoded>>;
	slice(listId: number, request: ExportRequest, call?: Call): Promise<EncodedSlice>;
	tuples(listId: number, request: TupleRequest, call?: Call): Promise<EncodedSlice>;
}
