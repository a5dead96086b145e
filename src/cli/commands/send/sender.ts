/** The sender of a mail, asked of a person. */
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
		await cx.note(`From: ${only}, the only sender`);
		return only;
	}
	const isAddress = await checkOf('address');
	return cx.ask('From:', {
		check: async (text) => (text.trim() === '' ? 'a sender is needed' : isAddress(text)),
	});
}
