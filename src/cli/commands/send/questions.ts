/** The sender, the subject and the body of a mail, asked of a person. */
import { parseMailbox } from '../../../api/address.js';
import type { Api } from '../../../api/api.js';
import { NoSenders } from '../../../api/capabilities.js';
import { checkOf } from '../../frame/asking.js';
import { flagOf } from '../../frame/command.js';
import { mailctl } from '../../frame/command-line.js';
import type { CommandContext } from '../../frame/context.js';
import { Declined, UsageError } from '../../frame/errors.js';
import { choicesOf } from '../../verbs/choices.js';
import { walk } from '../../verbs/listing.js';
import { explained } from '../../verbs/refusals.js';
import { withName, withSenderName } from '../../verbs/sender-names.js';
import { fieldsOf } from './lint.js';
import type { SendOptions } from './options.js';

/** The only verified sender is taken without a question; among several one is chosen. */
export async function askSender(cx: CommandContext): Promise<string> {
	const { senders } = await cx.api();
	const known: string[] = [];
	let isTold = true;
	try {
		for await (const { from_email } of walk(senders, {}, { signal: cx.signal, limit: 2 }))
			known.push(from_email);
	} catch (error) {
		if (!(error instanceof NoSenders)) throw error;
		isTold = false;
	}
	const [only] = known;
	if (known.length > 1) return cx.search('From:', await choicesOf(cx, 'sender', {}));
	if (only !== undefined) {
		const from = await named(cx, only);
		await cx.note(`From: ${from}, the only sender`);
		return from;
	}
	const isAddress = await checkOf('address');
	const from = await cx.ask('From:', {
		check: async (text) => (text.trim() === '' ? 'a sender is needed' : isAddress(text)),
	});
	if (isTold) await addSender(cx, senders, from.trim());
	return from;
}

/** Nothing can be sent from another address: a person adds it, or the guide ends before the other questions. */
async function addSender(cx: CommandContext, senders: Api['senders'], from: string): Promise<void> {
	const email = parseMailbox(from)?.address ?? from;
	const add = mailctl('senders', 'add', email);
	if (cx.dryRun)
		throw new UsageError(`${email} is no sender yet: nothing can be sent from it`, { hint: add });
	try {
		await cx.agree(`${email} is no sender yet.`, 'Add it?');
	} catch (error) {
		throw error instanceof Declined
			? new Declined({ hint: ['nothing can be sent from another address: ', add] })
			: error;
	}
	const input = { from_email: email };
	await explained(senders.create(input, { signal: cx.signal }), { input });
	await cx.note(`added the sender ${email}`);
}

/** With its own name, or the one that recipients see on the pages, where this machine has it. */
async function named(cx: CommandContext, sender: string): Promise<string> {
	const from = await withSenderName(cx, sender);
	const { local } = await cx.connection();
	return from === sender ? withName(sender, (await local?.settings.get())?.['page_sender_name']) : from;
}

export function askSubject(cx: CommandContext, initial?: string): Promise<string> {
	const check = async (text: string) => (text.trim() === '' ? 'a subject is needed' : null);
	return cx.ask('Subject:', { check, ...(initial !== undefined && { initial, isEdited: true }) });
}

/** So many fields are named. */
const mostNamed = 8;

/** What an empty editor does not say: the variables of the text. The columns of a table are known later. */
export async function sayVariables(
	cx: CommandContext,
	{ list, csv, to, bulk, transactional }: SendOptions,
): Promise<void> {
	const isBulk = bulk || ((list.length > 0 || csv !== undefined) && !transactional);
	const fields = list.length + to.length > 0 ? ((await fieldsOf(cx)) ?? []) : [];
	const named = ['name', 'email', ...fields.slice(0, mostNamed)].map((name) => `#${name}#`);
	const more = fields.length > mostNamed ? ` and ${fields.length - mostNamed} more fields` : '';
	const link = isBulk ? '; #unsubscribe_url# is the link to unsubscribe: put it in' : '';
	await cx.note(`variables: ${named.join(', ')}${more}; #name|friend# has a default${link}`);
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
	return { [source]: cx.sources.file(await askPath(cx, 'File:'), flagOf(source)) };
}

export async function askPath(cx: CommandContext, question: string): Promise<string> {
	return (await cx.ask(question, { check: await checkOf('file') })).trim();
}
