/** Verified sender addresses: `from` of every message must be one of them. */
import { emailKey } from '../api/address.js';
import type { Senders } from '../api/capabilities.js';
import { senderFields } from '../api/senders.js';
import { checked, deleted, type EngineContext, written } from './context.js';
import { readPage } from './pages.js';

/** Verified senders of the database. */
export function createSenders(context: EngineContext): Senders {
	const { store, clock } = context;
	const { reads, writes } = store;
	return {
		page: (request) =>
			readPage(context, request, { path: '/ext/senders/' }, (page) => reads.pageSenders(page)),
		create: async (body) => {
			const { email } = checked(senderFields.parse(body, 'create'));
			return written(await writes.createSender({ email, email_key: emailKey(email), now: clock.now() }));
		},
		delete: async (id) => deleted(await writes.deleteSender({ id })),
	};
}
