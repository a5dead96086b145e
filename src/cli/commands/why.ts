import { emailKey } from '../../api/address.js';
import type { Api } from '../../api/api.js';
import { formatDateTime, microsPerDay } from '../../api/datetime.js';
import type { ListedSubscriber, PersonMessage } from '../../api/people.js';
import type { List } from '../../api/records.js';
import { command as describe } from '../frame/command.js';
import { mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { clean } from '../render/clean.js';
import type { Times } from '../render/times.js';
import { fitSentences } from '../render/wrapping.js';
import { assertAddress } from '../verbs/address-faults.js';
import { walk } from '../verbs/listing.js';
import { deletedText } from './messages.js';
import { findInAllLists } from './subscribers/walk.js';
import { answerOf, type Held } from './why/answer.js';
import { pageOf } from './why/page.js';

const shownDays = 30;

export const command = describe({
	name: 'why',
	summary: 'everything about one person, and why a mail did not come',
	description:
		'The answer in words, then the lists the address is in, its suppressions, its messages of the last 30 days, and the campaigns that left it out. The newest message and those that did not leave are told with attempts, bounces, opens and clicks, under --all every one. Case and the form of an international domain do not matter. With -o json --all the answer is all that the database holds about the person, but for the texts of the mails (messages raw). A service that tells nothing of messages tells the lists alone.',
	args: [{ name: 'address', summary: 'an e-mail address', of: 'address', ask: 'E-mail address:' }],
	options: { all: { kind: 'flag', summary: 'messages of any age' } },
	createsDatabase: false,
	output:
		'{"email", "answer": [sentences], "subscribers", "suppressions", "date_erased", "date_sender", "left_out", "copies", "message_count", "deleted": {"before", "keep_messages"} (older messages of all people), "messages"}; what the service does not tell is null',
	exits: [3],
	examples: ['mailctl why ann@example.com', 'mailctl why ann@example.com --all -o json'],
	run: async (cx, { args, options }) => {
		assertAddress(args.address);
		await cx.connection();
		const since = formatDateTime(cx.clock.now() - shownDays * microsPerDay);
		const held = await readHeld(cx, args.address, options.all ? null : since);
		if (!held.isKnown) throw unknown(held, cx.times);
		const { sentences, next } = answerOf(held, { now: formatDateTime(cx.clock.now()), times: cx.times });
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined) {
			await cx.out.document(documentOf(held, sentences));
		} else {
			const shown = { days: options.all ? null : shownDays, times: cx.times };
			const text = pageOf(held, sentences, shown).map(clean).join('\n');
			await cx.out.page(`${await fitSentences(text, cx.io.stdout)}\n`);
		}
		for (const hint of next) await cx.hint(hint);
	},
});

function unknown({ email, told }: Held, times: Times): CliError {
	const deleted = told?.deleted === undefined ? '' : `; ${deletedText(told.deleted, times)}`;
	const where =
		told === null
			? 'in any list of this service'
			: `here: it is in no list, and no mail went to it${deleted}`;
	return new CliError('not_found', exits.notFound, `${email} is not known ${where}`, {
		hint: mailctl('subscribers', 'find', email),
	});
}

function documentOf({ email, subscribers, told }: Held, answer: readonly string[]): object {
	return {
		email,
		answer,
		subscribers,
		suppressions: told?.suppressions ?? null,
		date_erased: told?.date_erased ?? null,
		date_sender: told?.date_sender ?? null,
		left_out: told?.left_out ?? null,
		copies: told?.copies ?? null,
		message_count: told?.messages ?? null,
		deleted: told?.deleted ?? null,
		messages: told?.recent ?? null,
	};
}

const sliceSize = 100;

/** `since`: no older messages; null: all. Throws errors of the service. */
async function readHeld(cx: CommandContext, address: string, since: string | null): Promise<Held> {
	const api = await cx.api();
	const { people } = (await api.capabilities()).ext;
	if (people === undefined) return documented(api, address, cx.signal);
	const { signal } = cx;
	const { email, subscribers, is_known: isKnown, ...told } = await people.get(address, { signal });
	const recent: PersonMessage[] = [];
	for (let before: number | null | undefined; before !== null && told.messages > 0; ) {
		signal.throwIfAborted();
		const request = { limit: sliceSize, ...(since !== null && { since }), ...(before && { before }) };
		const slice = await people.messages(address, request, { signal });
		recent.push(...slice.results);
		before = slice.next;
	}
	return { email, isKnown, subscribers, told: { ...told, recent } };
}

async function documented(api: Api, address: string, signal: AbortSignal): Promise<Held> {
	const names = new Map<number, string>();
	const lists = walk<object, List>(api.lists, {}, { signal });
	for await (const { id, name } of lists) names.set(id, name);
	const subscribers: ListedSubscriber[] = [];
	for await (const one of findInAllLists(api, address, signal))
		subscribers.push({ ...one, list_name: names.get(one.list_id) ?? String(one.list_id) });
	return { email: emailKey(address), isKnown: subscribers.length > 0, subscribers, told: null };
}
