import { emailKey } from '../api/address.js';
import type { Api } from '../api/api.js';
import { type SenderInput, senderFields } from '../api/inputs.js';
import { checkedBeside, deleted, type EngineContext, found, written } from './context.js';
import { readPage } from './pages.js';
import { notUnique } from './rules/errors.js';

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
	const change = async (id: number, input: unknown, mode: 'replace' | 'patch') => {
		found(await reads.getSender({ id }));
		const patch = await checkedBeside(senderFields.parse(input, mode), fieldErrors(id));
		const { from_email } = patch;
		const key = from_email !== undefined && { email_key: emailKey(from_email) };
		return written(await writes.patchSender({ id, patch, ...key }));
	};
	return {
		page: (request) => readPage(context, request, { path: '/senders/' }, (page) => reads.pageSenders(page)),
		get: async (id) => found(await reads.getSender({ id })),
		create: async (body) => {
			const input = await checkedBeside(senderFields.parse(body, 'create'), fieldErrors(null));
			const email_key = emailKey(input.from_email);
			return written(await writes.createSender({ ...input, email_key, now: clock.now() }));
		},
		replace: (id, input) => change(id, input, 'replace'),
		patch: (id, input) => change(id, input, 'patch'),
		delete: async (id) => deleted(await writes.deleteSender({ id })),
	};
}
