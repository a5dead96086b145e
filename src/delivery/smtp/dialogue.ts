/** Sends mail after mail on one session. With PIPELINING (RFC 2920), a mail takes one packet each way. */
import type { SmtpPhase } from '../../engine/rules/outcomes.js';
import { ReplyReader } from '../reply.js';
import {
	type Conversation,
	envelopeOf,
	finalDot,
	Joint,
	type Mail,
	type Move,
	type SmtpExtensions,
	Transaction,
	wireBody,
} from './transaction.js';

interface DialogueOptions {
	extensions: SmtpExtensions;
	/** Returns false if the dialogue must wait for `drained` before its next write. */
	write: (bytes: Buffer | string) => boolean;
	/** True if all bytes have left this process, so that their memory can be reused. */
	isWritten: () => boolean;
	close: () => void;
	/** The dialogue calls this to restart the deadline for the reply of `phase`. Null: it awaits no reply. */
	onWait: (phase: SmtpPhase | null) => void;
	onTrace?: ((entry: { from: 'client' | 'server'; line: string }) => void) | undefined;
	hide(text: string): string;
}

/** Limits a reply without an end. RFC 5321 s.4.5.3.1.5 allows 512 octets a line. */
export const maxReplyBytes = 64 * 1024;
/** A larger body is written in slices, so that the socket buffers little of it. A smaller one is written at once. */
export const sliceBytes = 64 * 1024;

interface Entry {
	transaction: Transaction;
	finish: (conversation: Conversation | null) => void;
}

type Addressee = Entry | 'reset' | 'empty_body' | 'quit';

export class Dialogue {
	readonly #options: DialogueOptions;
	readonly #isPipelined: boolean;
	readonly #replies = new ReplyReader(maxReplyBytes);
	readonly #entries: Entry[] = [];
	#begun = 0;
	readonly #commands: { line: string; addressee: Addressee }[] = [];
	readonly #expected: Addressee[] = [];
	/** True after DATA. The dialogue then writes no command before the server's reply and the body. */
	#isHeld = false;
	#unwritten: { bytes: Buffer; rest: Buffer[]; entry: Entry } | null = null;
	#joint = new Joint();
	#isEnded = false;

	constructor(options: DialogueOptions) {
		this.#options = options;
		this.#isPipelined = options.extensions.has('PIPELINING');
	}

	get size(): number {
		return this.#entries.length;
	}

	/** With PIPELINING, one mail waits for its answer, another is being written, and a third is ready. */
	get capacity(): number {
		return this.#isPipelined ? 3 : 1;
	}

	/** Resolves with null if the connection ended before any reply about this mail. */
	send(mail: Mail, isProbe = false): Promise<Conversation | null> {
		const envelope = envelopeOf(mail, this.#options.extensions);
		if ('kind' in envelope) return Promise.resolve(envelope);
		if (this.#isEnded) return Promise.resolve(null);
		const transaction = new Transaction(mail, envelope, { isPipelined: this.#isPipelined, isProbe });
		return new Promise((finish) => {
			this.#entries.push({ transaction, finish });
			this.#writeCommands();
		});
	}

	receive(chunk: Buffer): void {
		if (this.#isEnded) return;
		const replies = this.#replies.read(chunk);
		for (const reply of replies) {
			const raw = this.#options.hide(reply);
			this.#options.onTrace?.({ from: 'server', line: raw });
			this.#take(raw);
			if (this.#isEnded) return;
		}
		if (this.#replies.isTooLarge) {
			this.#end('the reply of the server is too long');
			this.#options.close();
			return;
		}
		if (replies.length === 0) return;
		// First read all replies of the packet. Otherwise a surplus reply could pass for the answer to a new command.
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
			first.transaction.take(this.#options.hide(lastWords));
		this.#end(reason);
	}

	quit(): void {
		if (this.#isEnded) return;
		this.#commands.push({ line: 'QUIT', addressee: 'quit' });
		this.#writeCommands();
	}

	#take(raw: string): void {
		const addressee = this.#expected.shift() ?? this.#unwritten?.entry;
		// After an unexpected reply, replies and commands are out of step.
		if (addressee === undefined) this.#close();
		else if (typeof addressee !== 'string') this.#move(addressee, addressee.transaction.take(raw));
		else if (!isWelcome(addressee, raw)) this.#close();
	}

	#move(entry: Entry, move: Move): void {
		switch (move) {
			case 'go_on':
				return;
			case 'write_body': {
				const { bytes, rest = [] } = entry.transaction.mail;
				this.#unwritten = { bytes: wireBody(bytes), rest: [...rest], entry };
				return;
			}
			case 'end_empty':
				this.#isHeld = false;
				this.#finish(entry);
				this.#commands.push({ line: '.', addressee: 'empty_body' });
				return;
			case 'reset':
				this.#isHeld = false;
				this.#finish(entry);
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

	#writeBody(): void {
		while (this.#unwritten !== null) {
			const { bytes, entry, rest } = this.#unwritten;
			if (bytes.length > sliceBytes) {
				this.#unwritten.bytes = bytes.subarray(sliceBytes);
				if (!this.#options.write(bytes.subarray(0, sliceBytes))) return;
				continue;
			}
			const next = rest.shift();
			if (next !== undefined) {
				this.#unwritten.bytes = next;
				if (bytes.length > 0 && !this.#options.write(bytes)) return;
				continue;
			}
			this.#unwritten = null;
			this.#isHeld = false;
			// Once the final dot has left, the server may have accepted the message, even if the connection breaks.
			entry.transaction.dotWritten();
			this.#expected.push(entry);
			this.#write(this.#joint.join(bytes, finalDot + this.#dueCommands()));
			if (!this.#options.isWritten()) this.#joint = new Joint();
		}
	}

	#writeCommands(): void {
		const wasWaiting = this.#expected.length > 0 || this.#unwritten !== null;
		this.#write(this.#dueCommands());
		if (!wasWaiting) this.#options.onWait(this.#phase);
	}

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

	#close(): void {
		this.#isEnded = true;
		for (const { finish } of this.#entries.splice(0)) finish(null);
		this.#options.onWait(null);
		this.#options.close();
	}

	/** Reports the oldest mail as broken, unless the next reply belongs to an RSET or an empty message. */
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
