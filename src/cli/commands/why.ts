import { emailKey } from '../../api/address.js';
import type { Api } from '../../api/api.js';
import { formatDateTime, microsPerDay } from '../../api/datetime.js';
import type { LeftOut, ListedSubscriber, Person, PersonMessage } from '../../api/people.js';
import type { List, WireDateTime } from '../../api/records.js';
import type { Suppression } from '../../api/suppressions.js';
import { command as describe } from '../frame/command.js';
import { type Hint, mailctl } from '../frame/command-line.js';
import type { CommandContext } from '../frame/context.js';
import { CliError } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { isMachine } from '../frame/globals.js';
import { clean } from '../render/clean.js';
import type { Times } from '../render/times.js';
import { fitSentences } from '../render/wrapping.js';
import { assertAddress } from '../verbs/address-faults.js';
import { walk } from '../verbs/listing.js';
import { sayWhatHolds } from '../verbs/refusals.js';
import { deletedText, detailLines } from './messages.js';
import { findInAllLists } from './subscribers/walk.js';

const shownDays = 30;

export const command = describe({
	name: 'why',
	summary: 'explain why a person did not get a mail',
	description:
		'Shows the answer, then the lists of the address, its suppressions, its messages of the last 30 days, and the campaigns ' +
		'that left it out. With --all -o json it has everything that the database holds about the person, except the texts of ' +
		'messages ("messages raw"). Another service shows only the lists.',
	args: [{ name: 'address', summary: 'an e-mail address', of: 'address', ask: 'E-mail address:' }],
	options: { all: { kind: 'flag', summary: 'show messages of any age, with their history' } },
	createsDatabase: false,
	output:
		'{"email", "answer": [sentences], "subscribers", "suppressions", "date_erased", "date_sender", "left_out", "copies", "message_count", "deleted": {"before", "keep_messages"} (older messages of all people), "messages"}; values that the service does not have are null',
	exits: [3],
	examples: ['mailctl why ann@example.com', 'mailctl why ann@example.com --all -o json'],
	run: async (cx, { args, options }) => {
		assertAddress(args.address);
		await cx.connection();
		const since = formatDateTime(cx.clock.now() - shownDays * microsPerDay);
		const held = await readHeld(cx, args.address, options.all ? null : since);
		if (!held.isKnown) throw unknown(held, cx.times);
		const now = formatDateTime(cx.clock.now());
		const { sentences, next } = answerOf(held, { now, times: cx.times });
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined) {
			await cx.out.document(documentOf(held, sentences));
		} else {
			const shown = { days: options.all ? null : shownDays, times: cx.times };
			const text = pageOf(held, sentences, shown).map(clean).join('\n');
			await cx.out.page(`${await fitSentences(text, cx.io.stdout)}\n`);
		}
		for (const hint of next) await cx.hint(hint);
		const [last] = held.told?.recent ?? [];
		// A submission never has the id of a message, so this asks only for the state of the queue.
		if (last !== undefined && isDue(last, now)) await sayWhatHolds(cx, { submission: last.id });
	},
});

function isDue({ state, due_at }: PersonMessage, now: WireDateTime): boolean {
	return ['queued', 'deferred'].includes(state) && due_at !== null && due_at <= now;
}

function unknown({ email, told }: Held, times: Times): CliError {
	const deleted = told?.deleted === undefined ? '' : `; ${deletedText(told.deleted, times)}`;
	const where =
		told === null
			? 'in any list of this service'
			: `here: it is in no list, and no mail went to it${deleted}`;
	return new CliError('not_found', exits.notFound, `${email} is not known ${where}`);
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

/** `since` excludes older messages; null: none. Throws errors of the service. */
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

/** `told` is null for a service that has only lists and subscribers. */
interface Held {
	email: string;
	isKnown: boolean;
	subscribers: readonly ListedSubscriber[];
	told: (Omit<Person, 'email' | 'subscribers' | 'is_known'> & { recent: readonly PersonMessage[] }) | null;
}

interface Answer {
	sentences: string[];
	next: Hint[];
}

interface At {
	now: WireDateTime;
	times: Times;
}

function answerOf({ email, subscribers, told }: Held, at: At): Answer {
	const recent = told?.recent ?? [];
	if (told !== null && told.date_erased !== null) {
		const day = at.times.day(told.date_erased);
		return {
			sentences: [
				`${email} gets no bulk mail: the person was erased on ${day}, and what was kept about the address is gone.`,
			],
			next: [['if the person joins again: ', mailctl('subscribers', 'erase', email, '--lift')]],
		};
	}
	const inForce = (told?.suppressions ?? []).filter(
		({ expires_at }) => expires_at === null || expires_at > at.now,
	);
	const ofAll = strongestOf(inForce.filter(({ list_id }) => list_id === null));
	const inactive = subscribers.filter(({ is_active }) => !is_active);
	if (ofAll !== undefined) {
		const what = stopsAll.has(ofAll.reason) ? 'no mail' : 'no bulk mail of any list';
		const isBounce = ofAll.reason === 'HARDBOUNCED' || ofAll.reason === 'SOFTBOUNCED';
		const when = isBounce ? 'when the mailbox accepts mail again: ' : 'if the person asks for mail: ';
		const then = inactive.slice(0, 1).map((one) => ['then ', activating(email, one)]);
		return {
			sentences: [`${email} gets ${what}: ${because(ofAll, recent, at.times)}`],
			next: [[when, mailctl('suppressions', 'remove', email, '--reason', ofAll.reason, '--yes')], ...then],
		};
	}
	const ofList = (one: ListedSubscriber) =>
		strongestOf(inForce.filter(({ list_id }) => list_id === one.list_id));
	const stopped = subscribers.filter((one) => !one.is_active || ofList(one) !== undefined);
	const active = subscribers.filter((one) => !stopped.includes(one));
	const reasonOf = (one: ListedSubscriber) => {
		const suppression = ofList(one);
		if (suppression !== undefined) return because(suppression, recent, at.times);
		const by = told === null ? '' : ', made so by hand or by an import';
		return `the subscriber is inactive${one.disable_reason === null ? by : ` (${one.disable_reason})`}.`;
	};
	const names = active.map(({ list_name }) => list_name);
	const lists = `list${names.length === 1 ? '' : 's'} ${names.join(', ')}`;
	return {
		sentences: [
			...stopped.map((one) => `${email} gets no mail from list ${one.list_name}: ${reasonOf(one)}`),
			...(active.length === 0
				? []
				: [`${email} ${told === null ? 'is active in' : 'gets the mail of'} ${lists}.`]),
			...(subscribers.length === 0 ? [`${email} is in no list.`] : []),
			...(told === null
				? ['This service tells nothing about messages, suppressions and bounces.']
				: ofMessages(told, stopped, at)),
		],
		next: stopped.map((one) => ['if the person asks for mail: ', activating(email, one)]),
	};
}

/** Strongest first, as in the store. */
const order = ['COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'MANUAL'];
const stopsAll: ReadonlySet<string> = new Set(['COMPLAINED', 'HARDBOUNCED']);

function strongestOf(suppressions: readonly Suppression[]): Suppression | undefined {
	return [...suppressions].sort((a, b) => order.indexOf(a.reason) - order.indexOf(b.reason))[0];
}

function activating(email: string, { list_id }: ListedSubscriber): Hint {
	return mailctl('subscribers', 'activate', email, '--list', String(list_id));
}

const causes: Readonly<Record<string, { mark: string; text: (day: string, bounce: string) => string }>> = {
	HARDBOUNCED: {
		mark: 'bounced',
		text: (day, bounce) => `a hard bounce of ${day} suppressed the address${bounce}.`,
	},
	SOFTBOUNCED: {
		mark: 'bounced',
		text: (day, bounce) => `too many soft bounces in a row suppressed the address on ${day}${bounce}.`,
	},
	COMPLAINED: {
		mark: 'a complaint',
		text: (day) => `a complaint (marked as spam) of ${day} suppressed the address.`,
	},
	UNSUBSCRIBED: { mark: 'unsubscribed', text: (day) => `the person unsubscribed on ${day}.` },
};

function because(
	{ reason, date_created, source }: Suppression,
	messages: readonly PersonMessage[],
	times: Times,
): string {
	const day = times.day(date_created);
	const cause = causes[reason];
	if (cause === undefined)
		return source === 'IMPORT'
			? `an import of ${day} suppressed the address.`
			: `the address was suppressed by hand on ${day}.`;
	if (source === 'API' || source === 'IMPORT')
		return `${sourceText(source)} of ${day} marked the address as ${cause.mark}.`;
	return cause.text(day, bounceText(messages));
}

function bounceText(messages: readonly PersonMessage[]): string {
	for (const { reports = [], delivery_attempts, visits } of messages) {
		const reported = reports.findLast(({ diagnostic }) => diagnostic !== null)?.diagnostic;
		const seen = visits.findLast(({ diagnostic }) => diagnostic !== null)?.diagnostic;
		const refused = delivery_attempts.findLast(({ outcome }) => outcome === 'bounced');
		const reply = refused && [refused.code, refused.enhanced, refused.text].filter(Boolean).join(' ');
		const text = reported ?? seen ?? reply;
		if (text !== undefined && text !== '') return `: ${withoutStop(text)}`;
	}
	return '';
}

function ofMessages(
	{ recent: [last], left_out, messages, deleted }: NonNullable<Held['told']>,
	stopped: readonly ListedSubscriber[],
	at: At,
): string[] {
	const [left] = left_out;
	const gone = deleted === undefined ? '' : `: ${deletedText(deleted, at.times)}`;
	const none =
		messages > 0 ? 'No message was made for it in the last 30 days.' : `No message for it is known${gone}.`;
	return [
		last === undefined ? none : lastSentence(last, stopped, at),
		...(left === undefined
			? []
			: [`Campaign ${left.key} left it out: ${withoutStop(left.error ?? left.code)}.`]),
	];
}

function lastSentence(
	message: PersonMessage,
	stopped: readonly ListedSubscriber[],
	{ now, times }: At,
): string {
	const { subject, state, date_created, date_sent, due_at, last_reply, attempts, campaign, list_id } =
		message;
	const of = campaign == null ? '' : ` (campaign ${campaign})`;
	const said = last_reply === null || last_reply === '' ? '' : `: ${withoutStop(last_reply)}`;
	const isLater = due_at !== null && due_at > now;
	const due = isLater ? `planned for ${times.moment(due_at)}` : 'due and waits for its first delivery';
	const next = `attempt ${attempts + 1}`;
	const waits = isLater ? `waits for ${next} at ${times.moment(due_at)}` : `is due for ${next}`;
	const told: Readonly<Record<PersonMessage['state'], string>> = {
		sent: `was accepted by the mail server on ${times.day(date_sent ?? date_created)}${said}`,
		staged: 'waits: its campaign is not released',
		queued: `is ${due}`,
		leased: `is ${due}`,
		deferred: `${waits}${attempts === 0 ? '' : `; attempt ${attempts} was deferred`}${said}`,
		bounced: `bounced${said}`,
		failed: `failed${said}`,
		uncertain: `may have arrived or not: its last attempt had no clear end${said}`,
		canceled: `was canceled${said}`,
	};
	// Bulk mail of a list that the address has left is skipped when it is due.
	const isStopped =
		message.type === 'BULK' &&
		['staged', 'queued', 'deferred'].includes(state) &&
		stopped.some((one) => one.list_id === list_id);
	const what = isStopped ? 'is not sent: it is for a list whose mail the address gets no more' : told[state];
	return `The last message, "${subject}" of ${times.day(date_created)}${of}, ${what}.`;
}

/** The quoting sentence adds a full stop. A regular expression would take quadratic time on blanks. */
function withoutStop(text: string): string {
	let end = text.length;
	while (end > 0 && /[.\s]/.test(text[end - 1] ?? '')) end -= 1;
	return text.slice(0, end);
}

function pageOf(
	{ subscribers, told }: Held,
	answer: readonly string[],
	{ days, times }: { days: number | null; times: Times },
): string[] {
	const blocks: [title: string, lines: readonly string[]][] = [
		[
			'Lists',
			subscribers.map((one) => subscriberLine(one, { suppressions: told?.suppressions ?? [], times })),
		],
	];
	if (told !== null) {
		const { suppressions, recent, messages, left_out, copies, date_sender } = told;
		const names = new Map(subscribers.map(({ list_id, list_name }) => [list_id, list_name]));
		const titled =
			days === null ? 'Messages, the newest first' : `Messages of the last ${days} days, the newest first`;
		blocks.push(
			['Suppressions', suppressions.map((one) => suppressionLine(one, { names, times }))],
			[
				titled,
				[
					...recent.flatMap((one, at) =>
						days === null || isTold(one, at) ? messageLines(one, times) : [messageLine(one, times)],
					),
					...moreLines(recent, { days, older: messages - recent.length }),
					...(told.deleted === undefined ? [] : [deletedText(told.deleted, times)]),
				],
			],
			['Left out of campaigns', left_out.map((one) => leftOutLine(one, times))],
		);
		if (copies.length > 0) blocks.push(['Messages with the address as a copy or for replies', copies]);
		if (date_sender !== null) blocks.push(['Verified sender', [`since ${times.text(date_sender)}`]]);
	}
	const filled = blocks.filter(([, lines]) => lines.length > 0);
	const empty = blocks.filter(([, lines]) => lines.length === 0);
	const lines = [
		...answer,
		...filled.flatMap(([title, lines]) => ['', title, ...lines.map((line) => `  ${line}`)]),
		...(empty.length === 0 ? [] : ['', ...empty.map(([title]) => `${title}: none`)]),
	];
	const caption = times.caption();
	return caption === null ? lines : [...lines, '', caption];
}

function subscriberLine(
	one: ListedSubscriber,
	{ suppressions, times }: { suppressions: readonly Suppression[]; times: Times },
): string {
	const { list_name, list_id, id, is_active, disable_reason, source, date_created } = one;
	const since = suppressions.find(
		(other) => other.reason === disable_reason && (other.list_id === null || other.list_id === list_id),
	);
	const why =
		disable_reason === null ? '' : ` (${disable_reason}${since ? ` ${times.text(since.date_created)}` : ''})`;
	const state = is_active ? 'active' : `inactive${why}`;
	return `${list_name} (list ${list_id}, subscriber ${id}): ${state}, added ${times.text(date_created)} by ${sourceText(source)}`;
}

function sourceText(source: string): string {
	return sources[source] ?? source;
}

const sources: Readonly<Record<string, string>> = {
	RECIPIENT: 'the recipient',
	DELIVERY: 'a delivery',
	BOUNCE: 'a bounce report',
	COMPLAINT: 'a complaint',
	API: 'the API or a command',
	IMPORT: 'an import',
	FORM: 'a form',
	APP: 'an application',
};

function suppressionLine(
	{ reason, list_id, source, date_created, expires_at }: Suppression,
	{ names, times }: { names: ReadonlyMap<number, string>; times: Times },
): string {
	const of = list_id === null ? 'all lists' : `list ${names.get(list_id) ?? list_id}`;
	const until = expires_at === null ? '' : `, until ${times.text(expires_at)}`;
	return `${reason} of ${of}, set ${times.text(date_created)} by ${sourceText(source)}${until}`;
}

function leftOutLine({ key, campaign, date_created, code, error }: LeftOut, times: Times): string {
	// Most errors start with the code itself.
	const why = error === null || error.startsWith(code) ? (error ?? code) : `${code}, ${error}`;
	// A campaign of send calls has no name besides its UUID.
	const named = key === campaign ? key : `${key} (${campaign})`;
	return `${times.text(date_created)} ${named}: ${why}`;
}

/** Shows the history of the newest message, and of messages that were not sent, so that the page fits a screen. */
function isTold({ state }: PersonMessage, at: number): boolean {
	return at === 0 || state !== 'sent';
}

function moreLines(
	recent: readonly PersonMessage[],
	{ days, older }: { days: number | null; older: number },
): string[] {
	if (days === null) return [];
	const folded = recent.filter((one, at) => !isTold(one, at)).length;
	const more = [
		...(folded > 0 ? ['replies, opens and clicks of all'] : []),
		...(older > 0 ? [`${older} older`] : []),
	];
	return more.length === 0 ? [] : [`${more.join(', ')}: --all`];
}

function messageLines(message: PersonMessage, times: Times): string[] {
	return [messageLine(message, times), ...detailLines(message, times).map((line) => `  ${line}`)];
}

function messageLine({ id, subject, state, date_created, campaign }: PersonMessage, times: Times): string {
	const of = campaign == null ? '' : ` of campaign ${campaign}`;
	return `${times.text(date_created)} ${state} "${subject}"${of} ${id}`;
}
