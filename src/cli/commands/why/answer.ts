import type { ListedSubscriber, Person, PersonMessage } from '../../../api/people.js';
import type { WireDateTime } from '../../../api/records.js';
import type { Suppression } from '../../../api/suppressions.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { Times } from '../../render/times.js';
import { deletedText } from '../messages.js';
import { sourceText } from './page.js';

/** `told` is null on a service that has only lists and subscribers. */
export interface Held {
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

export function answerOf({ email, subscribers, told }: Held, at: At): Answer {
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
		const when = isBounce ? 'once the mailbox takes mail again: ' : 'if the person asks for mail: ';
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

/** In the order of their strength, as the store has it. */
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
	// Bulk mail of a list that does not go to the address any more is left out when it is due.
	const isStopped =
		message.type === 'BULK' &&
		['staged', 'queued', 'deferred'].includes(state) &&
		stopped.some((one) => one.list_id === list_id);
	const what = isStopped ? 'is not sent: it is for a list whose mail the address gets no more' : told[state];
	return `The last message, "${subject}" of ${times.day(date_created)}${of}, ${what}.`;
}

/** The quoting sentence ends with a full stop. A regular expression would be quadratic on blanks. */
function withoutStop(text: string): string {
	let end = text.length;
	while (end > 0 && /[.\s]/.test(text[end - 1] ?? '')) end -= 1;
	return text.slice(0, end);
}
