import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { EventType, MessageState, Uuid } from '../../api/records.js';

export type DeliveryOutcome =
	| { kind: 'sent'; reply: Reply }
	| { kind: 'deferred'; reply: Reply; due_at: Micros }
	| { kind: 'uncertain'; reply: Reply }
	| { kind: 'bounced'; reply: Reply; suppress: boolean }
	| { kind: 'failed'; reply: Reply; uncounted?: true }
	| { kind: 'suppressed'; reply: Reply }
	/** The message waits until `due_at`, so that other messages are sent first. */
	| { kind: 'released'; why: 'infrastructure' | 'drain'; due_at?: Micros };

export type SmtpPhase = 'connect' | 'tls' | 'greeting' | 'ehlo' | 'auth' | TransactionPhase;
type TransactionPhase = 'mail' | 'rcpt' | 'data' | 'body' | 'answer';

/**
 * `code` is null if no reply came. `text` has at most 500 characters, without CR and LF. A send API (`call`) gives its
 * HTTP status as `code`, its error code as `enhanced`, and the message id as `text`.
 */
export interface Reply {
	phase: SmtpPhase | 'call';
	code: number | null;
	enhanced: string | null;
	text: string;
}

export interface OutcomeEffect {
	state: MessageState;
	due_at: Micros | null;
	reply: Reply | null;
	event: 'SENT' | 'SOFTBOUNCED' | 'HARDBOUNCED' | null;
	suppresses: boolean;
}

export function effectOf(
	outcome: DeliveryOutcome,
	before: { attempts: number; due_at: Micros },
): OutcomeEffect {
	const reply = outcome.kind === 'released' ? null : outcome.reply;
	const final = { reply, due_at: null, event: null, suppresses: false };
	switch (outcome.kind) {
		case 'sent':
			return { ...final, state: 'sent', event: 'SENT' };
		case 'deferred':
			return { ...final, state: 'deferred', due_at: outcome.due_at };
		case 'uncertain':
			return { ...final, state: 'uncertain' };
		case 'bounced':
			return { ...final, state: 'bounced', event: 'HARDBOUNCED', suppresses: outcome.suppress };
		case 'suppressed':
			return { ...final, state: 'canceled' };
		case 'failed':
			return { ...final, state: 'failed', event: outcome.uncounted ? null : 'SOFTBOUNCED' };
		case 'released': {
			const state = before.attempts > 0 ? 'deferred' : 'queued';
			return { ...final, state, due_at: outcome.due_at ?? before.due_at };
		}
	}
}

export function isBounce(outcome: DeliveryOutcome): boolean {
	return outcome.kind === 'bounced' || (outcome.kind === 'failed' && !outcome.uncounted);
}

export function replyLine({ code, enhanced, text }: Reply): string {
	return [code, enhanced, text].filter((part) => part !== null && part !== '').join(' ');
}

export function readReplyLine(line: string): Reply {
	const [, code, enhanced = null, text = ''] =
		/^(\d{3})(?: (\d\.\d{1,3}\.\d{1,3}))?(?: (.*))?$/s.exec(line) ?? [];
	if (code === undefined) return { phase: 'answer', code: null, enhanced: null, text: line };
	return { phase: 'answer', code: Number(code), enhanced, text };
}

export type MessageAction = 'cancel' | 'retry';

type ActionRule = { kind: 'to'; state: MessageState } | { kind: 'refused'; why: string };

const inHands = refused('is being handled by a worker');

/**
 * `retry` accepts `uncertain` and `failed` messages, because the user may know more about their outcome or cause. It
 * refuses `bounced` messages, because their addresses are bad.
 */
const rules: Readonly<Record<MessageAction, Readonly<Record<MessageState, ActionRule>>>> = {
	cancel: {
		staged: to('canceled'),
		queued: to('canceled'),
		deferred: to('canceled'),
		canceled: to('canceled'),
		leased: inHands,
		sent: refused('is sent'),
		bounced: refused('has bounced'),
		failed: refused('has failed'),
		uncertain: refused('may have been sent already'),
	},
	retry: {
		uncertain: to('queued'),
		queued: to('queued'),
		deferred: to('deferred'),
		staged: refused('waits for the release of its campaign'),
		leased: inHands,
		sent: refused('is sent'),
		bounced: refused('has bounced'),
		failed: to('queued'),
		canceled: refused('was canceled'),
	},
};

export function ruleOf(action: MessageAction, from: MessageState): ActionRule {
	return rules[action][from];
}

function to(state: MessageState): ActionRule {
	return { kind: 'to', state };
}

function refused(why: string): ActionRule {
	return { kind: 'refused', why };
}

/** `human` excludes opens and clicks by prefetching proxies and link scanners. */
export type Audience = 'all' | 'human';

export type Firsts = Readonly<Record<Audience, Micros | null>>;

interface FigureMove {
	audience: Audience;
	from: Micros | null;
	to: Micros;
}

/** Events may arrive out of order. If a new event is the oldest, the count moves to the day of that event. */
export function figureMoves(firsts: Firsts, event: { at: Micros; machine: boolean }): FigureMove[] {
	const audiences: readonly Audience[] = event.machine ? ['all'] : ['all', 'human'];
	return audiences
		.map((audience) => ({ audience, from: firsts[audience], to: event.at }))
		.filter(({ from, to }) => from === null || to < from);
}

/**
 * True if an event follows the sending so closely that a bot must have caused it. Also true for a message not yet
 * recorded as sent, because a mail server may just have accepted it.
 */
export function isTooSoon(
	message: { state: MessageState; sent_at: Micros | null },
	event: { at: Micros; too_soon?: Micros },
): boolean {
	if (event.too_soon === undefined) return false;
	if (message.sent_at !== null) return event.at < message.sent_at + event.too_soon;
	return message.state === 'queued' || message.state === 'leased' || message.state === 'deferred';
}

export function hasAudiences(type: EventType): boolean {
	return type === 'OPENED' || type === 'REDIRECTED' || type === 'UNSUBSCRIBED';
}

/** Opens and clicks change only the counts of their message. */
export function isReading({ type }: { type: EventType }): boolean {
	return type === 'OPENED' || type === 'REDIRECTED';
}

export interface ReturnedReport {
	sha256: string;
	at: Micros;
	message: Uuid;
	matched: 'return_path' | 'message_id';
	kind: 'bounce' | 'complaint';
	recipients: readonly ReportedAddress[];
}

export interface ReportedAddress {
	addresses: readonly EmailKey[];
	hard: boolean;
	uncounted?: true;
	smtp_code: string | null;
	diagnostic: string | null;
}

export interface Recipients {
	to: EmailKey;
	copies: readonly EmailKey[];
}

export interface Finding extends Omit<ReportedAddress, 'addresses'> {
	address: EmailKey;
	isTo: boolean;
}

/**
 * Returns the recipients that a report names. A report on a forwarded mail may name none of the recipients. In that
 * case, this function returns the only recipient, or nothing if there are several. This bounce is hard only if
 * `isWithin` accepts an address of each entry, because the recipient may be a mailing list with a bad member. A report
 * matched by Message-ID that names only other addresses proves nothing: replies and archives quote Message-IDs.
 */
export function findingsOf(
	recipients: Recipients,
	report: Pick<ReturnedReport, 'kind' | 'matched' | 'recipients'>,
): Finding[] {
	const { to, copies } = recipients;
	const { kind, matched } = report;
	const named = [to, ...copies].flatMap((address) => {
		const entries = report.recipients.filter(({ addresses }) => addresses.includes(address));
		return foundAt(address, entries, to);
	});
	if (named.length > 0) return named;
	if (copies.length > 0 || (matched === 'message_id' && report.recipients.length > 0)) return [];
	return foundAt(to, report.recipients, to, kind).map((finding) => ({
		...finding,
		hard: finding.hard && report.recipients.every(({ addresses }) => addresses.some(isWithin(to))),
	}));
}

/** `ann@mx1.example.org` is within `ann@example.org`: the same name at a host below the domain. */
function isWithin(recipient: EmailKey): (address: EmailKey) => boolean {
	const at = recipient.lastIndexOf('@');
	return (address) =>
		address.startsWith(recipient.slice(0, at + 1)) && address.endsWith(`.${recipient.slice(at + 1)}`);
}

/** A bounce is hard only if all entries are hard: one of two forwarding addresses may work. */
function foundAt(
	address: EmailKey,
	entries: readonly ReportedAddress[],
	to: EmailKey,
	kind: ReturnedReport['kind'] = 'bounce',
): Finding[] {
	const telling = entries.find(({ hard }) => !hard) ?? entries[0];
	if (telling === undefined && kind === 'bounce') return [];
	const { addresses: _, ...told } = telling ?? { hard: false, smtp_code: null, diagnostic: null };
	return [{ address, isTo: address === to, ...told }];
}
