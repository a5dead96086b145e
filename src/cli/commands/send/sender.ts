/** The sender of a mail, asked of a person. */
import { formatMailbox, parseMailbox } from '../../../api/address.js';
import { checkOf } from '../../frame/asking.js';
import type { CommandContext } from '../../frame/context.js';
import { choicesOf } from '../../verbs/choices.js';
import { walk } from '../../verbs/listing.js';

/** The only verified sender is taken without a question; among several one is chosen. */
export async function askSender(cx: CommandContext): Promise<string> {
	const { senders } = (await (await cx.api()).capabilities()).ext;
	const known: string[] = [];
	if (senders !== undefined)
		for await (const { email } of walk(senders, {}, { signal: cx.signal, limit: 2 })) known.push(email);
	const [only] = known;
	if (known.length > 1) return cx.search('From:', await choicesOf(cx, 'sender', {}));
	if (only !== undefined) {
		const from = await named(cx, only);
		await cx.note(`From: ${from}, the only sender`);
		return from;
	}
	const isAddress = await checkOf('address');
	return cx.ask('From:', {
		check: async (text) => (text.trim() === '' ? 'a sender is needed' : isAddress(text)),
	});
}

/** With the sender's name that recipients see on the pages, where this machine has it. */
async function named(cx: CommandContext, sender: string): Promise<string> {
	const { local } = await cx.connection();
	const name = (await local?.settings.get())?.['page_sender_name'];
	const mailbox = name === undefined ? null : parseMailbox(sender);
	return mailbox === null || name === undefined ? sender : formatMailbox({ ...mailbox, name });
}
