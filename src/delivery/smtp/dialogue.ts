/**
 * The talk on an open session: mail after mail, MAIL to DATA. Where the server takes PIPELINING (RFC 2920) the commands
 * of a mail leave together, and those of the next one behind the body of the one before: one packet each way a mail.
 */
import type { SmtpPhase } from '../../store/queue.js';
import type { Conversation, Mail } from '../conversation.js';
import { envelopeOf, type SmtpExtensions } from './envelope.js';
import { createReplyReader } from './reply-reader.js';
import { createTransaction, type Move, type Transaction } from './transaction.js';
import { finalDot, wireBody } from './wire-body.js';

export interface DialogueOptions {
	extensions: SmtpExtensions;
	/** Hands bytes to the socket; false: wait for `drained` before the next. */
	write: (bytes: Buffer | string) => boolean;
	/** The connection is of no more use, as the dialogue sees it; it has told everybody already. */
	close: () => void;
	/** What is waited for now; null when nothing is. Called again whenever the wait begins anew. */
	onWait: (phase: SmtpPhase | null) => void;
	/** `line` without its line end; bodies are not told. */
	onTrace?: ((entry: { from: 'client' | 'server'; line: string }) => void) | undefined;
}

export interface Dialogue {
	/** Mails begun or waiting on this connection. */
	readonly size: number;
	/** How many it takes at once: with PIPELINING 3, of which the first is answered, the second written, the third ready. */
	readonly capacity: number;
	/** `null`: the connection ended while an earlier mail was on it, and nothing was said about this one. */
	send(mail: Mail): Promise<Conversation | null>;
	receive(chunk: Buffer): void;
	drained(): void;
	/** The connection is gone, or is being cut; said once or again. */
	ended(reason: string): void;
	/** Says QUIT; the answer ends the connection. */
	quit(): void;
}

/**
 * For one session that is ready for mail, with the extensions it named last. The socket is the caller’s, who tells it
 * what comes in and when it ends.
 */
export function createDialogue(options: DialogueOptions): Dialogue {
	return new PipelinedDialogue(options);
}

/** A server that never ends its reply is cut here; RFC 5321 s.4.5.3.1.5 allows 512 octets a line. */
const maxReplyBytes = 64 * 1024;
/** Bodies go out in pieces, so that a large one waits in one place and not in the socket's queue too. */
const sliceBytes = 64 * 1024;

interface Entry {
	transaction: Transaction;
	finish: (conversation: Conversation | null) => void;
}

/** Whoever a reply is for. */
type Addressee = Entry | 'reset' | 'empty_body' | 'quit';

class PipelinedDialogue implements Dialogue {
	readonly #options: DialogueOptions;
	readonly #isPipelined: boolean;
	readonly #replies = createReplyReader(maxReplyBytes);
	/** Not finished, oldest first. */
	readonly #entries: Entry[] = [];
	/** Of these, how many have begun. */
	#begun = 0;
	/** Commands that may leave when it is their turn, and whose they are. */
	readonly #commands: { line: string; addressee: Addressee }[] = [];
	/** Whose the next replies are. */
	readonly #expected: Addressee[] = [];
	/** Since DATA was written: nothing else may be, until its reply and its body are through. */
	#isHeld = false;
	#unwritten: { bytes: Buffer; entry: Entry } | null = null;
	#isEnded = false;

	constructor(options: DialogueOptions) {
		this.#options = options;
		this.#isPipelined = options.extensions.has('PIPELINING');
	}

	get size(): number {
		return this.#entries.length;
	}

	get capacity(): number {
		return this.#isPipelined ? 3 : 1;
	}

	send(mail: Mail): Promise<Conversation | null> {
		const envelope = envelopeOf(mail, this.#options.extensions);
		if (envelope.kind === 'unsendable') return Promise.resolve(envelope.conversation);
		if (this.#isEnded) return Promise.resolve(null);
		const pace = this.#isPipelined ? 'pipelined' : 'one_by_one';
		const transaction = createTransaction(mail, envelope.commands, pace);
		return new Promise((finish) => {
			this.#entries.push({ transaction, finish });
			this.#writeCommands();
		});
	}

	receive(chunk: Buffer): void {
		if (this.#isEnded) return;
		const replies = this.#replies.read(chunk);
		for (const raw of replies) {
			this.#options.onTrace?.({ from: 'server', line: raw });
			this.#take(raw);
			if (this.#isEnded) return;
		}
		if (this.#replies.isTooLarge) {
			this.#end('the server never ends its reply');
			this.#options.close();
			return;
		}
		if (replies.length === 0) return;
		// Now, and not where it was asked for: a reply that came in the same packet is not an answer to the body.
		if (this.#unwritten === null) this.#write(this.#dueCommands());
		else this.#writeBody();
		this.#options.onWait(this.#phase);
	}

	drained(): void {
		if (this.#unwritten === null || this.#isEnded) return;
		this.#writeBody();
		if (this.#unwritten === null) this.#options.onWait(this.#phase);
	}

	ended(reason: string): void {
		if (this.#isEnded) return;
		const lastWords = this.#replies.lastWords();
		const [first] = this.#expected;
		if (lastWords !== null && first !== undefined && typeof first !== 'string')
			first.transaction.take(lastWords);
		this.#end(reason);
	}

	quit(): void {
		if (this.#isEnded) return;
		this.#commands.push({ line: 'QUIT', addressee: 'quit' });
		this.#writeCommands();
	}

	#take(raw: string): void {
		const addressee = this.#expected.shift() ?? this.#unwritten?.entry;
		// Nobody asked, so what comes next would be taken for an answer to something else.
		if (addressee === undefined) this.#close();
		else if (typeof addressee !== 'string') this.#move(addressee, addressee.transaction.take(raw));
		else if (!isWelcome(addressee, raw)) this.#close();
	}

	#move(entry: Entry, move: Move): void {
		switch (move) {
			case 'go_on':
				return;
			case 'write_body':
				this.#unwritten = { bytes: wireBody(entry.transaction.mail.bytes), entry };
				return;
			case 'end_empty':
				this.#isHeld = false;
				this.#finish(entry);
				this.#commands.push({ line: '.', addressee: 'empty_body' });
				return;
			case 'reset':
				this.#isHeld = false;
				this.#finish(entry);
				// Without those of its commands that have not left.
				this.#commands.splice(0, this.#commands.length, { line: 'RSET', addressee: 'reset' });
				return;
			case 'done':
				this.#finish(entry);
				return;
			case 'close':
				this.#finish(entry);
				this.#close();
		}
	}

	/** As much as the socket takes, and with the end of it the commands that may follow. */
	#writeBody(): void {
		while (this.#unwritten !== null) {
			const { bytes, entry } = this.#unwritten;
			if (bytes.length > sliceBytes) {
				this.#unwritten.bytes = bytes.subarray(sliceBytes);
				if (!this.#options.write(bytes.subarray(0, sliceBytes))) return;
				continue;
			}
			this.#unwritten = null;
			this.#isHeld = false;
			// From the moment the final dot is given away nobody can tell any more whether it arrived.
			entry.transaction.dotWritten();
			this.#expected.push(entry);
			this.#write(Buffer.concat([bytes, Buffer.from(finalDot + this.#dueCommands())]));
		}
	}

	/** Outside a reply: who is waited for already keeps his deadline. */
	#writeCommands(): void {
		const wasWaiting = this.#expected.length > 0 || this.#unwritten !== null;
		this.#write(this.#dueCommands());
		if (!wasWaiting) this.#options.onWait(this.#phase);
	}

	/** What may be written now, as one text; from then on its replies are expected. */
	#dueCommands(): string {
		let text = '';
		while (!this.#isHeld && (this.#isPipelined || this.#expected.length === 0)) {
			if (this.#commands.length === 0) this.#begin();
			const command = this.#commands.shift();
			if (command === undefined) break;
			this.#options.onTrace?.({ from: 'client', line: command.line });
			text += `${command.line}\r\n`;
			this.#expected.push(command.addressee);
			this.#isHeld = command.line === 'DATA';
		}
		return text;
	}

	/** The commands of the next mail, if there is one. */
	#begin(): void {
		const entry = this.#entries[this.#begun];
		if (entry === undefined) return;
		this.#begun += 1;
		for (const line of entry.transaction.commands) this.#commands.push({ line, addressee: entry });
	}

	#write(bytes: Buffer | string): void {
		if (bytes.length > 0) this.#options.write(bytes);
	}

	get #phase(): SmtpPhase | null {
		const first = this.#expected[0] ?? this.#unwritten?.entry;
		if (first === undefined) return null;
		return typeof first === 'string' ? 'mail' : first.transaction.phase;
	}

	#finish(entry: Entry): void {
		this.#entries.shift();
		this.#begun -= 1;
		entry.finish(entry.transaction.conversation('the connection was closed'));
	}

	/** What is the matter with the oldest has been said to it; to the others nothing has been. */
	#close(): void {
		this.#isEnded = true;
		for (const { finish } of this.#entries.splice(0)) finish(null);
		this.#options.onWait(null);
		this.#options.close();
	}

	/** The oldest has come as far as it has, unless something older still is being answered. */
	#end(reason: string): void {
		this.#isEnded = true;
		const [oldest, ...others] = this.#entries.splice(0);
		const first = this.#expected[0] ?? oldest;
		oldest?.finish(first === oldest ? oldest.transaction.conversation(reason) : null);
		for (const { finish } of others) finish(null);
		this.#options.onWait(null);
	}
}

function isWelcome(addressee: 'reset' | 'empty_body' | 'quit', raw: string): boolean {
	if (addressee === 'empty_body') return !raw.startsWith('421');
	return addressee === 'reset' && raw.startsWith('2');
}
