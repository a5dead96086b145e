/** The reason why an address gets no mail, or that there is none: in sentences, with the next steps. Pure. */
import type { ListedSubscriber, PersonMessage } from '../../../api/people.js';
import type { WireDateTime } from '../../../api/records.js';
import type { Suppression } from '../../../api/suppressions.js';
import { type Hint, mailctl } from '../../frame/command-line.js';
import type { Times } from '../../render/times.js';
import { deletedText } from '../messages/shown.js';
import type { Held } from './held.js';
import { sourceText } from './page.js';

export interface Answer {
	/** The first one is the answer. Text of strangers is not cleaned. */
	sentences: string[];
	next: Hint[];
}

/** The answer at `now` (a time of the wire): expired suppressions stop no mail. */
export function answerOf(held: Held, { now, times }: { now: WireDateTime; times: Times }): Answer {
	const { email, subscribers, told } = held;
	if (told === null) return untold(held);
	if (told.date_erased !== null) {
		return {
			sentences: [
				`${email} gets no bulk mail: the person was erased on ${times.day(told.date_erased)}, and what was kept about the address is gone.`,
			],
			next: [['if the person joins again: ', mailctl('subscribers', 'erase', email, '--lift')]],
		};
	}
	const inForce = told.suppressions.filter(({ expires_at }) => expires_at === null || expires_at > now);
	const ofAll = strongestOf(inForce.filter(({ list_id }) => list_id === null));
	const last = told.recent[0];
	if (ofAll !== undefined) {
		return {
			sentences: [`${email} gets ${noMail(ofAll)}: ${because(ofAll, { messages: told.recent, times })}`],
			next: liftingOf(email, ofAll, subscribers),
		};
	}
	const stopped = subscribers.flatMap((one) =>
		stoppedIn(email, one, { inForce, messages: told.recent, times }),
	);
	const active = subscribers.filter(
		({ is_active, list_id }) => is_active && !inForce.some((one) => one.list_id === list_id),
	);
	return {
		sentences: [
			...stopped.map(({ sentence }) => sentence),
			...(active.length === 0 ? [] : [`${email} gets the mail of ${listed(active)}.`]),
			...(subscribers.length === 0 ? [`${email} is in no list.`] : []),
			...(last === undefined
				? [noMessages(told, times)]
				: [lastSentence(last, { now, times, isStopped: isStopped(last, subscribers, active) })]),
			...told.left_out
				.slice(0, 1)
				.map(({ key, code, error }) => `Campaign ${key} left it out: ${withoutStop(error ?? code)}.`),
		],
		next: stopped.flatMap(({ next }) => next),
	};
}

function untold({ email, subscribers }: Held): Answer {
	const inactive = subscribers.filter(({ is_active }) => !is_active);
	const active = subscribers.filter(({ is_active }) => is_active);
	return {
		sentences: [
			...inactive.map(
				({ list_name, disable_reason }) =>
					`${email} gets no mail from list ${list_name}: the subscriber is inactive${disable_reason === null ? '' : ` (${disable_reason})`}.`,
			),
			...(active.length === 0 ? [] : [`${email} is active in ${listed(active)}.`]),
			'This service tells nothing about messages, suppressions and bounces: whether a mail went out or came back is for its own pages or support to say.',
		],
		next: inactive.slice(0, 1).map(({ list_id }) => activating(email, list_id)),
	};
}

/** In the order of their strength, as the store has it. */
const order = ['COMPLAINED', 'HARDBOUNCED', 'UNSUBSCRIBED', 'SOFTBOUNCED', 'MANUAL'];

function strongestOf(suppressions: readonly Suppression[]): Suppression | undefined {
	return [...suppressions].sort((a, b) => order.indexOf(a.reason) - order.indexOf(b.reason))[0];
}

function noMail({ reason }: Suppression): string {
	return reason === 'COMPLAINED' || reason === 'HARDBOUNCED' ? 'no mail' : 'no bulk mail of any list';
}

interface Seen {
	messages: readonly PersonMessage[];
	times: Times;
}

function because(suppression: Suppression, { messages, times }: Seen): string {
	const { reason, date_created, source } = suppression;
	const day = times.day(date_created);
	const isTold = source === 'API' || source === 'IMPORT';
	if (isTold && reason !== 'MANUAL')
		return `${sourceText(source)} of ${day} marked the address as ${marks[reason] ?? reason}.`;
	switch (reason) {
		case 'HARDBOUNCED':
			return `a hard bounce of ${day} suppressed the address${bounceText(messages)}.`;
		case 'COMPLAINED':
			return `a complaint (marked as spam) of ${day} suppressed the address.`;
		case 'UNSUBSCRIBED':
			return `the person unsubscribed on ${day}.`;
		case 'SOFTBOUNCED':
			return `too many soft bounces in a row suppressed the address on ${day}${bounceText(messages)}.`;
		case 'MANUAL':
			return source === 'IMPORT'
				? `an import of ${day} suppressed the address.`
				: `the address was suppressed by hand on ${day}.`;
		default:
			return `${String(reason)} since ${day}.`;
	}
}

const marks: Readonly<Record<string, string>> = {
	HARDBOUNCED: 'bounced',
	SOFTBOUNCED: 'bounced',
	COMPLAINED: 'a complaint',
	UNSUBSCRIBED: 'unsubscribed',
};

/** The reply of the newest bounce, `: 550 5.1.1 No such user`; empty without one. */
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

function liftingOf(email: string, { reason }: Suppression, subscribers: readonly ListedSubscriber[]): Hint[] {
	const removal = mailctl('suppressions', 'remove', email, '--reason', reason, '--yes');
	const isBounce = reason === 'HARDBOUNCED' || reason === 'SOFTBOUNCED';
	const when = isBounce ? 'once the mailbox takes mail again' : 'if the person asks for mail';
	const inactive = subscribers.find(({ is_active }) => !is_active);
	return [
		[`${when}: `, removal],
		...(inactive === undefined ? [] : [['then ', activating(email, inactive.list_id)] as const]),
	];
}

function activating(email: string, list_id: number): Hint {
	return mailctl('subscribers', 'activate', email, '--list', String(list_id));
}

function stoppedIn(
	email: string,
	{ list_id, list_name, is_active, disable_reason }: ListedSubscriber,
	{ inForce, ...seen }: Seen & { inForce: readonly Suppression[] },
): { sentence: string; next: Hint[] }[] {
	const ofList = strongestOf(inForce.filter((one) => one.list_id === list_id));
	if (ofList === undefined && is_active) return [];
	const why =
		ofList === undefined
			? `the subscriber is inactive${disable_reason === null ? ', made so by hand or by an import' : ` (${disable_reason})`}.`
			: because(ofList, seen);
	return [
		{
			sentence: `${email} gets no mail from list ${list_name}: ${why}`,
			next: [['if the person asks for mail: ', activating(email, list_id)]],
		},
	];
}

function noMessages(
	{ messages, deleted }: Pick<NonNullable<Held['told']>, 'messages' | 'deleted'>,
	times: Times,
): string {
	if (messages > 0) return 'No message was made for it in the last 30 days.';
	const more = deleted === undefined ? '' : `: ${deletedText(deleted, times)}`;
	return `No message for it is known${more}.`;
}

/** Bulk mail of a list whose mail does not go to the address any more is left out when it is due. */
function isStopped(
	{ type, list_id }: PersonMessage,
	subscribers: readonly ListedSubscriber[],
	active: readonly ListedSubscriber[],
): boolean {
	const isOf = (one: ListedSubscriber) => one.list_id === list_id;
	return type === 'BULK' && subscribers.some(isOf) && !active.some(isOf);
}

/** Of a message that was put off: when its next attempt is; what was said to the one before comes after it. */
function nextAttempt(
	{ attempts, due_at }: Pick<PersonMessage, 'attempts' | 'due_at'>,
	{ now, times }: { now: WireDateTime; times: Times },
): string {
	const next = `attempt ${attempts + 1}`;
	const waits =
		due_at !== null && due_at > now ? `waits for ${next} at ${times.moment(due_at)}` : `is due for ${next}`;
	return attempts === 0 ? waits : `${waits}; attempt ${attempts} was put off`;
}

function lastSentence(
	{ subject, state, date_created, date_sent, due_at, last_reply, attempts, campaign }: PersonMessage,
	{ now, times, isStopped }: { now: WireDateTime; times: Times; isStopped: boolean },
): string {
	const of = campaign == null ? '' : ` (campaign ${campaign})`;
	const what = `The last message, "${subject}" of ${times.day(date_created)}${of},`;
	const said = last_reply === null || last_reply === '' ? '' : `: ${withoutStop(last_reply)}`;
	if (isStopped && (state === 'staged' || state === 'queued' || state === 'deferred'))
		return `${what} is not sent: it is for a list whose mail the address gets no more.`;
	switch (state) {
		case 'sent':
			return `${what} was accepted by the mail server on ${times.day(date_sent ?? date_created)}${said}.`;
		case 'staged':
			return `${what} waits: its campaign is not released.`;
		case 'queued':
		case 'leased':
			if (due_at !== null && due_at > now) return `${what} is planned for ${times.moment(due_at)}.`;
			return `${what} is due and waits for its first delivery.`;
		case 'deferred':
			return `${what} ${nextAttempt({ attempts, due_at }, { now, times })}${said}.`;
		case 'bounced':
			return `${what} bounced${said}.`;
		case 'failed':
			return `${what} failed${said}.`;
		case 'uncertain':
			return `${what} may have arrived or not: its last attempt had no clear end${said}.`;
		case 'canceled':
			return `${what} was canceled${said}.`;
		default:
			return state satisfies never;
	}
}

function listed(subscribers: readonly ListedSubscriber[]): string {
	const names = subscribers.map(({ list_name }) => list_name);
	return `list${names.length === 1 ? '' : 's'} ${names.join(', ')}`;
}

/** The sentence that quotes it has a full stop of its own. By position: such an expression is quadratic on blanks. */
function withoutStop(text: string): string {
	let end = text.length;
	while (end > 0 && /[.\s]/.test(text[end - 1] ?? '')) end -= 1;
	return text.slice(0, end);
}
