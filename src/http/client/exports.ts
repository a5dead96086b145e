/** Slices of a list, each asked for while the one before it is read. */
import { setImmediate } from 'node:timers/promises';
import type { Extensions } from '../../api/capabilities.js';
import { type SubscriberSlice, tupleKeys } from '../../api/exports.js';
import { isRecord } from '../../api/json.js';
import type { Subscriber } from '../../api/records.js';
import { headerNames } from '../errors.js';
import { type Check, decode, every, listOf, record, within } from './decode.js';
import { encodeQuery } from './encode.js';
import { type Endpoint, type OperationRequest, requestOperation, type Success } from './request.js';
import { mendMeta, subscriberCheck } from './resources.js';

/** Slices of records. */
export function exportsOf(endpoint: Endpoint): Extensions['exports'] {
	const check = every(within('results', listOf(subscriberCheck)), record({ next: 'position' }));
	return {
		slice: async (list_id, request, call) => {
			const what: OperationRequest = {
				operation: 'ext.exports.slice',
				values: { list_id },
				query: encodeQuery({ ...request }),
				call,
			};
			const slice = decode<SubscriberSlice>(await requestSlice(endpoint, what), check);
			return { ...slice, results: slice.results.map(mendMeta) };
		},
	};
}

/** Slices of tuples. */
export function tuplesOf(endpoint: Endpoint): Extensions['tuples'] {
	return {
		slice: async (list_id, request, call) => {
			const what: OperationRequest = {
				operation: 'ext.tuples.slice',
				values: { list_id },
				query: encodeQuery({ ...request }),
				call,
			};
			const tuple = tupleOf(tupleKeys[request.keys]);
			const check = every(within('results', listOf(tuple)), record({ next: 'position' }));
			return decode(await requestSlice(endpoint, what), check);
		},
	};
}

function tupleOf(keys: readonly (keyof Subscriber)[]): Check {
	const metaAt = keys.indexOf('meta');
	return (value) => {
		if (!Array.isArray(value) || value.length !== keys.length) return `is no list of ${keys.length} values`;
		return isRecord(value[metaAt]) ? null : 'has a meta that is no object';
	};
}

/** Reports what follows the slice before it is read. */
async function requestSlice(endpoint: Endpoint, what: OperationRequest): Promise<Success> {
	const success = await requestOperation(endpoint, what);
	const next = success.answer.headers[headerNames.next.toLowerCase()];
	if (what.call?.onNext !== undefined && next !== undefined && /^\d{1,15}$/.test(next)) {
		what.call.onNext(Number(next));
		// The request for it leaves before this answer is read: undici looks at an idle connection for a turn first.
		for (let turn = 0; turn < 2; turn += 1) await setImmediate();
	}
	return success;
}
