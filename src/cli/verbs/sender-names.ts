import { emailKey, formatMailbox, parseMailbox } from '../../api/address.js';
import { ApiError, NoSenders } from '../../api/errors.js';
import type { Sender } from '../../api/records.js';
import type { CommandContext } from '../frame/context.js';
import { noAddress } from './address-faults.js';
import { walk } from './listing.js';

/** Adds the sender's name to `from`, unless it has a name. */
export function withNameOf(sender: Sender | null, from: string): string {
	const mailbox = parseMailbox(from);
	const name = sender?.full_name ?? '';
	if (mailbox === null || mailbox.name !== '' || name === '') return from;
	const named = formatMailbox({ ...mailbox, name });
	return noAddress(named, 'mailbox') === null ? named : from;
}

/** Finds the sender of a mailbox; null if there is none. Does not ask other services. */
export async function findSender(cx: CommandContext, from: string): Promise<Sender | null> {
	const mailbox = parseMailbox(from);
	const api = await cx.api();
	if (mailbox === null || (await api.capabilities()).service !== 'mailctl') return null;
	try {
		for await (const sender of walk(api.senders, {}, { signal: cx.signal }))
			if (emailKey(sender.from_email) === mailbox.key) return sender;
	} catch (error) {
		// Ignore it: the token may not read senders, or an older server has none, and no mail should wait for a name.
		if (!(error instanceof NoSenders || error instanceof ApiError)) throw error;
	}
	return null;
}
