/**
 * One mail transaction, judged by the server's replies alone: which command a reply answers is a matter of counting,
 * whether the commands left one by one or together.
 */
import type { Reply, SmtpPhase } from '../../store/queue.js';
import type { Conversation, Mail } from '../conversation.js';
import { localReply, parseReply } from '../reply.js';

/**
 * What a reply asks for. `go_on`: the next command, or the next reply. `write_body`: the server waits for it.
 * `end_empty`: it waits for a body that nobody is to get, and has no recipient for it. `reset`: over, and the server
 * must forget the envelope. `done`: over. `close`: over, and so is the connection.
 */
export type Move = 'go_on' | 'write_body' | 'end_empty' | 'reset' | 'done' | 'close';

/** Whether commands leave before their predecessors are answered (RFC 2920). */
export type Pace = 'pipelined' | 'one_by_one';

export interface Transaction {
	readonly mail: Mail;
	/** MAIL, each RCPT, DATA. */
	readonly commands: readonly string[];
	/** What the next reply answers; `body` until the final dot has been handed to the socket. */
	readonly phase: SmtpPhase;
	/** The next reply of the server. */
	take(raw: string): Move;
	dotWritten(): void;
	/** What came of it, if there is nothing more to come; `reason` says why when no reply does. */
	conversation(reason: string): Conversation;
}

/**
 * `envelope`: MAIL, then RCPT of the recipient, then of the copies (the order of `mail.copies`); DATA is added here.
 */
export function createTransaction(mail: Mail, envelope: readonly string[], pace: Pace): Transaction {
	return new CountedTransaction(mail, [...envelope, 'DATA'], pace);
}

class CountedTransaction implements Transaction {
	readonly mail: Mail;
	readonly commands: readonly string[];
	readonly #pace: Pace;
	readonly #refusedCopies: { to: string; reply: Reply }[] = [];
	#replies = 0;
	#acceptedRecipients = 0;
	#isDotWritten = false;
	#ended: Pick<Conversation, 'kind' | 'reply'> | null = null;

	constructor(mail: Mail, commands: readonly string[], pace: Pace) {
		this.mail = mail;
		this.commands = commands;
		this.#pace = pace;
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
		// The session is over, whatever was asked (RFC 5321 s.3.8).
		if (raw.startsWith('421')) return this.#end('refused', phase === 'body' ? 'answer' : phase, raw);
		const move = this.#judge(phase, raw);
		this.#replies += 1;
		return move;
	}

	#judge(phase: SmtpPhase, raw: string): Move {
		switch (phase) {
			case 'mail':
			case 'rcpt':
				return this.#envelopeReply(phase, raw);
			case 'data':
				return this.#dataReply(raw);
			case 'body':
				// Said before it has heard all: a refusal is understood, anything else is not an answer to this message.
				return isRefusal(raw) ? this.#end('refused', 'answer', raw) : this.#end('broken', 'body', raw);
			default:
				return this.#answer(raw);
		}
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
		return this.#pace === 'pipelined' ? 'go_on' : 'reset';
	}

	/**
	 * The recipient whose message it is decides, so that a retry does not bring the copies' readers a further one each
	 * time. PIPELINING has asked for DATA by then; a transaction without its final dot is discarded (RFC 5321 s.4.1.1.4).
	 */
	#dataReply(raw: string): Move {
		const isGoAhead = /^3\d{2}/.test(raw);
		if (this.#ended !== null) {
			if (!isGoAhead) return 'reset';
			return this.#acceptedRecipients > 0 ? 'close' : 'end_empty';
		}
		if (isGoAhead) return 'write_body';
		// A 2xx is not for DATA: replies and commands are out of step, and no body must follow.
		if (!isRefusal(raw)) return this.#end('broken', 'data', raw);
		this.#end('refused', 'data', raw);
		return 'reset';
	}

	#answer(raw: string): Move {
		if (isAcceptance(raw)) this.#end('accepted', 'answer', raw);
		else if (isRefusal(raw)) this.#end('refused', 'answer', raw);
		else return this.#end('broken', 'answer', raw);
		return 'done';
	}

	/** The first end stays: what follows a refusal is only its consequence. */
	#end(kind: Conversation['kind'], phase: SmtpPhase, raw: string): Move {
		this.#ended ??= { kind, reply: parseReply(phase, raw) };
		return 'close';
	}

	conversation(reason: string): Conversation {
		if (this.#ended === null)
			return { kind: 'broken', reply: localReply(this.phase, reason), refusedCopies: [] };
		const { kind, reply } = this.#ended;
		// Copies of a message that went nowhere were not refused for themselves.
		return { kind, reply, refusedCopies: kind === 'accepted' ? this.#refusedCopies : [] };
	}
}

/** A digit and garbage is no reply: nobody knows what the server meant. */
function isAcceptance(raw: string): boolean {
	return /^2\d{2}(?:[ -]|$|\n)/.test(raw);
}

function isRefusal(raw: string): boolean {
	return /^[45]\d{2}(?:[ -]|$|\n)/.test(raw);
}
