import { emailKey } from '../../api/address.js';
import { formatDateTime, microsPerDay } from '../../api/datetime.js';
import type { LeftOut, ListedSubscriber, Person, PersonMessage } from '../../api/people.js';
import type { WireDateTime } from '../../api/records.js';
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
import { findInAllLists } from './subscribers/lookup.js';

const shownDays = 30;

export const command = describe({
	name: 'why',
	summary: 'explain why a person did not get a mail',
	description:
		'Answers in sentences. Then shows the lists of the address, its suppressions, its messages of the last 30 days, and ' +
		'the campaigns that left it out. With --all -o json, the output has everything that the database holds about the ' +
		'person, except the texts of messages (see "messages raw"). With a service other than mailctl, you see only the lists.',
	args: [{ name: 'address', summary: 'an e-mail address', of: 'address', ask: 'E-mail address:' }],
	options: { all: { kind: 'flag', summary: 'show messages of any age, with their history' } },
	createsDatabase: false,
	output:
		'{"email", "answer": [sentences], "subscribers", "suppressions", "date_erased", "date_sender", "left_out", "copies", "message_count", "deleted": {"before", "keep_messages"} (older messages are deleted), "messages"}; values that the service does not have are null',
	exits: [3],
	examples: ['mailctl why ann@example.com', 'mailctl why ann@example.com --all -o json'],
	run: async (cx, { args, options }) => {
		assertAddress(args.address);
		const now = cx.clock.now();
		const since = formatDateTime(now - shownDays * microsPerDay);
		const held = await readHeld(cx, args.address, options.all ? null : since);
		const page = new WhyPage(held, formatDateTime(now), cx.times);
		if (!held.isKnown) throw new CliError('not_found', exits.notFound, page.unknown());
		const { sentences, next } = page.answer();
		if (isMachine(cx.out.format) || cx.globals.fields !== undefined) {
			await cx.out.document(documentOf(held, sentences));
		} else {
			const text = page
				.lines(sentences, options.all ? null : shownDays)
				.map(clean)
				.join('\n');
			await cx.out.page(`${await fitSentences(text, cx.io.stdout)}\n`);
		}
		for (const hint of next) await cx.hint(hint);
		// `sayWhatHolds` prints only the state of the queue, so any UUID works as the submission, even the id of a message.
		const due = page.lastIfDue();
		if (due !== null) await sayWhatHolds(cx, { submission: due.id });
	},
});

type Told = Omit<Person, 'email' | 'subscribers' | 'is_known'> & { recent: readonly PersonMessage[] };

/** `told` is null for a service that has only lists and subscribers. */
interface Held {
	email: string;
	isKnown: boolean;
	subscribers: readonly ListedSubscriber[];
	told: Told | null;
}

const sliceSize = 100;

async function readHeld(cx: CommandContext, address: string, since: string | null): Promise<Held> {
	const api = await cx.api();
	const { signal } = cx;
	const { people } = (await api.capabilities()).ext;
	if (people === undefined) {
		const names = new Map<number, string>();
		for await (const { id, name } of walk(api.lists, {}, { signal })) names.set(id, name);
		const subscribers: ListedSubscriber[] = [];
		for await (const one of findInAllLists(api, address, signal))
			subscribers.push({ ...one, list_name: names.get(one.list_id) ?? String(one.list_id) });
		return { email: emailKey(address), isKnown: subscribers.length > 0, subscribers, told: null };
	}
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

function documentOf({ email, subscribers, told }: Held, answer: readonly string[]): object {
	const { suppressions, date_erased, date_sender, left_out, copies, messages, deleted, recent } = told ?? {};
	return {
		...{ email, answer, subscribers, suppressions: suppressions ?? null },
		...{ date_erased: date_erased ?? null, date_sender: date_sender ?? null, left_out: left_out ?? null },
		...{ copies: copies ?? null, message_count: messages ?? null, deleted: deleted ?? null },
		messages: recent ?? null,
	};
}

class WhyPage {
	readonly #held: Held;
	readonly #now: WireDateTime;
	readonly #times: Times;
	readonly #recent: readonly PersonMessage[];
	readonly #suppressions: readonly Suppression[];

	constructor(held: Held, now: WireDateTime, times: Times) {
		this.#held = held;
		this.#now = now;
		this.#times = times;
		this.#recent = held.told?.recent ?? [];
		this.#suppressions = held.told?.suppressions ?? [];
	}

	unknown(): string {
		const { email, told } = this.#held;
		if (told === null) return `${email} is not known in any list of this service`;
		return `${email} is not known here: it is in no list, and no mail went to it${this.#deleted('; ')}`;
	}

	lastIfDue(): PersonMessage | null {
		const [last] = this.#recent;
		const isWaiting = last?.state === 'queued' || last?.state === 'deferred';
		return isWaiting && last.due_at !== null && last.due_at <= this.#now ? last : null;
	}

	answer(): { sentences: string[]; next: Hint[] } {
		const { email, subscribers, told } = this.#held;
		if (told !== null && told.date_erased !== null) {
			const day = this.#times.day(told.date_erased);
			const said = `${email} gets no bulk mail: the data of this person was erased on ${day}.`;
			const lift = mailctl('subscribers', 'erase', email, '--lift');
			return { sentences: [said], next: [['if the person joins again: ', lift]] };
		}
		const activating = ({ list_id }: ListedSubscriber): Hint =>
			mailctl('subscribers', 'activate', email, '--list', String(list_id));
		const ofAll = this.#strongest(null);
		if (ofAll !== undefined) {
			const { reason } = ofAll;
			const what = stopsAll.has(reason) ? 'no mail' : 'no bulk mail from any list';
			const isBounce = reason === 'HARDBOUNCED' || reason === 'SOFTBOUNCED';
			const when = isBounce ? 'when the mailbox accepts mail again: ' : 'if the person asks for mail: ';
			const lift: Hint = [when, mailctl('suppressions', 'remove', email, '--reason', reason, '--yes')];
			const inactive = subscribers.find(({ is_active }) => !is_active);
			return {
				sentences: [`${email} gets ${what}: ${this.#because(ofAll)}`],
				next: inactive === undefined ? [lift] : [lift, ['then ', activating(inactive)]],
			};
		}
		const stopped = subscribers.filter(
			({ is_active, list_id }) => !is_active || this.#strongest(list_id) !== undefined,
		);
		const names = subscribers.filter((one) => !stopped.includes(one)).map(({ list_name }) => list_name);
		const gets = told === null ? 'is active in' : 'gets the mail of';
		return {
			sentences: [
				...stopped.map((one) => `${email} gets no mail from list ${one.list_name}: ${this.#reasonOf(one)}`),
				...(names.length === 0
					? []
					: [`${email} ${gets} list${names.length === 1 ? '' : 's'} ${names.join(', ')}.`]),
				...(subscribers.length === 0 ? [`${email} is in no list.`] : []),
				...(told === null
					? ['This service gives no information about messages, suppressions and bounces.']
					: this.#ofMessages(told, stopped)),
			],
			next: stopped.map((one) => ['if the person asks for mail: ', activating(one)]),
		};
	}

	#strongest(listId: number | null): Suppression | undefined {
		return this.#suppressions
			.filter(
				({ list_id, expires_at }) => list_id === listId && (expires_at === null || expires_at > this.#now),
			)
			.sort((a, b) => order.indexOf(a.reason) - order.indexOf(b.reason))[0];
	}

	#reasonOf({ list_id, disable_reason }: ListedSubscriber): string {
		const suppression = this.#strongest(list_id);
		if (suppression !== undefined) return this.#because(suppression);
		const by = this.#held.told === null ? '' : ', as set by hand or by an import';
		return `the subscriber is inactive${disable_reason === null ? by : ` (${disable_reason})`}.`;
	}

	#because({ reason, date_created, source }: Suppression): string {
		const day = this.#times.day(date_created);
		const cause = causes[reason];
		if (cause === undefined)
			return source === 'IMPORT'
				? `an import suppressed the address on ${day}.`
				: `the address was suppressed by hand on ${day}.`;
		if (source === 'API' || source === 'IMPORT')
			return `${sources[source]} suppressed the address on ${day} (${cause.mark}).`;
		return cause.text(day, bounceText(this.#recent));
	}

	#ofMessages({ left_out, messages }: Told, stopped: readonly ListedSubscriber[]): string[] {
		const [last] = this.#recent;
		const [left] = left_out;
		const none =
			messages > 0
				? 'No message to this address was created in the last 30 days.'
				: `No message to this address is known${this.#deleted(': ')}.`;
		return [
			last === undefined ? none : this.#lastSentence(last, stopped),
			...(left === undefined
				? []
				: [`Campaign ${left.key} left out this address: ${withoutStop(left.error ?? left.code)}.`]),
		];
	}

	#lastSentence(message: PersonMessage, stopped: readonly ListedSubscriber[]): string {
		const { subject, state, date_created, date_sent, due_at, last_reply, attempts } = message;
		const times = this.#times;
		const of = message.campaign == null ? '' : ` (campaign ${message.campaign})`;
		const said = last_reply === null || last_reply === '' ? '' : `: ${withoutStop(last_reply)}`;
		const isLater = due_at !== null && due_at > this.#now;
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
			uncertain: `may have arrived: the result of its last attempt is unknown${said}`,
			canceled: `was canceled${said}`,
		};
		const isStopped =
			message.type === 'BULK' &&
			['staged', 'queued', 'deferred'].includes(state) &&
			stopped.some(({ list_id }) => list_id === message.list_id);
		const what = isStopped
			? 'is not sent: the address no longer gets mail from the list of this message'
			: told[state];
		return `The last message, "${subject}" of ${times.day(date_created)}${of}, ${what}.`;
	}

	#deleted(before: string): string {
		const deleted = this.#held.told?.deleted;
		return deleted === undefined ? '' : `${before}${deletedText(deleted, this.#times)}`;
	}

	/** `readHeld` has already limited the messages to `days`. If `days` is null, each message shows its history. */
	lines(answer: readonly string[], days: number | null): string[] {
		const { subscribers, told } = this.#held;
		const blocks: [title: string, lines: readonly string[]][] = [
			['Lists', subscribers.map((one) => this.#subscriber(one))],
		];
		if (told !== null) {
			const { messages, left_out, copies, date_sender, deleted } = told;
			const of = days === null ? '' : ` of the last ${days} days`;
			blocks.push(
				['Suppressions', this.#suppressions.map((one) => this.#suppression(one))],
				[
					`Messages${of}, the newest first`,
					[
						...this.#recent.flatMap((one, at) => this.#message(one, days === null || isTold(one, at))),
						...(days === null ? [] : moreLines(this.#recent, messages - this.#recent.length)),
						...(deleted === undefined ? [] : [deletedText(deleted, this.#times)]),
					],
				],
				['Left out of campaigns', [...new Set(left_out.map((one) => this.#leftOut(one)))]],
			);
			if (copies.length > 0) blocks.push(['Messages with the address in Cc, Bcc or Reply-To', copies]);
			if (date_sender !== null) blocks.push(['Verified sender', [`since ${this.#times.text(date_sender)}`]]);
		}
		const filled = blocks.filter(([, lines]) => lines.length > 0);
		const empty = blocks.filter(([, lines]) => lines.length === 0).map(([title]) => `${title}: none`);
		const caption = this.#times.caption();
		return [
			...answer,
			...filled.flatMap(([title, lines]) => ['', title, ...lines.map((line) => `  ${line}`)]),
			...(empty.length === 0 ? [] : ['', ...empty]),
			...(caption === null ? [] : ['', caption]),
		];
	}

	#subscriber(one: ListedSubscriber): string {
		const { list_name, list_id, id, is_active, disable_reason, source, date_created } = one;
		const since = this.#suppressions.find(
			(other) => other.reason === disable_reason && (other.list_id === null || other.list_id === list_id),
		);
		const at = since === undefined ? '' : ` ${this.#times.text(since.date_created)}`;
		const why = disable_reason === null ? '' : ` (${disable_reason}${at})`;
		const state = is_active ? 'active' : `inactive${why}`;
		const added = `added ${this.#times.text(date_created)} by ${sources[source] ?? source}`;
		return `${list_name} (list ${list_id}, subscriber ${id}): ${state}, ${added}`;
	}

	#suppression({ reason, list_id, source, date_created, expires_at }: Suppression): string {
		const list = this.#held.subscribers.find((one) => one.list_id === list_id)?.list_name ?? list_id;
		const of = list_id === null ? 'all lists' : `list ${list}`;
		const until = expires_at === null ? '' : `, until ${this.#times.text(expires_at)}`;
		return `${reason} of ${of}, set ${this.#times.text(date_created)} by ${sources[source] ?? source}${until}`;
	}

	#leftOut({ key, campaign, date_created, code, error }: LeftOut): string {
		// Most errors start with the code itself.
		const why = error === null || error.startsWith(code) ? (error ?? code) : `${code}, ${error}`;
		// If only send calls made the campaign, its name is its UUID.
		const named = key === campaign ? key : `${key} (${campaign})`;
		return `${this.#times.text(date_created)} ${named}: ${why}`;
	}

	#message(message: PersonMessage, isWhole: boolean): string[] {
		const { id, subject, state, date_created, campaign } = message;
		const of = campaign == null ? '' : ` of campaign ${campaign}`;
		const history = isWhole ? detailLines(message, this.#times) : [];
		return [
			`${this.#times.text(date_created)} ${state} "${subject}"${of} ${id}`,
			...history.map((line) => `  ${line}`),
		];
	}
}

/** The order of `suppressionReasons`: the strongest reason is first. */
const order = ['COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'MANUAL'];
const stopsAll: ReadonlySet<string> = new Set(['COMPLAINED', 'HARDBOUNCED']);

const causes: Readonly<Record<string, { mark: string; text: (day: string, bounce: string) => string }>> = {
	HARDBOUNCED: {
		mark: 'bounced',
		text: (day, bounce) => `a hard bounce suppressed the address on ${day}${bounce}.`,
	},
	SOFTBOUNCED: {
		mark: 'bounced',
		text: (day, bounce) => `too many soft bounces in a row suppressed the address on ${day}${bounce}.`,
	},
	COMPLAINED: {
		mark: 'complaint',
		text: (day) => `a spam complaint suppressed the address on ${day}.`,
	},
	UNSUBSCRIBED: { mark: 'unsubscribed', text: (day) => `the person unsubscribed on ${day}.` },
};

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

/** Removes a full stop, because the quoting sentence adds one. `/[.\s]+$/` would take quadratic time on many blanks. */
function withoutStop(text: string): string {
	let end = text.length;
	while (end > 0 && /[.\s]/.test(text[end - 1] ?? '')) end -= 1;
	return text.slice(0, end);
}

/** Without `--all`, only the newest and the unsent messages show their history, to fit a screen. */
function isTold({ state }: PersonMessage, at: number): boolean {
	return at === 0 || state !== 'sent';
}

function moreLines(recent: readonly PersonMessage[], older: number): string[] {
	const folded = recent.every(isTold) ? [] : ['replies, opens and clicks of all messages'];
	const more = [...folded, ...(older > 0 ? [`${older} older`] : [])];
	return more.length === 0 ? [] : [`${more.join(', ')}: --all`];
}
