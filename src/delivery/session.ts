/** One SMTP connection that has said hello and logged in, over nodemailer's `SMTPConnection`. */
import { isAscii } from 'node:buffer';
import { domainToASCII } from 'node:url';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Reply, SmtpPhase } from '../store/queue.js';
import type { Conversation, Mail } from './conversation.js';
import { createPhaseTracker, type PhaseTracker, type TraceEntry } from './phases.js';
import { localReply, parseReply } from './reply.js';
import { accepted, conversationOf, openingPhase, replyOf } from './session-errors.js';
import type { SmtpSettings, SmtpTimeouts } from './settings.js';

export interface Session {
	/** Messages tried so far. */
	readonly tried: number;
	/** False: closed, by whomever. */
	readonly isOpen: boolean;
	/** One at a time. Never rejects. */
	send(mail: Mail): Promise<Conversation>;
	/** QUIT, and the socket is closed within a second. */
	quit(): void;
}

export interface SessionOptions {
	settings: SmtpSettings;
	timeouts: SmtpTimeouts;
	/** Called once, when the connection is gone. */
	onEnd: () => void;
	/** Cuts the connection at once; a conversation in flight becomes `broken` where it stood. */
	signal: AbortSignal;
	/** SMTP trace without secrets and bodies. */
	onTrace?: ((entry: TraceEntry) => void) | undefined;
}

export type Opened = { kind: 'open'; session: Session } | { kind: 'failed'; reply: Reply };

/** Connects, greets, upgrades and logs in. Never rejects. */
export function openSession(options: SessionOptions): Promise<Opened> {
	return new Promise((resolve) => new SmtpSession(options, resolve).start());
}

/** A server that never ends its reply is cut here; RFC 5321 s.4.5.3.1.5 allows 512 octets a line. */
const maxReplyBytes = 64 * 1024;
const quitTimeoutMs = 1_000;

/** The wiring between the connection's callbacks, the phase deadlines and the conversation in flight. */
class SmtpSession {
	readonly #options: SessionOptions;
	readonly #connection: SMTPConnection;
	readonly #tracker: PhaseTracker;
	#deadline: NodeJS.Timeout | null = null;
	#opened: ((opened: Opened) => void) | null;
	#finish: ((conversation: Conversation) => void) | null = null;
	#mail: Mail | null = null;
	#mailRefused = false;
	#tried = 0;
	#isOpen = true;
	readonly #onAbort = () => this.#cut('cut by this side');

	constructor(options: SessionOptions, resolve: (opened: Opened) => void) {
		this.#options = options;
		this.#opened = resolve;
		this.#tracker = createPhaseTracker((phase) => this.#armDeadline(phase));
		this.#connection = new SMTPConnection({
			...connectionOptions(options.settings, options.timeouts),
			logger: traceLogger((entry) => this.#onTrace(entry)),
			transactionLog: true,
		});
	}

	start(): void {
		this.#connection.on('error', (error: SMTPConnection.SMTPError) => this.#fail(error));
		this.#connection.once('end', () => this.#onEnd());
		this.#options.signal.addEventListener('abort', this.#onAbort);
		this.#armDeadline('connect');
		this.#connection.connect((error) => (error === undefined ? this.#login() : this.#fail(error)));
	}

	#login(): void {
		const { user, password, security } = this.#options.settings;
		if (user === null) this.#succeed();
		// The library has seen to TLS already; a password is worth a second look.
		else if (!this.#connection.secure && security !== 'never') {
			this.#failOpening(localReply('tls', 'the connection is not encrypted'));
		} else if (!this.#connection.allowsAuth) {
			this.#failOpening(localReply('auth', 'the server offers no login'));
		} else this.#authenticate(user, password ?? '');
	}

	#authenticate(user: string, pass: string): void {
		this.#connection.login({ user, pass }, (error) => {
			if (error) this.#fail(error, 'auth');
			else this.#succeed();
		});
	}

	#succeed(): void {
		this.#clearDeadline();
		const opened = this.#opened;
		this.#opened = null;
		opened?.({ kind: 'open', session: this.#session() });
	}

	#session(): Session {
		const self = this;
		return {
			get tried() {
				return self.#tried;
			},
			get isOpen() {
				return self.#isOpen;
			},
			send: (mail) => this.#send(mail),
			quit: () => this.#quit(),
		};
	}

	#send(mail: Mail): Promise<Conversation> {
		this.#tried += 1;
		const recipients = [mail.to, ...mail.copies].map(asciiDomain);
		const from = asciiDomain(mail.from);
		if (
			!this.#tracker.extensions.has('SMTPUTF8') &&
			[from, ...recipients].some((address) => !isPlain(address))
		) {
			const reply = localReply('mail', 'the address needs SMTPUTF8, which the server does not offer');
			return Promise.resolve({ kind: 'unsendable', reply, refusedCopies: [] });
		}
		return new Promise((resolve) => {
			this.#finish = resolve;
			this.#mail = mail;
			this.#mailRefused = false;
			this.#tracker.startMail(recipients.length);
			const envelope = { from, to: recipients, size: mail.bytes.length, use8BitMime: !isAscii(mail.bytes) };
			this.#connection.send(envelope, mail.bytes, (error, info) => {
				if (error) this.#fail(error);
				else if (info) this.#complete(accepted(info));
			});
		});
	}

	/** Ends the conversation in flight; a refused one needs RSET before the connection is used again. */
	#complete(conversation: Conversation): void {
		this.#clearDeadline();
		const finish = this.#finish;
		this.#finish = null;
		this.#mail = null;
		if (finish === null) return;
		if (conversation.kind === 'broken') this.#connection.close();
		const isClean = conversation.kind !== 'refused' || conversation.reply.phase === 'answer';
		if (isClean || this.#connection.destroyed) finish(conversation);
		else this.#reset(() => finish(conversation));
	}

	#reset(done: () => void): void {
		const timer = setTimeout(() => this.#connection.close(), this.#options.timeouts.command);
		const settle = () => {
			clearTimeout(timer);
			this.#connection.off('end', settle);
			done();
		};
		this.#connection.once('end', settle);
		this.#connection.reset((error) => (error ? this.#connection.close() : settle()));
	}

	#fail(error: SMTPConnection.SMTPError, phase?: SmtpPhase): void {
		if (this.#opened !== null) {
			const reply = replyOf(error, phase ?? openingPhase(error, this.#tracker.phase, this.#options.settings));
			this.#failOpening(reply);
		} else this.#complete(conversationOf(error, this.#tracker.phase));
	}

	#failOpening(reply: Reply): void {
		this.#clearDeadline();
		const opened = this.#opened;
		this.#opened = null;
		this.#connection.close();
		opened?.({ kind: 'failed', reply });
	}

	#cut(reason: string): void {
		const reply = localReply(this.#tracker.phase, reason);
		if (this.#opened !== null) this.#failOpening(reply);
		else if (this.#finish !== null) this.#complete({ kind: 'broken', reply, refusedCopies: [] });
		this.#connection.close();
	}

	#quit(): void {
		if (!this.#isOpen || this.#connection.destroyed) return;
		setTimeout(() => this.#connection.close(), quitTimeoutMs).unref();
		this.#connection.quit();
	}

	#onEnd(): void {
		this.#isOpen = false;
		this.#options.signal.removeEventListener('abort', this.#onAbort);
		this.#clearDeadline();
		if (this.#opened !== null)
			this.#failOpening(localReply(this.#tracker.phase, 'the connection was closed'));
		// The library reports a conversation's own error after 'end'; it comes before this turn of the loop is over.
		setImmediate(() => this.#cut('the connection was closed'));
		this.#options.onEnd();
	}

	#onTrace(entry: TraceEntry): void {
		this.#tracker.note(entry);
		this.#options.onTrace?.(entry);
		if (entry.from === 'server' && this.#mail !== null) this.#watchRecipient(entry.line, this.#mail);
	}

	/**
	 * Refusing the recipient whose message it is ends the conversation before the body, so that a retry does not
	 * bring the copies' readers a further one each time. PIPELINING has asked for DATA by then; a transaction without
	 * its final dot is discarded (RFC 5321 s.4.1.1.4).
	 */
	#watchRecipient(line: string, mail: Mail): void {
		const isRefusal = !line.startsWith('2');
		if (this.#tracker.replies === 1) this.#mailRefused = isRefusal;
		if (mail.copies.length === 0 || this.#tracker.replies !== 2 || !isRefusal || this.#mailRefused) return;
		queueMicrotask(() => {
			if (this.#mail !== mail) return;
			this.#connection.close();
			this.#complete({ kind: 'refused', reply: parseReply('rcpt', line), refusedCopies: [] });
		});
	}

	#armDeadline(phase: SmtpPhase): void {
		this.#clearDeadline();
		const ms = deadlineOf(phase, this.#options.timeouts);
		this.#deadline = setTimeout(() => this.#cut(`no answer within ${ms / 1000} s`), ms);
	}

	#clearDeadline(): void {
		if (this.#deadline !== null) clearTimeout(this.#deadline);
		this.#deadline = null;
	}
}

function connectionOptions(settings: SmtpSettings, timeouts: SmtpTimeouts): SMTPConnection.Options {
	const { host, port, security, name, ca } = settings;
	const isChecked = security !== 'opportunistic';
	return {
		host,
		port,
		secure: security === 'implicit',
		requireTLS: security === 'required',
		ignoreTLS: security === 'never',
		opportunisticTLS: security === 'opportunistic',
		...(name === null ? {} : { name }),
		tls: { rejectUnauthorized: isChecked, ...(ca === null ? {} : { ca }) },
		connectionTimeout: timeouts.connect,
		dnsTimeout: timeouts.connect,
		greetingTimeout: timeouts.greeting,
		// Our deadlines are absolute; this one only knows of silence, and must not come before them.
		socketTimeout: Math.max(...Object.values(timeouts)) + 60_000,
		socketCloseTimeout: quitTimeoutMs,
		maxResponseSize: maxReplyBytes,
	};
}

/** The connection's log as trace entries; the end of the body is the one entry that carries byte counts. */
function traceLogger(note: (entry: TraceEntry) => void) {
	const log = (data: { tnx?: unknown; outByteCount?: unknown }, line: unknown) => {
		if (data.tnx === 'client' || data.tnx === 'server') note({ from: data.tnx, line: String(line) });
		else if (data.tnx === 'message' && data.outByteCount !== undefined) note({ from: 'dot', line: '' });
	};
	const ignore = () => undefined;
	return { trace: ignore, debug: log, info: log, warn: ignore, error: ignore, fatal: ignore };
}

function deadlineOf(phase: SmtpPhase, timeouts: SmtpTimeouts): number {
	switch (phase) {
		case 'connect':
			// Until the first command leaves, connecting and the greeting are one phase of the trace.
			return timeouts.connect + timeouts.greeting;
		case 'greeting':
		case 'ehlo':
		case 'tls':
		case 'auth':
			return timeouts.greeting;
		case 'mail':
		case 'rcpt':
			return timeouts.command;
		case 'data':
		case 'body':
		case 'answer':
			return timeouts[phase];
	}
}

/** The domain in punycode, so that SMTPUTF8 is needed for the local part alone. */
function asciiDomain(address: string): string {
	const at = address.lastIndexOf('@');
	if (at < 0 || isPlain(address)) return address;
	const domain = address.slice(at + 1);
	return `${address.slice(0, at)}@${domainToASCII(domain) || domain}`;
}

function isPlain(address: string): boolean {
	return /^[\u0020-\u007e]*$/.test(address);
}
