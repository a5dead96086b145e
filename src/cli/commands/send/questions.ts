/** The sender, the subject and the body of a mail, asked of a person. */
import { formatMailbox, parseMailbox } from '../../../api/address.js';
import { checkOf } from '../../frame/asking.js';
import { flagOf } from '../../frame/command.js';
import type { CommandContext } from '../../frame/context.js';
import { noAddress } from '../../verbs/address-faults.js';
import { choicesOf } from '../../verbs/choices.js';
import { walk } from '../../verbs/listing.js';
import type { SendOptions } from './options.js';

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
	const mailbox = parseMailbox(sender);
	if (mailbox === null || name === undefined) return sender;
	const from = formatMailbox({ ...mailbox, name });
	// Pages show characters that an address may not have.
	return noAddress(from, 'mailbox') === null ? from : sender;
}

export function askSubject(cx: CommandContext, initial?: string): Promise<string> {
	const check = async (text: string) => (text.trim() === '' ? 'a subject is needed' : null);
	return cx.ask('Subject:', { check, ...(initial !== undefined && { initial }) });
}

export type BodySource = 'text' | 'textFile' | 'htmlFile' | 'markdownFile';

export async function askBody(
	cx: CommandContext,
	source: BodySource,
	initial?: string,
): Promise<Partial<SendOptions>> {
	if (source === 'text') {
		const check = async (text: string) => (text.trim() === '' ? 'a text is needed' : null);
		return { text: await cx.askText('Text:', { check, ...(initial !== undefined && { initial }) }) };
	}
	const path = (await cx.ask('File:', { check: await checkOf('file') })).trim();
	return { [source]: cx.sources.file(path, flagOf(source)) };
}
