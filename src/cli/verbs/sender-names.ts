/** The names of senders in From. */
import { emailKey, formatMailbox, parseMailbox } from '../../api/address.js';
import { NoSenders } from '../../api/capabilities.js';
import { ApiError } from '../../api/errors.js';
import type { CommandContext } from '../frame/context.js';
import { noAddress } from './address-faults.js';
import { walk } from './listing.js';

/** An address alone gets the name of its sender. Other services are not asked for one. */
export async function withSenderName(cx: CommandContext, from: string): Promise<string> {
	const mailbox = parseMailbox(from);
	const api = await cx.api();
	if (mailbox === null || mailbox.name !== '' || (await api.capabilities()).service !== 'mailctl')
		return from;
	try {
		for await (const { from_email, full_name } of walk(api.senders, {}, { signal: cx.signal }))
			if (emailKey(from_email) === mailbox.key) return withName(from, full_name);
	} catch (error) {
		// A token may send and read no senders, an older server has none, and no mail waits for a name.
		if (!(error instanceof NoSenders || error instanceof ApiError)) throw error;
	}
	return from;
}

/** The same address where the name cannot stand in a mail. */
export function withName(sender: string, name = ''): string {
	const mailbox = parseMailbox(sender);
	if (mailbox === null || name === '') return sender;
	const from = formatMailbox({ ...mailbox, name });
	// Pages show characters that an address may not have.
	return noAddress(from, 'mailbox') === null ? from : sender;
}
