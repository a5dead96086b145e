/** Reading all subscribers of a list by key. */

import { invalid } from '../api/errors.js';
import type { ExportRequest, Exports } from '../api/exports.js';
import { Encoded, type EncodedReads } from '../api/exports.js';
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
			const slice = found(await reads.encodeSubscriberSlice(command));
			const next = slice.length < command.limit ? null : slice.last;
			call?.onNext?.(next);
			return { results: new Encoded(slice), next };
		},
	};
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
