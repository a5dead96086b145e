/** Erasing persons, and lifting erasures. */
import { type EmailKey, parseAddress } from '../api/address.js';
import { invalid } from '../api/errors.js';
import type { Erasures } from '../api/people.js';
import { texts } from '../api/schema/texts.js';
import { deleted, type EngineContext } from './context.js';

/** The key created with the first erasure; each database has one. */
const firstKeyId = 1;

/** Erasures of the database. */
export function createErasures({
	store,
	clock,
	newSecret,
}: Pick<EngineContext, 'store' | 'clock' | 'newSecret'>): Erasures {
	const { writes } = store;
	return {
		erase: async (email) =>
			writes.erasePerson({
				email_key: keyOf(email),
				fresh: { id: firstKeyId, secret: newSecret() },
				now: clock.now(),
			}),
		lift: async (email) => deleted(await writes.liftErasure({ email_key: keyOf(email) })),
	};
}

function keyOf(email: string): EmailKey {
	const address = parseAddress(email);
	if (address === null) {
		throw invalid({ email: [{ code: 'invalid', message: texts.email }] });
	}
	return address.key;
}
