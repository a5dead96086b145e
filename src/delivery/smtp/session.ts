/** nodemailer's `SMTPConnection` opens the session. It cannot pipeline messages, so `Dialogue` sends them. */

import { type ConnectOpts, isIP, type Socket, type SocketConstructorOpts } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import SMTPConnection from 'nodemailer/lib/smtp-connection';
import { whyUnreachable } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { quote, redact } from '../../api/quote.js';
import type { Reply, SmtpPhase } from '../../engine/rules/outcomes.js';
import { localReply, parseReply } from '../reply.js';
import { Dialogue, maxReplyBytes } from './dialogue.js';
import type { SmtpSettings, SmtpTimeouts } from './settings.js';
import type { Conversation, Mail, SmtpExtensions } from './transaction.js';

interface SessionOptions {
	settings: SmtpSettings;
	timeouts: SmtpTimeouts;
	onEnd: () => void;
	signal: AbortSignal;
	opening: AbortSignal;
	onTrace?: ((entry: TraceEntry) => void) | undefined;
}

export type Opened = { kind: 'open'; session: Session } | ({ kind: 'failed' } & OpeningFailure);

export function openSession(options: SessionOptions): Promise<Opened> {
	const socket = isReadHere(options.settings) ? createSocket() : undefined;
	return new Promise((resolve) => new Session(options, socket, resolve).start());
}

/** True if mailctl creates the socket. If TLS is required or the host needs a DNS query, nodemailer creates it. */
function isReadHere({ security, host }: SmtpSettings): boolean {
	return (security === 'never' || security === 'opportunistic') && (isIP(host) !== 0 || host === 'localhost');
}

const memory = Buffer.alloc(16 * 1024);

/** Reads into one shared buffer. Node's default, a new buffer per read, takes 5 % of a short mail's CPU time. */
function createSocket(): Socket {
	const net = process.getBuiltinModule('node:net');
	const callback = (length: number) => {
		socket.emit('data', memory.subarray(0, length));
		return true;
	};
	const options: SocketConstructorOpts & ConnectOpts = { onread: { buffer: memory, callback } };
	const socket = new net.Socket(options);
	return socket;
}

const quitTimeoutMs = 1_000;

export class Session {
	readonly #options: SessionOptions;
	readonly #connection: SMTPConnection;
	readonly #tracker: PhaseTracker;
	readonly #secrets: readonly string[];
	readonly #deadline = new Deadline((ms) => this.#cut(`no answer within ${ms / 1000} s`));
	#opened: ((opened: Opened) => void) | null;
	#dialogue: Dialogue | null = null;
	#tried = 0;
	#isOpen = true;
	readonly #onAbort = () => this.#cut('mailctl closed the connection');

	constructor(options: SessionOptions, socket: Socket | undefined, resolve: (opened: Opened) => void) {
		this.#options = options;
		this.#opened = resolve;
		this.#secrets = secretsOf(options.settings);
		this.#tracker = new PhaseTracker((phase) => this.#awaitPhase(phase));
		this.#connection = new SMTPConnection({
			...connectionOptions(options.settings, options.timeouts),
			...(socket && { socket }),
			logger: traceLogger((entry) => this.#onTrace(entry)),
			transactionLog: true,
		});
	}

	start(): void {
		this.#connection.on('error', (error: SMTPConnection.SMTPError) => this.#fail(error));
		this.#connection.once('end', () => this.#onEnd());
		this.#options.signal.addEventListener('abort', this.#onAbort);
		this.#options.opening.addEventListener('abort', this.#onAbort);
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

	/** A probe sends only MAIL FROM and RSET. The outcome `accepted` then means that the server accepts the sender. */
	send(mail: Mail, isProbe?: boolean): Promise<Conversation | null> {
		this.#tried += 1;
		return this.#dialogue?.send(mail, isProbe) ?? Promise.resolve(null);
	}

	get certificate(): PeerCertificate | null {
		const socket = this.#connection._socket;
		return socket instanceof TLSSocket ? socket.getPeerCertificate() : null;
	}

	quit(): void {
		if (!this.#isOpen || this.#connection.destroyed) return;
		setTimeout(() => this.#connection.close(), quitTimeoutMs).unref();
		this.#dialogue?.quit();
	}

	#login(): void {
		const { user, password, security } = this.#options.settings;
		if (user === null) this.#takeOver();
		// The library has already checked TLS, but check again before sending a password.
		else if (!this.#connection.secure && security !== 'never') {
			this.#failOpening({ reply: localReply('tls', 'the connection is not encrypted'), remedy: null });
		} else if (!this.#connection.allowsAuth) {
			this.#failOpening({ reply: localReply('auth', 'the server offers no login'), remedy: 'login' });
		} else {
			this.#connection.login({ user, pass: password ?? '' }, (error) => {
				if (error) this.#fail(error, 'auth');
				else this.#takeOver();
			});
		}
	}

	/** From here on, the dialogue reads the server's replies. The connection still reports errors and the end. */
	#takeOver(): void {
		this.#deadline.clear();
		const socket = this.#connection._socket;
		if (!socket || this.#connection.destroyed) {
			this.#cut('the connection was closed');
			return;
		}
		const dialogue = new Dialogue({
			extensions: this.#tracker.extensions,
			write: (bytes) => socket.write(bytes),
			isWritten: () => socket.writableLength === 0,
			close: () => this.#close(),
			onWait: (phase) => (phase === null ? this.#deadline.clear() : this.#awaitPhase(phase)),
			onTrace: this.#options.onTrace && ((entry) => this.#tell(entry)),
			hide: (text) => redact(text, this.#secrets),
		});
		socket.removeAllListeners('data');
		socket.on('data', (chunk: Buffer) => dialogue.receive(chunk));
		socket.on('drain', () => dialogue.drained());
		this.#dialogue = dialogue;
		this.#settle({ kind: 'open', session: this });
	}

	#settle(opened: Opened): void {
		this.#options.opening.removeEventListener('abort', this.#onAbort);
		const settle = this.#opened;
		this.#opened = null;
		settle?.(opened);
	}

	#fail(error: SMTPConnection.SMTPError, phase?: SmtpPhase): void {
		if (this.#dialogue !== null) this.#dialogue.ended(error.message);
		else if (this.#opened !== null) {
			const { settings } = this.#options;
			const where = phase ?? openingPhase(error, this.#tracker.phase, settings);
			const hide = (text: string) => redact(text, this.#secrets);
			const { offersTls } = this.#tracker;
			this.#failOpening(replyOf(error, { phase: where, settings, offersTls, hide }));
		}
	}

	#failOpening(failure: OpeningFailure): void {
		this.#deadline.clear();
		// Settle first, because closing the connection reports another reason.
		this.#settle({ kind: 'failed', ...failure });
		this.#connection.close();
	}

	#cut(reason: string): void {
		this.#stopOpening(reason);
		this.#dialogue?.ended(reason);
		this.#close();
	}

	#stopOpening(reason: string): void {
		const { phase } = this.#tracker;
		const remedy = phase === 'auth' ? 'login' : null;
		if (this.#opened !== null) this.#failOpening({ reply: localReply(phase, reason), remedy });
	}

	/** Marks the session closed at once, because the library reports it only after the socket has closed. */
	#close(): void {
		this.#isOpen = false;
		this.#connection.close();
	}

	#onEnd(): void {
		this.#isOpen = false;
		this.#options.signal.removeEventListener('abort', this.#onAbort);
		this.#stopOpening('the connection was closed');
		this.#dialogue?.ended('the connection was closed');
		this.#deadline.clear();
		this.#options.onEnd();
	}

	#onTrace(entry: TraceEntry): void {
		this.#tracker.note(entry);
		this.#tell(entry);
	}

	#tell({ from, line }: TraceEntry): void {
		this.#options.onTrace?.({ from, line: quote(line, this.#secrets) });
	}

	#awaitPhase(phase: SmtpPhase): void {
		this.#deadline.set(deadlineOf(phase, this.#options.timeouts));
	}
}

function secretsOf({ user, password }: SmtpSettings): string[] {
	// A shorter password occurs by chance in other text, so it cannot be masked.
	if (password === null || password.length < 3) return [];
	const forms = [password, `\0${user}\0${password}`, `${user}\0${user}\0${password}`];
	const encoded = forms.map((form) => Buffer.from(form).toString('base64'));
	const all = [...encoded, ...encoded.map((text) => text.replace(/={1,2}$/, '')), password];
	// Mask longer forms first, because one may contain another.
	return all.sort((a, b) => b.length - a.length);
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
		// `Deadline` limits each step. This timeout of the library only detects silence, and must not fire first.
		socketTimeout: Math.max(...Object.values(timeouts)) + 60_000,
		socketCloseTimeout: quitTimeoutMs,
		maxResponseSize: maxReplyBytes,
	};
}

function traceLogger(note: (entry: TraceEntry) => void) {
	const log = (data: { tnx?: unknown }, line: unknown) => {
		if (data.tnx === 'client' || data.tnx === 'server') note({ from: data.tnx, line: String(line) });
	};
	const ignore = () => undefined;
	return { trace: ignore, debug: log, info: log, warn: ignore, error: ignore, fatal: ignore };
}

/** Finds the failed phase (connecting, implicit TLS or greeting) from the error, because the trace does not show it. */
function openingPhase(error: SMTPConnection.SMTPError, phase: SmtpPhase, settings: SmtpSettings): SmtpPhase {
	const { code, timeoutType } = { timeoutType: undefined, ...error };
	if (code === 'ETLS' || timeoutType === 'UPGRADE_TIMEOUT') return 'tls';
	if (phase !== 'connect') return phase;
	if (error.response !== undefined || timeoutType === 'GREETING_TIMEOUT') return 'greeting';
	const syscall = 'syscall' in error ? error.syscall : undefined;
	if (code === 'EDNS' || syscall === 'connect' || timeoutType === 'CONNECT_TIMEOUT') return 'connect';
	return settings.security === 'implicit' ? 'tls' : 'greeting';
}

type Remedy = 'tls_port' | 'smtp_url' | 'smtp_ca' | 'smtp_ehlo_name' | 'login' | 'sender';

export interface OpeningFailure {
	reply: Reply;
	remedy: Remedy | null;
}

export function replyOf(
	error: SMTPConnection.SMTPError,
	{
		phase,
		settings,
		offersTls,
		hide,
	}: { phase: SmtpPhase; settings: SmtpSettings; offersTls: boolean; hide: (text: string) => string },
): OpeningFailure {
	const fault = phase === 'tls' ? tlsFault(error, settings, offersTls) : null;
	if (fault !== null) return fault;
	const reply = typeof error.response === 'string' ? parseReply(phase, hide(error.response)) : null;
	const local = (phase === 'connect' ? unconnected(error, settings) : null) ?? error.message;
	const said = reply?.code === null || reply === null ? localReply(phase, hide(local)) : reply;
	if (phase !== 'ehlo' || settings.name === null)
		return { reply: said, remedy: phase === 'auth' ? 'login' : null };
	// Servers refuse an EHLO name without quoting it, so add the name.
	const text = `${said.text} (to EHLO ${settings.name})`;
	return { reply: { ...said, text }, remedy: 'smtp_ehlo_name' };
}

/** Returns `connect CODE HOST:PORT: why` with the address that was tried, or null if the network is not the cause. */
function unconnected(error: SMTPConnection.SMTPError, settings: SmtpSettings): string | null {
	const code = causeOf(error);
	const why = whyUnreachable(code);
	if (why === null) return null;
	const { address, port } = { address: settings.host, port: settings.port, ...error };
	return `connect ${code} ${address}:${port}: ${why}`;
}

function causeOf(error: SMTPConnection.SMTPError): string {
	const { originalCode, code } = { originalCode: undefined, ...error };
	return String(originalCode ?? code ?? '');
}

const notTls = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);

const untrusted =
	/^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(?:_LOCALLY)?)|CERT_(?:SIGNATURE_FAILURE|UNTRUSTED)|INVALID_CA)$/;

function tlsFault(
	error: SMTPConnection.SMTPError,
	{ host, security, ca }: SmtpSettings,
	offersTls: boolean,
): OpeningFailure | null {
	const cause = causeOf(error);
	const fault = (text: string, remedy: Remedy | null) => ({ reply: localReply('tls', text), remedy });
	// The library requests STARTTLS even if the server does not offer it. The server's answer then explains nothing.
	if (security === 'required' && !offersTls)
		return fault(
			'the server offers no STARTTLS, which a login, tls=required and smtp_ca require: use its TLS port (smtps://)',
			'tls_port',
		);
	if (security === 'implicit' && notTls.has(cause))
		return fault(
			'the server does not speak TLS on this port: use smtp:// instead of smtps:// in smtp_url',
			'smtp_url',
		);
	if (cause === 'ERR_TLS_CERT_ALTNAME_INVALID')
		return fault(`the certificate is not for ${host}, but for ${namesOf(error)}: use that name`, 'smtp_url');
	if (untrusted.test(cause))
		return fault(
			ca === null
				? `this machine does not trust the certificate of ${host}: store your own authority in smtp_ca`
				: `no certificate in smtp_ca has signed the certificate of ${host}`,
			'smtp_ca',
		);
	if (cause === 'CERT_HAS_EXPIRED')
		return fault(
			`the certificate of ${host}, or one that signed it, has expired`,
			ca === null ? null : 'smtp_ca',
		);
	return null;
}

function namesOf(error: SMTPConnection.SMTPError): string {
	const certificate = 'cert' in error && isRecord(error.cert) ? error.cert : {};
	const names = String(certificate['subjectaltname'] ?? 'another name').replace(/(^|, )[A-Za-z ]+:/g, '$1');
	return names.length > 100 ? `${names.slice(0, 100)}…` : names;
}

export interface TraceEntry {
	from: 'client' | 'server';
	line: string;
}

export class PhaseTracker {
	phase: SmtpPhase = 'connect';
	extensions: SmtpExtensions = new Map();
	offersTls = false;
	readonly #onChange: (phase: SmtpPhase) => void;

	constructor(onChange: (phase: SmtpPhase) => void) {
		this.#onChange = onChange;
	}

	note({ from, line }: TraceEntry): void {
		if (from === 'server') {
			if (this.phase === 'ehlo' && line.startsWith('250')) this.extensions = extensionsOf(line);
			this.offersTls ||= this.extensions.has('STARTTLS');
			return;
		}
		const verb = /^[A-Z]+/.exec(line)?.[0] ?? '';
		if (verb === 'STARTTLS' || verb === 'HELO') this.extensions = new Map();
		this.phase = openingPhases[verb] ?? this.phase;
		this.#onChange(this.phase);
	}
}

const openingPhases: Readonly<Record<string, SmtpPhase>> = {
	EHLO: 'ehlo',
	HELO: 'ehlo',
	STARTTLS: 'tls',
	AUTH: 'auth',
};

function extensionsOf(ehlo: string): SmtpExtensions {
	const lines = ehlo.split(/\r?\n/).slice(1);
	return new Map(
		lines.map((line) => {
			const [keyword = '', ...parameters] = line.slice(4).trim().split(/[ =]+/);
			return [keyword.toUpperCase(), parameters.join(' ')];
		}),
	);
}

function deadlineOf(phase: SmtpPhase, timeouts: SmtpTimeouts): number {
	// The trace cannot tell connecting from waiting for the greeting, so the phase `connect` covers both.
	return phase === 'connect'
		? timeouts.connect + timeouts.greeting
		: timeouts[timeoutOf[phase] ?? 'greeting'];
}

const timeoutOf: Readonly<Partial<Record<SmtpPhase, keyof SmtpTimeouts>>> = {
	mail: 'command',
	rcpt: 'command',
	data: 'data',
	body: 'body',
	answer: 'answer',
};

/**
 * Each mail moves the deadline four times, so `set` keeps a timer that fires before the new deadline. `#ring` then
 * starts a timer for the remaining time.
 */
class Deadline {
	readonly #onMissed: (ms: number) => void;
	#given: number | null = null;
	#dueAt = 0;
	#ringsAt = 0;
	#timer: NodeJS.Timeout | null = null;

	constructor(onMissed: (ms: number) => void) {
		this.#onMissed = onMissed;
	}

	set(ms: number): void {
		const now = performance.now();
		this.#given = ms;
		this.#dueAt = now + ms;
		if (this.#timer === null || this.#ringsAt > this.#dueAt) this.#wind(now);
	}

	clear(): void {
		this.#given = null;
		// Stop the timer, because it would keep the process alive for minutes.
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#timer = null;
	}

	#wind(now: number): void {
		if (this.#timer !== null) clearTimeout(this.#timer);
		this.#ringsAt = this.#dueAt;
		this.#timer = setTimeout(() => this.#ring(), this.#dueAt - now);
	}

	#ring(): void {
		this.#timer = null;
		if (this.#given === null) return;
		const now = performance.now();
		const missed = this.#given;
		if (now < this.#dueAt) this.#wind(now);
		else {
			this.#given = null;
			this.#onMissed(missed);
		}
	}
}
