import type { Call } from '../api/api.js';
import {
	Encoded,
	type EncodedReads,
	type EncodedSlice,
	type EncodedSubscribers,
	type ExportRequest,
	type Exports,
	type SubscriberTuple,
	type TupleKeys,
	type Tuples,
	tupleKeys,
} from '../api/exports.js';
import { isRecord } from '../api/json.js';
import { texts } from '../api/schema/texts.js';
import { damaged } from '../store/errors.js';
import type { Command } from '../store/operations.js';
import { type EngineContext, found, refuse } from './context.js';
import { readSubscribers } from './subscribers.js';

const maxSlice = 1000;

export function createExports({ store }: Pick<EngineContext, 'store'>): Exports {
	return {
		slice: async (list_id, request) => {
			const command = checkedRequest(list_id, request);
			const results = found(await store.reads.sliceSubscribers(command));
			return { results, next: results.length < command.limit ? null : (results.at(-1)?.id ?? null) };
		},
	};
}

export function createTuples({ store }: Pick<EngineContext, 'store'>): Tuples {
	return {
		slice: async (list_id, { keys, ...request }, call) => {
			const command = { ...checkedRequest(list_id, request), keys, isChecked: true } as const;
			const read = found(await store.reads.encodeSubscriberTuples(command));
			const next = nextOf(read, command.limit);
			if (call?.onNext !== undefined) {
				call.onNext(next);
				// Let the caller request the next slice now. Another thread reads that slice while this thread parses rows.
				await new Promise((resolve) => setImmediate(resolve));
			}
			return { results: parseTuples(read, keys), next };
		},
	};
}

function parseTuples({ json, length }: EncodedSubscribers, keys: TupleKeys): SubscriberTuple[] {
	const { length: width } = tupleKeys[keys];
	const metaAt = tupleKeys[keys].indexOf('meta');
	const isWhole = (tuple: SubscriberTuple) => tuple.length === width && isRecord(tuple[metaAt]);
	try {
		const tuples = JSON.parse(json) as SubscriberTuple[];
		if (tuples.length === length && tuples.every(isWhole)) return tuples;
	} catch (cause) {
		throw damaged(cause);
	}
	throw damaged(new TypeError('a stored meta is not an object'));
}

export function createEncodedReads(context: EngineContext): EncodedReads {
	const { reads } = context.store;
	return {
		page: (list_id, request) =>
			readSubscribers(context, list_id, request, async (command) => {
				const page = await reads.encodeSubscriberPage(command);
				return page === null ? null : { count: page.count, results: new Encoded(page.results) };
			}),
		slice: async (list_id, request, call) => {
			const command = checkedRequest(list_id, request);
			return encodedSlice(await reads.encodeSubscriberSlice(command), command, call);
		},
		tuples: async (list_id, { keys, ...request }, call) => {
			const command = { ...checkedRequest(list_id, request), keys };
			return encodedSlice(await reads.encodeSubscriberTuples(command), command, call);
		},
	};
}

function encodedSlice(
	read: EncodedSubscribers | null,
	{ limit }: { limit: number },
	call: Call | undefined,
): EncodedSlice {
	const slice = found(read);
	const next = nextOf(slice, limit);
	call?.onNext?.(next);
	return { results: new Encoded(slice), next };
}

function nextOf({ length, last }: EncodedSubscribers, limit: number): number | null {
	return length < limit ? null : last;
}

function checkedRequest(
	list_id: number,
	{ after, limit, ...filter }: ExportRequest,
): Command<'sliceSubscribers'> {
	const most = Math.min(atLeast(1, 'limit', limit), maxSlice);
	return { list_id, after: atLeast(0, 'after', after), limit: most, filter };
}

function atLeast(least: number, name: string, value: number): number {
	if (Number.isSafeInteger(value) && value >= least) return value;
	return refuse(name, texts.integer);
}
