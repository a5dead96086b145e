/** One mail transaction (RFC 5321 s.3.3). Counts replies to know which command each one answers. */
import { isAscii } from 'node:buffer';
import { domainToASCII } from 'node:url';
import type { Reply, SmtpPhase } from '../../engine/rules/outcomes.js';
import { localReply, parseReply } from '../reply.js';

/**
 * The next step after a reply. `end_empty`: the server accepted no recipient but waits for a body, so send an empty
 * body. `reset`: send RSET, so that the server forgets the envelope. Only `close` ends the connection.
 */
export type Move = 'go_on' | 'write_body' | 'end_empty' | 'reset' | 'done' | 'close';

export class Transaction {
	readonly mail: Mail;
	readonly commands: readonly string[];
	readonly #isPipelined: boolean;
	readonly #isProbe: boolean;
	readonly #refusedCopies: { to: string; reply: Reply }[] = [];
	#replies = 0;
	#acceptedRecipients = 0;
	#isDotWritten = false;
	#ended: Pick<Conversation, 'kind' | 'reply'> | null = null;

	constructor(mail: Mail, envelope: readonly string[], how: { isPipelined: boolean; isProbe?: boolean }) {
		this.mail = mail;
		this.#isPipelined = how.isPipelined;
		this.#isProbe = how.isProbe === true;
		this.commands = this.#isProbe ? envelope.slice(0, 1) : [...envelope, 'DATA'];
	}

	get phase(): SmtpPhase {
		if (this.#replies === 0) return 'mail';
		if (this.#replies < this.commands.length - 1) return 'rcpt';
		if (this.#replies < this.commands.length) return 'data';
		return this.#isDotWritten ? 'answer' : 'body';
	}

	dotWritten(): void {
		this.#isDotWritten = true;
	}

	take(raw: string): Move {
		const { phase } = this;
		// A 421 ends the session, whatever the command was (RFC 5321 s.3.8).
		if (raw.startsWith('421')) return this.#end('refused', phase === 'body' ? 'answer' : phase, raw);
		const move = this.#isProbe ? this.#probed(raw) : this.#judge(phase, raw);
		this.#replies += 1;
		return move;
	}

	#probed(raw: string): Move {
		const kind = isAcceptance(raw) ? 'accepted' : isRefusal(raw) ? 'refused' : 'broken';
		this.#end(kind, 'mail', raw);
		return kind === 'broken' ? 'close' : 'reset';
	}

	#judge(phase: SmtpPhase, raw: string): Move {
		if (phase === 'mail' || phase === 'rcpt') return this.#envelopeReply(phase, raw);
		if (phase === 'data') return this.#dataReply(raw);
		// The server replied before the end of the body. Only a refusal can be about this message.
		if (phase === 'body')
			return isRefusal(raw) ? this.#end('refused', 'answer', raw) : this.#end('broken', 'body', raw);
		if (!isAcceptance(raw) && !isRefusal(raw)) return this.#end('broken', 'answer', raw);
		this.#end(isAcceptance(raw) ? 'accepted' : 'refused', 'answer', raw);
		return 'done';
	}

	#envelopeReply(phase: 'mail' | 'rcpt', raw: string): Move {
		if (isAcceptance(raw)) {
			if (phase === 'rcpt') this.#acceptedRecipients += 1;
			return 'go_on';
		}
		if (!isRefusal(raw)) return this.#end('broken', phase, raw);
		const copy = this.mail.copies[this.#replies - 2];
		if (copy !== undefined) {
			this.#refusedCopies.push({ to: copy, reply: parseReply('rcpt', raw) });
			return 'go_on';
		}
		this.#end('refused', phase, raw);
		return this.#isPipelined ? 'go_on' : 'reset';
	}

	/** Sends no body if the server refused `to`. With a body, copies would get the mail twice: now, and at the retry. */
	#dataReply(raw: string): Move {
		const isGoAhead = /^3\d{2}/.test(raw);
		if (this.#ended !== null) {
			if (!isGoAhead) return 'reset';
			// Close without the final dot, so that the server discards the message.
			return this.#acceptedRecipients > 0 ? 'close' : 'end_empty';
		}
		if (isGoAhead) return 'write_body';
		// A 2xx is not a reply to DATA, so replies and commands are out of step. Send no body.
		if (!isRefusal(raw)) return this.#end('broken', 'data', raw);
		this.#end('refused', 'data', raw);
		return 'reset';
	}

	/** Keeps the first outcome, because later replies only follow from it. */
	#end(kind: Conversation['kind'], phase: SmtpPhase, raw: string): Move {
		this.#ended ??= { kind, reply: parseReply(phase, raw) };
		return 'close';
	}

	conversation(reason: string): Conversation {
		if (this.#ended === null) return broken(localReply(this.phase, reason));
		const { kind, reply } = this.#ended;
		return { kind, reply, refusedCopies: kind === 'accepted' ? this.#refusedCopies : [] };
	}
}

/** The code must end before other text: `2500` is not a reply code. */
function isAcceptance(raw: string): boolean {
	return /^2\d{2}(?:[ -]|$|\n)/.test(raw);
}

function isRefusal(raw: string): boolean {
	return /^[45]\d{2}(?:[ -]|$|\n)/.test(raw);
}

const cr = 0x0d;
const lf = 0x0a;
const dot = 0x2e;

export const finalDot = '.\r\n';

/** Dot-stuffs a body, even after a lone CR or LF. Some servers end a line there, so commands could be smuggled in. */
export function wireBody(bytes: Buffer): Buffer {
	return isPlainBody(bytes) ? bytes : canonical(bytes);
}

/** UTF-8 takes at most 3 octets for each UTF-16 unit that `length` counts. */
const mostOctets = 3;
const slack = 1024;

export class Joint {
	#memory = Buffer.alloc(0);

	/** The result is valid only until the next call, because calls share a buffer. */
	join(bytes: Buffer, text: string): Buffer {
		const most = bytes.length + mostOctets * text.length;
		if (this.#memory.length < most) this.#memory = Buffer.allocUnsafeSlow(most + slack);
		bytes.copy(this.#memory);
		return this.#memory.subarray(0, bytes.length + this.#memory.write(text, bytes.length));
	}
}

/** Nearly all bodies are plain. For 14 KB, `includes` takes 3 µs and a loop 35 µs. */
function isPlainBody(bytes: Buffer): boolean {
	if (bytes[0] === dot || dotLines.some((dotLine) => bytes.includes(dotLine))) return false;
	const { length } = bytes;
	return length === 0 || (bytes[length - 1] === lf && bytes[length - 2] === cr);
}

/** These are buffers, because Node encodes a string for each search. */
const dotLines = [Buffer.from('\n.'), Buffer.from('\r.')];

function canonical(bytes: Buffer): Buffer {
	const text = bytes
		.toString('latin1')
		.replace(/\r\n|\r|\n/g, '\r\n')
		.replace(/^\./gm, '..');
	return Buffer.from(text.endsWith('\n') ? text : `${text}\r\n`, 'latin1');
}

export type SmtpExtensions = ReadonlyMap<string, string>;

/** Returns MAIL and RCPT, or why the server cannot get this mail. */
export function envelopeOf(mail: Mail, extensions: SmtpExtensions): string[] | Conversation {
	const written = [mail.from, mail.to, ...mail.copies];
	const isPlain = written.every((address) => /^[ -;=?-~]+$/.test(address));
	const [from = '', ...recipients] = isPlain ? written : written.map(asciiDomain);
	// The API has already checked the addresses, but a line break in one would become an SMTP command.
	const isForged = (address: string) => /[\r\n\0<>]/.test(address);
	if (!isPlain && (isForged(from) || recipients.some((one) => one === '' || isForged(one))))
		return unsendable('an address contains a line break or an angle bracket, or is empty');
	const isInternational = !isPlain && ![from, ...recipients].every(isPrintable);
	if (isInternational && !extensions.has('SMTPUTF8'))
		return unsendable('the address needs SMTPUTF8, which the server does not offer');
	const size = extensions.get('SIZE');
	// A SIZE without a number, or of 0, sets no limit (RFC 1870 s.4).
	const maxBytes = Number(size ?? 0);
	const bytes = sizeOf(mail);
	if (maxBytes > 0 && bytes > maxBytes)
		return unsendable(`the message has ${bytes} bytes, and the server accepts ${maxBytes}`);
	let first = `MAIL FROM:<${from}>`;
	if (isInternational) first += ' SMTPUTF8';
	if (extensions.has('8BITMIME') && !isAscii(mail.bytes)) first += ' BODY=8BITMIME';
	if (size !== undefined) first += ` SIZE=${bytes}`;
	return [first, ...recipients.map((address) => `RCPT TO:<${address}>`)];
}

export function unsendable(text: string): Conversation {
	return { kind: 'unsendable', reply: localReply('mail', text), refusedCopies: [] };
}

export function broken(reply: Reply): Conversation {
	return { kind: 'broken', reply, refusedCopies: [] };
}

/** Writes the domain in punycode, so that only the local part can require SMTPUTF8. */
function asciiDomain(address: string): string {
	const at = address.lastIndexOf('@');
	if (at < 0 || isPrintable(address)) return address;
	const domain = address.slice(at + 1);
	return `${address.slice(0, at)}@${domainToASCII(domain) || domain}`;
}

function isPrintable(address: string): boolean {
	return /^[\u0020-\u007e]*$/.test(address);
}

export interface Mail {
	from: string;
	to: string;
	copies: readonly string[];
	/** A message (RFC 5322) with CRLF, not dot-stuffed. With `rest`, only the beginning of the message. */
	bytes: Buffer;
	/** The rest of the message in pieces that mails share: ASCII without a dot at the start of a line. */
	rest?: readonly Buffer[];
}

export function sizeOf({ bytes, rest = [] }: Pick<Mail, 'bytes' | 'rest'>): number {
	return rest.reduce((sum, { length }) => sum + length, bytes.length);
}

/**
 * `broken`: the server gave no usable reply. `reply.phase` says how far the mail got. The phase `answer` means that
 * mailctl wrote the final dot. `unsendable`: mailctl sent nothing, because it cannot compose the mail, or because the
 * mail exceeds what the server supports.
 */
export interface Conversation {
	kind: 'accepted' | 'refused' | 'broken' | 'unsendable';
	reply: Reply;
	refusedCopies: readonly { to: string; reply: Reply }[];
}
