import { type EmailKey, parseAddress } from '../api/address.js';
import { formatDateTime, parseDateTime } from '../api/datetime.js';
import type { Erasures, People } from '../api/people.js';
import type { DeletedMessages } from '../api/records.js';
import { texts } from '../api/schema/texts.js';
import { deleted, type EngineContext, refuse, type StoreContext } from './context.js';

const maxSlice = 100;

export function createPeople(context: StoreContext): People {
	const { store, clock } = context;
	const { reads } = store;
	return {
		get: async (email) => {
			const email_key = keyOf(email);
			const [person, deleted] = await Promise.all([reads.getPerson({ email_key }), readDeleted(context)]);
			return { ...person, ...deleted };
		},
		messages: async (email, { since, before, limit }) => {
			if (!Number.isSafeInteger(limit) || limit < 1) refuse('limit', texts.integer);
			if (before !== undefined && !Number.isSafeInteger(before)) refuse('before', texts.integer);
			return reads.slicePersonMessages({
				email_key: keyOf(email),
				since_at: since === undefined ? null : (parseDateTime(since) ?? refuse('since', texts.datetime)),
				before: before ?? null,
				limit: Math.min(limit, maxSlice),
				now: clock.now(),
			});
		},
	};
}

export async function readDeleted({ store, clock }: StoreContext): Promise<{ deleted?: DeletedMessages }> {
	const found = await store.reads.deletedMessages({ now: clock.now() });
	if (found === null) return {};
	const { before_at, keep_messages } = found;
	return { deleted: { before: formatDateTime(before_at), keep_messages } };
}

function keyOf(email: string): EmailKey {
	return parseAddress(email)?.key ?? refuse('email', texts.email);
}

const firstKeyId = 1;

export function createErasures({ store, clock, newSecret }: EngineContext): Erasures {
	const { writes } = store;
	return {
		erase: async (email) => {
			const fresh = { id: firstKeyId, secret: newSecret() };
			return writes.erasePerson({ email_key: keyOf(email), fresh, now: clock.now() });
		},
		lift: async (email) => deleted(await writes.liftErasure({ email_key: keyOf(email) })),
	};
}
