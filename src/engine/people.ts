/** The data of the database on the person behind an address. */
import { type EmailKey, parseAddress } from '../api/address.js';
import { type Micros, parseDateTime } from '../api/datetime.js';
import { invalid } from '../api/errors.js';
import type { People } from '../api/people.js';
import { texts } from '../api/schema/texts.js';
import type { EngineContext } from './context.js';

const maxSlice = 100;

/** People of the database. */
export function createPeople({ store, clock }: Pick<EngineContext, 'store' | 'clock'>): People {
	const { reads } = store;
	return {
		get: async (email) => reads.getPerson({ email_key: keyOf(email) }),
		messages: async (email, { since, before, limit }) => {
			if (!Number.isSafeInteger(limit) || limit < 1) refuse('limit', texts.integer);
			if (before !== undefined && !Number.isSafeInteger(before)) refuse('before', texts.integer);
			return reads.slicePersonMessages({
				email_key: keyOf(email),
				since_at: since === undefined ? null : timeOf(since),
				before: before ?? null,
				limit: Math.min(limit, maxSlice),
				now: clock.now(),
			});
		},
	};
}

function keyOf(email: string): EmailKey {
	return parseAddress(email)?.key ?? refuse('email', texts.email);
}

function timeOf(text: string): Micros {
	return parseDateTime(text) ?? refuse('since', texts.datetime);
}

function refuse(field: string, message: string): never {
	throw invalid({ [field]: [{ code: 'invalid', message }] });
}
