/** Judges a conversation by a table: by code, then enhanced code, then text, and always by phase. */
import type { Reply, SmtpPhase } from '../store/queue.js';
import type { Conversation } from './conversation.js';

/**
 * `sent`: taken. `hard`: the address is no good, suppress it. `failed`: this message will not be taken, the address
 * stays. `deferred`: later. `uncertain`: taken or not, nobody knows. `infrastructure`: our login, TLS, route or
 * server; the queue pauses and no message is the worse for it.
 */
export type Verdict = 'sent' | 'hard' | 'failed' | 'deferred' | 'uncertain' | 'infrastructure';

/** One row; an absent condition holds always. The first row that fits decides. */
export interface Rule {
	kinds: readonly Conversation['kind'][];
	phases?: readonly SmtpPhase[];
	/** First digit of the code, or the whole code. */
	codes?: readonly number[];
	enhanced?: readonly string[];
	/** `vague`: no enhanced code, or one that says nothing (x.0.0, x.1.0); only then the text is asked. */
	text?: RegExp;
	verdict: Verdict;
	why: string;
}

const opening: readonly SmtpPhase[] = ['connect', 'tls', 'greeting', 'ehlo', 'auth'];

/**
 * What servers write when a mailbox does not exist. "Mailbox unavailable" is not among them: it is RFC 5321's own
 * text for 550, which also stands for refusals by policy.
 */
const unknownUser =
	/\b(?:unknown (?:user|recipient|mailbox|address)|(?:user|recipient|mailbox|address|account) (?:is )?(?:unknown|not found|does not exist|doesn't exist|no longer exists)|no such (?:user|recipient|mailbox|person|address|account)|(?:invalid|nonexistent) (?:recipient|mailbox|user)|user (?:is )?not known)\b/i;

/**
 * A plain 550 at RCPT is "other 5xx": the code alone covers unknown mailboxes and refusals by policy alike, and a
 * wrong suppression loses a reader for good, while a wrong soft bounce costs one more try by a later mailing. Its
 * text decides when it names an unknown user; 551 and 553 in the same way.
 */
export const rules: readonly Rule[] = [
	{ kinds: ['accepted'], verdict: 'sent', why: '2xx after the final dot' },
	{ kinds: ['unsendable'], verdict: 'failed', why: 'too large for the server, or it lacks SMTPUTF8' },
	{ kinds: ['broken'], phases: opening, verdict: 'infrastructure', why: 'no session' },
	{ kinds: ['refused'], phases: opening, verdict: 'infrastructure', why: 'no session' },
	{ kinds: ['broken'], phases: ['answer'], verdict: 'uncertain', why: 'the answer after the dot was lost' },
	{ kinds: ['broken'], verdict: 'deferred', why: 'network, before the dot: nothing was taken' },
	// RFC 4954 s.6: the server wants a login, another one, or encryption first; every message would hear the same.
	{
		kinds: ['refused'],
		phases: ['mail', 'rcpt', 'data'],
		codes: [530, 534, 535, 538],
		verdict: 'infrastructure',
		why: 'login',
	},
	{
		kinds: ['refused'],
		phases: ['mail', 'rcpt'],
		enhanced: ['5.7.8', '4.7.8', '5.7.11', '5.7.14'],
		verdict: 'infrastructure',
		why: 'login',
	},
	{ kinds: ['refused'], codes: [4], verdict: 'deferred', why: 'transient' },
	// RFC 5321 s.4.5.3.1.10: a plain 552 at RCPT means too many recipients and is to be read as 452.
	{
		kinds: ['refused'],
		phases: ['rcpt'],
		codes: [552],
		enhanced: [''],
		verdict: 'deferred',
		why: 'too many recipients',
	},
	{
		kinds: ['refused'],
		phases: ['rcpt'],
		codes: [5],
		enhanced: ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'],
		verdict: 'hard',
		why: 'an address code',
	},
	{
		kinds: ['refused'],
		phases: ['rcpt'],
		codes: [550, 551, 553],
		text: unknownUser,
		verdict: 'hard',
		why: 'the text names an unknown user',
	},
	{ kinds: ['refused'], codes: [5], verdict: 'failed', why: 'refused for good, the address may be fine' },
	{ kinds: ['refused'], verdict: 'deferred', why: 'an answer out of place' },
];

/** The verdict of the first rule that fits; `broken` before the dot is the last resort of none. */
export function classify(conversation: Conversation): { verdict: Verdict; why: string } {
	const rule = rules.find((candidate) => fits(candidate, conversation.kind, conversation.reply));
	return rule ?? { verdict: 'deferred', why: 'no rule' };
}

function fits(rule: Rule, kind: Conversation['kind'], reply: Reply): boolean {
	return (
		rule.kinds.includes(kind) &&
		(rule.phases?.includes(reply.phase) ?? true) &&
		(rule.codes?.some((code) => code === reply.code || code === firstDigit(reply)) ?? true) &&
		(rule.enhanced?.includes(reply.enhanced ?? '') ?? true) &&
		(rule.text === undefined || (isVague(reply.enhanced) && rule.text.test(reply.text)))
	);
}

function firstDigit(reply: Reply): number {
	return Math.floor((reply.code ?? 0) / 100);
}

/** Whether an enhanced code says nothing (none, x.0.0, x.1.0), so that the text may be asked. */
export function isVague(enhanced: string | null): boolean {
	return enhanced === null || /^[245]\.(?:0\.0|1\.0)$/.test(enhanced);
}
