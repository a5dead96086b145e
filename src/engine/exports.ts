/** Reading all subscribers of a list by key. */

import { invalid } from '../api/errors.js';
import type { Exports } from '../api/exports.js';
import { texts } from '../api/schema/texts.js';
import { type EngineContext, found } from './context.js';

const maxSlice = 1000;

/** Slices of the database's lists. */
export function createExports({ store }: Pick<EngineContext, 'store'>): Exports {
	return {
		slice: async (list_id, { after, limit: wanted, ...filter }) => {
			const limit = Math.min(atLeast(1, 'limit', wanted), maxSlice);
			const from = atLeast(0, 'after', after);
			const results = found(await store.reads.sliceSubscribers({ list_id, after: from, limit, filter }));
			return { results, next: results.length < limit ? null : (results.at(-1)?.id ?? null) };
		},
	};
}

function atLeast(least: number, name: string, value: number): number {
	if (Number.isSafeInteger(value) && value >= least) return value;
	throw invalid({ [name]: [{ code: 'invalid', message: texts.integer }] });
}
