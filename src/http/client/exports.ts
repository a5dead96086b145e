/** Slices of a list, each asked for while the one before it is read. */
import { setImmediate } from 'node:timers/promises';
import type { Call } from '../../api/api.js';
import type { Extensions } from '../../api/capabilities.js';
import { type ExportRequest, type SubscriberSlice, tupleKeys } from '../../api/exports.js';
import { isRecord } from '../../api/json.js';
import type { Subscriber } from '../../api/records.js';
import { headerNames } from '../errors.js';
import { type Check, decode, every, listOf, record, within } from './decode.js';
import { encodeQuery } from './encode.js';
import { type Endpoint, requestOperation, type Success } from './request.js';
import { mendMeta, subscriberCheck } from './resources.js';

/** Slices of records. */
export function exportsOf(endpoint: Endpoint): Extensions['exports'] {
	const check = every(within('results', listOf(subscriberCheck)), record({ next: 'position' }));
	return {
		slice: async (list_id, request, call) => {
			const success = await requestSlice(endpoint, 'ext.exports.slice', { list_id, request, call });
			const slice = decode<SubscriberSlice>(success, check);
			return { ...slice, results: slice.results.map(mendMeta) };
		},
	};
}

/** Slices of tuples. */
export function tuplesOf(endpoint: Endpoint): Extensions['tuples'] {
	return {
		slice: async (list_id, request, call) => {
			const success = await requestSlice(endpoint, 'ext.tuples.slice', { list_id, request, call });
			const tuple = tupleOf(tupleKeys[request.keys]);
			const check = every(within('results', listOf(tuple)), record({ next: 'position' }));
			return decode(success, check);
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
async function requestSlice(
	endpoint: Endpoint,
	operation: 'ext.exports.slice' | 'ext.tuples.slice',
	{ list_id, request, call }: { list_id: number; request: ExportRequest; call: Call | undefined },
): Promise<Success> {
	const query = encodeQuery({ ...request });
	const success = await requestOperation(endpoint, { operation, values: { list_id }, query, call });
	const next = success.answer.headers[headerNames.next.toLowerCase()];
	if (call?.onNext !== undefined && next !== undefined && /^\d{1,15}$/.test(next)) {
		call.onNext(Number(next));
		// The request for it leaves before this answer is read: undici looks at an idle connection for a turn first.
		for (let turn = 0; turn < 2; turn += 1) await setImmediate();
	}
	return success;
}
