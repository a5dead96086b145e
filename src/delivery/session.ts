/**
 * One SMTP connection. nodemailer's `SMTPConnection` connects, upgrades to TLS and logs in; what is said from then on is
 * ours: its own sending makes three streams and several packets a message, and cannot let one follow the other.
 */
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Reply, SmtpPhase } from '../store/queue.js';
import type { Conversation, Mail } from './conversation.js';
import { createPhaseTracker, type PhaseTracker, type TraceEntry } from './phases.js';
import { localReply } from './reply.js';
import { openingPhase, replyOf } from './session-errors.js';
import type { SmtpSettings, SmtpTimeouts } from './settings.js';
import { createDeadline } from './smtp/deadline.js';
import { createDialogue, type Dialogue } from './smtp/dialogue.js';

export interface Session {
	/** Messages tried so far. */
	readonly tried: number;
	/** Messages on it now. */
	readonly size: number;
	/** It can take one more at once, behind the one it has if it has one. */
	readonly hasRoom: boolean;
	/** False: closed, by whomever. */
	readonly isOpen: boolean;
	/**
	 * Never rejects. `null`: the connection ended while an earlier message was on it, and nothing was said about this
	 * one.
	 */
	send(mail: Mail): Promise<Conversation | null>;
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

/** The wiring between the connection's events, the phase deadlines and the dialogue. */
class SmtpSession implements Session {
	readonly #options: SessionOptions;
	readonly #connection: SMTPConnection;
	readonly #tracker: PhaseTracker;
	readonly #deadline = createDeadline((ms) => this.#cut(`no answer within ${ms / 1000} s`));
	#opened: ((opened: Opened) => void) | null;
	#dialogue: Dialogue | null = null;
	#tried = 0;
	#isOpen = true;
	readonly #onAbort = () => this.#cut('cut by this side');

	constructor(options: SessionOptions, resolve: (opened: Opened) => void) {
		this.#options = options;
		this.#opened = resolve;
		this.#tracker = createPhaseTracker((phase) => this.#awaitPhase(phase));
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
		this.#awaitPhase('connect');
		this.#connection.connect((error) => (error === undefined ? this.#login() : this.#fail(error)));
	}

	get tried(): number {
		return this.#tried;
	}

	get size(): number {
		return this.#dialogue?.size ?? 0;
	}

	get hasRoom(): boolean {
		return this.#isOpen && this.#dialogue !== null && this.#dialogue.size < this.#dialogue.capacity;
	}

	get isOpen(): boolean {
		return this.#isOpen;
	}

	send(mail: Mail): Promise<Conversation | null> {
		this.#tried += 1;
		return this.#dialogue?.send(mail) ?? Promise.resolve(null);
	}

	quit(): void {
		if (!this.#isOpen || this.#connection.destroyed) return;
		setTimeout(() => this.#connection.close(), quitTimeoutMs).unref();
		this.#dialogue?.quit();
	}

	#login(): void {
		const { user, password, security } = this.#options.settings;
		if (user === null) this.#takeOver();
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
			else this.#takeOver();
		});
	}

	/** From here on the server's words go to the dialogue; the connection still sees to errors and the end. */
	#takeOver(): void {
		this.#deadline.clear();
		const socket = this.#connection._socket;
		// Closed in the turn of the loop that ended the login.
		if (!socket || this.#connection.destroyed) {
			this.#cut('the connection was closed');
			return;
		}
		const dialogue = createDialogue({
			extensions: this.#tracker.extensions,
			write: (bytes) => socket.write(bytes),
			close: () => this.#close(),
			onWait: (phase) => (phase === null ? this.#deadline.clear() : this.#awaitPhase(phase)),
			onTrace: this.#options.onTrace,
		});
		socket.removeAllListeners('data');
		socket.on('data', (chunk: Buffer) => dialogue.receive(chunk));
		socket.on('drain', () => dialogue.drained());
		this.#dialogue = dialogue;
		this.#settle({ kind: 'open', session: this });
	}

	#settle(opened: Opened): void {
		const settle = this.#opened;
		this.#opened = null;
		settle?.(opened);
	}

	#fail(error: SMTPConnection.SMTPError, phase?: SmtpPhase): void {
		if (this.#dialogue !== null) this.#dialogue.ended(error.message);
		else if (this.#opened !== null) {
			const { settings } = this.#options;
			const where = phase ?? openingPhase(error, this.#tracker.phase, settings);
			this.#failOpening(replyOf(error, { phase: where, settings, offersTls: this.#tracker.offersTls }));
		}
	}

	#failOpening(reply: Reply): void {
		this.#deadline.clear();
		// Before the end of the connection is heard of, which has a reason of its own.
		this.#settle({ kind: 'failed', reply });
		this.#connection.close();
	}

	#cut(reason: string): void {
		if (this.#opened !== null) this.#failOpening(localReply(this.#tracker.phase, reason));
		this.#dialogue?.ended(reason);
		this.#close();
	}

	/** Not open any more, at once: the library says so only when the socket has gone. */
	#close(): void {
		this.#isOpen = false;
		this.#connection.close();
	}

	#onEnd(): void {
		this.#isOpen = false;
		this.#options.signal.removeEventListener('abort', this.#onAbort);
		if (this.#opened !== null)
			this.#failOpening(localReply(this.#tracker.phase, 'the connection was closed'));
		this.#dialogue?.ended('the connection was closed');
		this.#deadline.clear();
		this.#options.onEnd();
	}

	#onTrace(entry: TraceEntry): void {
		this.#tracker.note(entry);
		this.#options.onTrace?.(entry);
	}

	#awaitPhase(phase: SmtpPhase): void {
		this.#deadline.set(deadlineOf(phase, this.#options.timeouts));
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

/** The connection's log as trace entries. */
function traceLogger(note: (entry: TraceEntry) => void) {
	const log = (data: { tnx?: unknown }, line: unknown) => {
		if (data.tnx === 'client' || data.tnx === 'server') note({ from: data.tnx, line: String(line) });
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
