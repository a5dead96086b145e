import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { whyUnreachable } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import type { Reply, SmtpPhase } from '../../engine/rules/outcomes.js';
import { localReply, parseReply } from '../reply.js';
import type { SmtpSettings, SmtpTimeouts } from './settings.js';
import type { SmtpExtensions } from './transaction.js';

/** Finds the failed phase (connecting, implicit TLS or greeting) from the error, because the trace shows none of them. */
export function openingPhase(
	error: SMTPConnection.SMTPError,
	phase: SmtpPhase,
	settings: SmtpSettings,
): SmtpPhase {
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

/** Returns `connect CODE HOST:PORT: why` with the tried address; null if the code is not about the network. */
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

/** Codes of OpenSSL if the server does not speak TLS. */
const notTls = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);

/** Codes of OpenSSL for a certificate that is self-signed or that no trusted authority signed. */
const untrusted =
	/^(?:SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(?:_LOCALLY)?)|CERT_(?:SIGNATURE_FAILURE|UNTRUSTED)|INVALID_CA)$/;

function tlsFault(
	error: SMTPConnection.SMTPError,
	{ host, security, ca }: SmtpSettings,
	offersTls: boolean,
): OpeningFailure | null {
	const cause = causeOf(error);
	const fault = (text: string, remedy: Remedy | null) => ({ reply: localReply('tls', text), remedy });
	// The library requests STARTTLS even if the server does not offer it; the answer explains nothing.
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

export function deadlineOf(phase: SmtpPhase, timeouts: SmtpTimeouts): number {
	// The trace shows connecting and the greeting as one phase, until the first command.
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

/** Keeps its timer while that fires early enough, because a conversation sets four deadlines per mail, minutes ahead. */
export class Deadline {
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
		// A timer of several minutes would keep the process alive.
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
