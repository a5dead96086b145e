/**
 * SMTP replies (RFC 5321 s.4.2) with their enhanced codes (RFC 3463): read, parsed, and classified by a table. The text is
 * untrusted.
 */
import type { Reply, SmtpPhase } from '../engine/rules/outcomes.js';
import type { Conversation } from './smtp/conversation.js';

export interface ReplyReader {
	/**
	 * The replies that a chunk completes, continuation lines joined by LF, without CRs. A line without a code is a reply
	 * of its own, to be classified elsewhere.
	 */
	read(chunk: Buffer): readonly string[];
	/** A reply has exceeded the limit: further data is of no use. */
	readonly isTooLarge: boolean;
	/** The last line without a line end, if it begins as a refusal: some servers hang up in the middle of it. */
	lastWords(): string | null;
}

/** `maxBytes` bounds one reply. */
export function createReplyReader(maxBytes: number): ReplyReader {
	// Bytes as latin1, so that a character split by a packet is whole again when it is decoded.
	let rest = '';
	/** The lines of a reply so far, with their LFs. */
	let begun = '';
	/** The reply that a line completes; null while it goes on. Empty lines between replies are ignored. */
	const add = (line: string): string | null => {
		begun += line.endsWith('\r') ? line.slice(0, -1) : line;
		if (isContinued(line)) {
			begun += '\n';
			return null;
		}
		const reply = begun;
		begun = '';
		return reply === '' ? null : decoded(reply);
	};
	return {
		read(chunk) {
			const text = chunk.toString('latin1');
			const replies: string[] = [];
			let from = 0;
			// The chunk alone is searched: all of a line without an end for each packet takes quadratic time.
			for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
				const reply = add(rest + text.slice(from, end));
				if (reply !== null) replies.push(reply);
				rest = '';
				from = end + 1;
			}
			rest += text.slice(from);
			return replies;
		},
		get isTooLarge() {
			return rest.length + begun.length > maxBytes;
		},
		lastWords() {
			const words = begun + rest;
			return /^[45]\d{2}(?:[ -]|$)/.test(words) ? decoded(words) : null;
		},
	};
}

function isContinued(line: string): boolean {
	return line[3] === '-' && /^\d{3}/.test(line);
}

function decoded(latin1: string): string {
	return /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, 'latin1').toString('utf8') : latin1;
}

/** The characters of a reply that are kept. */
const maxText = 500;

/** Parses a raw reply with its continuation lines. A text without a code has `code` null. */
export function parseReply(phase: SmtpPhase, raw: string): Reply {
	const [, code, enhanced = null] = beginningOf.exec(raw) ?? [];
	if (code === undefined) return { phase, code: null, enhanced: null, text: cleanText(raw) };
	const lines = raw.includes('\n') ? raw.split(/\r?\n/) : [raw];
	const told = lines.map((line) => {
		const text = line.replace(/^\d{3}[ -]?/, '');
		return enhanced !== null && text.startsWith(enhanced) ? text.slice(enhanced.length) : text;
	});
	return { phase, code: Number(code), enhanced, text: cleanText(told.join(' ')) };
}

/** Code and enhanced code. */
const beginningOf = /^([2-5]\d{2})(?:[ -](?:([245]\.\d{1,3}\.\d{1,3})(?:\s|$))?|\r?\n|$)/;

/** A local error, where the server did not reply. */
export function localReply(phase: SmtpPhase, text: string): Reply {
	return { phase, code: null, enhanced: null, text: cleanText(text) };
}

/** For people and logs: `rcpt: 550 5.1.1 User unknown`; where the system's text names the phase, it appears once. */
export function formatReply({ phase, code, enhanced, text }: Reply): string {
	if (code === null && text.startsWith(`${phase} `)) return text;
	const parts = [code, enhanced, text].filter((part) => part !== null && part !== '');
	return `${phase}: ${parts.join(' ')}`;
}

/**
 * One line of at most 500 characters without control characters and bidi overrides. Cut first: it may be a megabyte.
 */
export function cleanText(text: string): string {
	// Nearly all are one line of ASCII.
	if (text.length <= maxText && !/[^ -~]| {2}/.test(text)) return text.trim();
	return (
		text
			.slice(0, maxText * 2)
			.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ')
			.replace(/ {2,}/g, ' ')
			.trim()
			.slice(0, maxText)
			// The cut may have split a surrogate pair.
			.replace(/[\ud800-\udbff]$/, '')
	);
}

/**
 * `sent`: accepted. `hard`: the address is invalid, suppress it. `failed`: this message is refused, the address stays.
 * `deferred`: later. `uncertain`: accepted or not, unknown. `infrastructure`: our login, TLS, route or server; the
 * queue pauses and no message is affected.
 */
export type Verdict = 'sent' | 'hard' | 'failed' | 'deferred' | 'uncertain' | 'infrastructure';

/** One row; an absent condition holds always. The first matching row decides. */
export interface Rule {
	kinds: readonly Conversation['kind'][];
	phases?: readonly SmtpPhase[];
	/** First digit of the code, or the whole code. */
	codes?: readonly number[];
	enhanced?: readonly string[];
	/** Matched against the text where a row names its enhanced codes, or where the code is vague: none, x.0.0, x.1.0. */
	text?: RegExp;
	verdict: Verdict;
	why: string;
}

const opening: readonly SmtpPhase[] = ['connect', 'tls', 'greeting', 'ehlo', 'auth'];

/**
 * Server texts for an unknown mailbox. "Mailbox unavailable" is not among them: it is RFC 5321's own text for 550,
 * which also stands for refusals by policy.
 */
const unknownUser =
	/\b(?:unknown (?:user|recipient|mailbox|address)|(?:user|recipient|mailbox|address|account) (?:is )?(?:unknown|not found|does not exist|doesn't exist|no longer exists)|no such (?:user|recipient|mailbox|person|address|account)|(?:invalid|nonexistent) (?:recipient|mailbox|user)|user (?:is )?not known)\b/i;

/** Codes for an invalid address. */
const addressCodes = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'];

/**
 * Servers also send an address code for problems of the sender, the moment or the message: the rate or volume of mail,
 * a reputation, a policy, a size, a full mailbox. Addresses are removed from the text first: they may contain any word.
 */
const notAboutAddress =
	/\b(?:at a rate|(?:sending|message|mail|receiv\w{1,3}|connection|hourly|daily) (?:rate|limits?)|rate[ -]?limit\w{0,3}|too (?:many|much|fast|frequent\w{0,2}|large|big|quickly)|throttl\w{1,3}|volume|reputation|policy|policies|prohibited|spam\w{0,8}|junk|unsolicited|phish\w{0,4}|virus|malware|suspicious|(?:black|block|deny)[ -]?list\w{0,3}|blocked|banned|dns[bw]l|rbl|spf|dkim|dmarc|(?:over|exceed\w{0,3}|out of) (?:\w{1,12} ){0,3}(?:quota|limits?|size|storage)|quota|(?:mail ?box|inbox|folder) (?:is |was )?(?:over)?full|(?:message|mail|size)(?: \w{1,12}){0,2} (?:exceed\w{0,3}|limit\w{0,3})|size limit|storage|greylist\w{0,3}|temporar\w{1,5}|try (?:again|later)|again later|access denied|relay(?:ing)? (?:access )?(?:denied|not)|unable to relay|sender (?:address )?(?:rejected|denied|blocked|verif\w{1,8}|domain|not)|your (?:ip|server|host|domain|network)|reverse dns|authenticat\w{1,4}|(?:mail|forwarding) loops?|loops? (?:back|detected)|too many hops|content (?:rejected|filter|denied))\b|spamhaus|spamcop|barracudacentral|proofpoint\.com|сп[ао]м|スパム|迷惑メール|垃圾邮件/i;

/**
 * A plain 550 at RCPT is "other 5xx": the code alone covers unknown mailboxes and refusals by policy alike. A wrong
 * suppression loses a reader for good, while a wrong soft bounce costs one more try by a later campaign. Its text
 * decides when it names an unknown user; the same for 551 and 553.
 */
export const rules: readonly Rule[] = [
	{ kinds: ['accepted'], verdict: 'sent', why: '2xx after the final dot' },
	{ kinds: ['unsendable'], verdict: 'failed', why: 'too large for the server, or it lacks SMTPUTF8' },
	{ kinds: ['broken'], phases: opening, verdict: 'infrastructure', why: 'no session' },
	{ kinds: ['refused'], phases: opening, verdict: 'infrastructure', why: 'no session' },
	{ kinds: ['broken'], phases: ['answer'], verdict: 'uncertain', why: 'the answer after the dot was lost' },
	{ kinds: ['broken'], verdict: 'deferred', why: 'network, before the dot: nothing was taken' },
	// RFC 4954 s.6: the server wants a login, another one, or encryption first; every message would get the same reply.
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
		enhanced: addressCodes,
		text: notAboutAddress,
		verdict: 'failed',
		why: 'an address code, but its text is about rate, volume, reputation, policy or size',
	},
	{
		kinds: ['refused'],
		phases: ['rcpt'],
		codes: [5],
		enhanced: addressCodes,
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

/** The verdict of the first matching rule; `broken` before the dot where no rule matches. */
export function classify(conversation: Conversation): { verdict: Verdict; why: string } {
	const rule = rules.find((candidate) => fits(candidate, conversation.kind, conversation.reply));
	return rule ?? { verdict: 'deferred', why: 'no rule' };
}

function fits(rule: Rule, kind: Conversation['kind'], reply: Reply): boolean {
	return (
		rule.kinds.includes(kind) &&
		(rule.phases?.some((phase) => phase === reply.phase) ?? true) &&
		(rule.codes?.some((code) => code === reply.code || code === firstDigit(reply)) ?? true) &&
		(rule.enhanced?.includes(reply.enhanced ?? '') ?? true) &&
		(rule.text === undefined || saysSo(rule, rule.text, reply))
	);
}

function saysSo({ enhanced }: Rule, expected: RegExp, reply: Reply): boolean {
	if (enhanced !== undefined) return expected.test(withoutAddresses(reply.text));
	return isVague(reply.enhanced) && expected.test(reply.text);
}

function withoutAddresses(text: string): string {
	return text
		.split(' ')
		.filter((word) => !word.includes('@'))
		.join(' ');
}

function firstDigit(reply: Reply): number {
	return Math.floor((reply.code ?? 0) / 100);
}

/** Whether an enhanced code is vague (none, x.0.0, x.1.0), so that the text decides. */
export function isVague(enhanced: string | null): boolean {
	return enhanced === null || /^[245]\.(?:0\.0|1\.0)$/.test(enhanced);
}
