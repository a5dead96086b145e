/** Reads, parses and classifies SMTP replies (RFC 5321 s.4.2, RFC 3463). Their text is untrusted. */
import type { Reply, SmtpPhase } from '../engine/rules/outcomes.js';
import {
	aboutContent,
	aboutSender,
	isUnknownAddress,
	notAboutAddress,
	senderCode,
	unknownAddress,
} from './reply-words.js';
import type { Conversation } from './smtp/transaction.js';

export class ReplyReader {
	readonly #maxBytes: number;
	// Keeps undecoded bytes as latin1, because a packet may end within a UTF-8 character.
	#rest = '';
	#begun = '';

	constructor(maxBytes: number) {
		this.#maxBytes = maxBytes;
	}

	/** Returns the complete replies, with LF between their lines. A line without a code is a reply too. */
	read(chunk: Buffer): readonly string[] {
		const text = chunk.toString('latin1');
		const replies: string[] = [];
		let from = 0;
		// Search only the chunk: searching the whole unfinished line for each packet would take quadratic time.
		for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
			const line = this.#rest + text.slice(from, end);
			this.#begun += line.endsWith('\r') ? line.slice(0, -1) : line;
			if (line[3] === '-' && /^\d{3}/.test(line)) this.#begun += '\n';
			else {
				if (this.#begun !== '') replies.push(decoded(this.#begun));
				this.#begun = '';
			}
			this.#rest = '';
			from = end + 1;
		}
		this.#rest += text.slice(from);
		return replies;
	}

	get isTooLarge(): boolean {
		return this.#rest.length + this.#begun.length > this.#maxBytes;
	}

	/** Returns an unfinished last line that starts like a refusal, because some servers hang up before its end. */
	lastWords(): string | null {
		const words = this.#begun + this.#rest;
		return /^[45]\d{2}(?:[ -]|$)/.test(words) ? decoded(words) : null;
	}
}

function decoded(latin1: string): string {
	return /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, 'latin1').toString('utf8') : latin1;
}

const maxText = 500;

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

const beginningOf = /^([2-5]\d{2})(?:[ -](?:([245]\.\d{1,3}\.\d{1,3})(?:\s|$))?|\r?\n|$)/;

export function localReply(phase: SmtpPhase, text: string): Reply {
	return { phase, code: null, enhanced: null, text: cleanText(text) };
}

export function formatReply({ phase, code, enhanced, text }: Reply): string {
	if (code === null && text.startsWith(`${phase} `)) return text;
	const parts = [code, enhanced, text].filter((part) => part !== null && part !== '');
	return `${phase}: ${parts.join(' ')}`;
}

/** Returns one line of at most 500 characters, without control characters and bidi overrides. */
export function cleanText(text: string): string {
	if (text.length <= maxText && !/[^ -~]| {2}/.test(text)) return text.trim();
	return (
		text
			.slice(0, maxText * 2)
			.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ')
			.replace(/ {2,}/g, ' ')
			.trim()
			.slice(0, maxText)
			// slice() may have split a surrogate pair.
			.replace(/[\ud800-\udbff]$/, '')
	);
}

/**
 * `failed`: final, a soft bounce. `content`: final, without a bounce. `sender`: deferred; several in a row pause the
 * queue. `infrastructure`: pauses the queue at once.
 */
export type Verdict =
	| 'sent'
	| 'hard'
	| 'failed'
	| 'content'
	| 'sender'
	| 'deferred'
	| 'uncertain'
	| 'infrastructure';

interface When {
	kind?: Conversation['kind'];
	phases?: readonly SmtpPhase[];
	codes?: readonly number[];
	enhanced?: RegExp;
	text?: RegExp;
	isUnknown?: true;
}

const rule = (verdict: Verdict, why: string, when: When) => ({ verdict, why, when });

const opening: readonly SmtpPhase[] = ['connect', 'tls', 'greeting', 'ehlo', 'auth'];

/** Replies in these phases may be about the recipient; in `answer`, only if the mail has a single recipient. */
const ofRecipient: readonly SmtpPhase[] = ['rcpt', 'answer'];

const addressCode = /^5\.(?:1\.(?:1|2|3|6|10)|2\.1)$/;
const vagueCode = /^$|^5\.(?:[013]\.0|4\.4|5\.0)$/;
/** The server requires a login (RFC 4954 s.6), another login, or encryption. Every message would get this reply. */
const loginCode = /^(?:[45]\.7\.8|5\.7\.1[14])$/;
const contentCode = /^$|^5\.(?:0\.0|6\.\d+|7\.(?:0|1|9|350))$/;
const unlessNoSender = /^(?!5\.(?:1\.[78]|1\.90|2\.252|4\.5)$)/;
const byWords = 'the text names an unknown address';

/**
 * A plain 550 at RCPT means an unknown mailbox or a policy, so its text decides. If in doubt, the bounce is soft. A
 * wrong suppression loses a subscriber for good, but a wrong soft bounce costs only another attempt.
 */
const rules = [
	rule('sent', '2xx after the final dot', { kind: 'accepted' }),
	rule('failed', 'too large for the server, or it lacks SMTPUTF8', { kind: 'unsendable' }),
	rule('infrastructure', 'no session was opened', { kind: 'broken', phases: opening }),
	rule('infrastructure', 'no session was opened', { phases: opening }),
	rule('uncertain', 'the answer after the dot was lost', { kind: 'broken', phases: ['answer'] }),
	rule('deferred', 'a network fault before the final dot: nothing was sent', { kind: 'broken' }),
	rule('infrastructure', 'the server requires a login', {
		phases: ['mail', 'rcpt', 'data'],
		codes: [530, 534, 535, 538],
	}),
	rule('infrastructure', 'the server requires a login', { phases: ['mail', 'rcpt'], enhanced: loginCode }),
	rule('deferred', 'a transient refusal', { codes: [4] }),
	rule('sender', 'MAIL is refused', { phases: ['mail'], codes: [5] }),
	rule('hard', 'an address code', {
		phases: ofRecipient,
		codes: [5],
		enhanced: addressCode,
		isUnknown: true,
	}),
	rule('hard', byWords, {
		phases: ofRecipient,
		codes: [550, 551, 553],
		enhanced: vagueCode,
		isUnknown: true,
	}),
	rule('hard', byWords, { phases: ofRecipient, codes: [5], enhanced: /^5\.(?:0\.0|4\.4)$/, isUnknown: true }),
	rule('failed', `${byWords}, the code does not`, { codes: [5], enhanced: unlessNoSender, isUnknown: true }),
	rule('sender', 'the text is about the sender', { codes: [5], text: aboutSender }),
	// RFC 5321 s.4.5.3.1.10: a plain 552 at RCPT means too many recipients, and counts as 452.
	rule('deferred', 'too many recipients', { phases: ['rcpt'], codes: [552], enhanced: /^$/ }),
	rule('content', 'the text is about the content of the message', {
		phases: ['body', 'answer'],
		codes: [5],
		enhanced: contentCode,
		text: aboutContent,
	}),
	rule('failed', 'a code for the sender, and a text about the address', {
		codes: [5],
		enhanced: /^5\.7\.1$/,
		text: unknownAddress,
	}),
	rule('sender', 'a code for the sender', { codes: [5], enhanced: senderCode }),
	rule('failed', 'an address code, but its text is about rate, volume, reputation, policy or size', {
		codes: [5],
		enhanced: addressCode,
		text: notAboutAddress,
	}),
	rule('failed', 'a permanent refusal that does not blame the address', { codes: [5] }),
	rule('deferred', 'an unexpected reply', {}),
];

/** `isShared`: the mail has several recipients, so a refusal after the final dot is not a hard bounce. */
export function classify(
	{ kind, reply }: Pick<Conversation, 'kind' | 'reply'>,
	isShared = false,
): { verdict: Verdict; why: string } {
	const said = {
		...reply,
		// qmail writes `(#5.1.1)` at the end.
		enhanced: reply.enhanced ?? /\(#?([45]\.\d\.\d{1,3})\)/.exec(reply.text)?.[1] ?? '',
		text: withoutAddresses(reply.text),
	};
	const found = rules.find(
		({ when, verdict }) =>
			(when.kind ?? 'refused') === kind &&
			(when.phases?.some((phase) => phase === said.phase) ?? true) &&
			(when.codes?.some((code) => code === said.code || code === firstDigit(said)) ?? true) &&
			(when.enhanced?.test(said.enhanced) ?? true) &&
			(when.text?.test(said.text) ?? true) &&
			(when.isUnknown !== true || isUnknownAddress(said.text, addressCode.test(said.enhanced))) &&
			!(isShared && verdict === 'hard' && said.phase === 'answer'),
	);
	return found ?? { verdict: 'deferred', why: 'no rule' };
}

function withoutAddresses(text: string): string {
	return text
		.replaceAll('’', "'")
		.split(' ')
		.map((word) => (word.includes('@') ? word.slice(word.lastIndexOf('>') + 1 || word.length) : word))
		.join(' ');
}

function firstDigit(reply: { code: number | null }): number {
	return Math.floor((reply.code ?? 0) / 100);
}

export function isVague(enhanced: string | null): boolean {
	return enhanced === null || /^[245]\.(?:0\.0|1\.0)$/.test(enhanced);
}
