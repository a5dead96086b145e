import { emailKey } from '../api/address.js';
import type { Api } from '../api/api.js';
import { type SenderInput, senderFields } from '../api/inputs.js';
import { checkedBeside, crud, type EngineContext } from './context.js';
import { notUnique } from './rules/subscribers.js';

export function createSenders(context: EngineContext): Api['senders'] {
	const { store, clock } = context;
	const { reads, writes } = store;
	const fieldErrors =
		(id: number | null) =>
		async ({ from_email }: Partial<SenderInput>) => {
			if (from_email === undefined) return {};
			const taken = await reads.findSender({ email_key: emailKey(from_email) });
			return taken === null || taken.id === id ? {} : notUnique('from_email');
		};
	return crud(context, {
		path: '/senders/',
		page: reads.pageSenders,
		get: (id: number) => reads.getSender({ id }),
		create: async (body) => {
			const input = await checkedBeside(senderFields.parse(body, 'create'), fieldErrors(null));
			return writes.createSender({ ...input, email_key: emailKey(input.from_email), now: clock.now() });
		},
		change: async (id, body, mode) => {
			const patch = await checkedBeside(senderFields.parse(body, mode), fieldErrors(id));
			const { from_email } = patch;
			return writes.patchSender({
				...{ id, patch },
				...(from_email !== undefined && { email_key: emailKey(from_email) }),
			});
		},
		delete: (id) => writes.deleteSender({ id }),
	});
}
