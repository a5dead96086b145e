/** Reading all subscribers of a list by key. */

import type { Call } from '../api/api.js';
import { invalid } from '../api/errors.js';
import {
	Encoded,
	type EncodedReads,
	type EncodedSlice,
	type EncodedSubscribers,
	type ExportRequest,
	type Exports,
	type Tuples,
} from '../api/exports.js';
import { texts } from '../api/schema/texts.js';
import type { Command } from '../store/operations.js';
import { type EngineContext, found } from './context.js';
import { readSubscribers } from './subscribers.js';

const maxSlice = 1000;

/** Slices of the database's lists. */
export function createExports({ store }: Pick<EngineContext, 'store'>): Exports {
	return {
		slice: async (list_id, request) => {
			const command = checkedRequest(list_id, request);
			const results = found(await store.reads.sliceSubscribers(command));
			return { results, next: results.length < command.limit ? null : (results.at(-1)?.id ?? null) };
		},
	};
}

/** The same as tuples. */
export function createTuples({ store }: Pick<EngineContext, 'store'>): Tuples {
	return {
		slice: async (list_id, { keys, ...request }) => {
			const command = { ...checkedRequest(list_id, request), keys };
			const { tuples, last } = found(await store.reads.sliceSubscriberTuples(command));
			return { results: tuples, next: tuples.length < command.limit ? null : last };
		},
	};
}

/** The reads of a server, which hands them on as they are. */
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
	const next = slice.length < limit ? null : slice.last;
	call?.onNext?.(next);
	return { results: new Encoded(slice), next };
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
	throw invalid({ [name]: [{ code: 'invalid', message: texts.integer }] });
}
