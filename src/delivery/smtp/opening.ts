import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import { whyUnreachable } from '../../api/errors.js';
import type { Reply, SmtpPhase } from '../../engine/rules/outcomes.js';
import { localReply, parseReply } from '../reply.js';
import type { SmtpSettings, SmtpTimeouts } from './settings.js';
import type { SmtpExtensions } from './transaction.js';

/** The error distinguishes connecting, TLS from the first byte and the greeting; the trace is silent there. */
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

export type Remedy = 'tls_port' | 'smtp_url' | 'smtp_ca' | 'smtp_ehlo_name' | 'login' | 'sender';

export interface OpeningFailure {
	reply: Reply;
	remedy: Remedy | null;
}

interface TlsFault {
	text: string;
	remedy: Remedy | null;
}

export function replyOf(
	error: SMTPConnection.SMTPError,
	{
		phase,
		settings,
		offersTls,
		hide,
	}: {
		phase: SmtpPhase;
		settings: SmtpSettings;
		offersTls: boolean;
		hide: (text: string) => string;
	},
): OpeningFailure {
	if (phase === 'tls') {
		// The library asks for what was not offered; the answer to that explains nothing.
		const isMissing = settings.security === 'required' && !offersTls;
		const fault = isMissing ? noStartTls(settings) : tlsFault(error, settings);
		if (fault !== null) return { reply: localReply('tls', fault.text), remedy: fault.remedy };
	}
	const reply = typeof error.response === 'string' ? parseReply(phase, hide(error.response)) : null;
	const local = (phase === 'connect' ? unconnected(error, settings) : null) ?? error.message;
	const said = reply?.code === null || reply === null ? localReply(phase, hide(local)) : reply;
	if (phase !== 'ehlo' || settings.name === null)
		return { reply: said, remedy: phase === 'auth' ? 'login' : null };
	// Servers refuse a name without saying that it is the name.
	const text = `${said.text} (to EHLO ${settings.name})`;
	return { reply: { ...said, text }, remedy: 'smtp_ehlo_name' };
}

/** `connect CODE HOST:PORT: why`, with the address that was tried; null: the code says nothing about the way there. */
function unconnected(error: SMTPConnection.SMTPError, settings: SmtpSettings): string | null {
	const code = causeOf(error);
	const why = whyUnreachable(code);
	if (why === null) return null;
	const { address, port } = { address: settings.host, port: settings.port, ...error };
	return `connect ${code} ${address}:${port}: ${why}`;
}

function tlsFault(error: SMTPConnection.SMTPError, settings: SmtpSettings): TlsFault | null {
	const cause = causeOf(error);
	if (settings.security === 'implicit' && notTls.has(cause)) {
		return {
			text: 'the server does not speak TLS from the first byte: smtp:// instead of smtps:// in smtp_url takes STARTTLS',
			remedy: 'smtp_url',
		};
	}
	if (cause === 'ERR_TLS_CERT_ALTNAME_INVALID')
		return { text: wrongName(error, settings), remedy: 'smtp_url' };
	if (untrusted.has(cause)) return { text: notVouchedFor(settings), remedy: 'smtp_ca' };
	return lifetimes[cause]?.(settings) ?? null;
}

function causeOf(error: SMTPConnection.SMTPError): string {
	const { originalCode, code } = { originalCode: undefined, ...error };
	return String(originalCode ?? code ?? '');
}

function noStartTls(settings: SmtpSettings): TlsFault {
	const { because, otherwise } = whyTls(settings);
	const text = `the server offers no STARTTLS, and ${because}: give smtp_url a port that speaks TLS (smtps://), or ${otherwise}`;
	return { text, remedy: 'tls_port' };
}

function whyTls({ user, ca }: SmtpSettings): { because: string; otherwise: string } {
	const inClear = 'end it with ?tls=never';
	if (user !== null) return { because: 'no password is said in clear', otherwise: inClear };
	if (ca !== null) return { because: 'with smtp_ca nothing is sent in clear', otherwise: 'unset smtp_ca' };
	return { because: 'smtp_url says tls=required', otherwise: inClear };
}

const notTls: ReadonlySet<string> = new Set([
	'ERR_SSL_WRONG_VERSION_NUMBER',
	'ERR_SSL_PACKET_LENGTH_TOO_LONG',
]);

const untrusted: ReadonlySet<string> = new Set([
	'SELF_SIGNED_CERT_IN_CHAIN',
	'DEPTH_ZERO_SELF_SIGNED_CERT',
	'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
	'UNABLE_TO_GET_ISSUER_CERT',
	'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
	'CERT_SIGNATURE_FAILURE',
	'CERT_UNTRUSTED',
	'INVALID_CA',
]);

function notVouchedFor({ host, ca }: SmtpSettings): string {
	return ca === null
		? `no authority that this machine trusts has signed the certificate of ${host}: the certificate of your own authority belongs in smtp_ca`
		: `no certificate in smtp_ca has signed the certificate of ${host}: set smtp_ca to that of the authority that has`;
}

function wrongName(error: Error, { host }: SmtpSettings): string {
	const names = 'cert' in error ? namesOf(error.cert) : [];
	const said = names.length === 0 ? 'another name' : names.join(', ');
	return `the certificate of the mail server is for ${said}, not for ${host}: smtp_url must use a name that it is for`;
}

const mostNames = 3;

function namesOf(certificate: unknown): string[] {
	if (typeof certificate !== 'object' || certificate === null || !('subjectaltname' in certificate))
		return [];
	const names = String(certificate.subjectaltname).split(', ');
	const shown = names.slice(0, mostNames).map((name) => name.replace(/^[A-Za-z ]+:/, ''));
	return names.length > mostNames ? [...shown, '…'] : shown;
}

const lifetimes: Readonly<Record<string, (settings: SmtpSettings) => TlsFault>> = {
	CERT_HAS_EXPIRED: ({ host, ca }) => ({
		text: `the certificate of ${host} has expired, or one that signed it${ca === null ? '' : ', which may be in smtp_ca'}: it has to be renewed there`,
		remedy: ca === null ? null : 'smtp_ca',
	}),
	CERT_NOT_YET_VALID: ({ host }) => ({
		text: `the certificate of ${host} is not valid yet: the clock of this machine may be wrong`,
		remedy: null,
	}),
};

export interface TraceEntry {
	from: 'client' | 'server';
	line: string;
}

export interface PhaseTracker {
	readonly phase: SmtpPhase;
	readonly extensions: SmtpExtensions;
	readonly offersTls: boolean;
	note(entry: TraceEntry): void;
}

export function createPhaseTracker(onChange: (phase: SmtpPhase) => void): PhaseTracker {
	let phase: SmtpPhase = 'connect';
	let extensions: SmtpExtensions = new Map();
	let offersTls = false;
	return {
		get phase() {
			return phase;
		},
		get extensions() {
			return extensions;
		},
		get offersTls() {
			return offersTls;
		},
		note({ from, line }) {
			if (from === 'server') {
				if (phase === 'ehlo' && line.startsWith('250')) extensions = extensionsOf(line);
				offersTls ||= extensions.has('STARTTLS');
				return;
			}
			const verb = /^[A-Z]+/.exec(line)?.[0] ?? '';
			if (verb === 'STARTTLS' || verb === 'HELO') extensions = new Map();
			phase = openingPhases[verb] ?? phase;
			onChange(phase);
		},
	};
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

export interface Deadline {
	set(ms: number): void;
	clear(): void;
}

/** The timer stays while it fires early enough: a conversation sets four deadlines a mail, of minutes. */
export function createDeadline(onMissed: (ms: number) => void): Deadline {
	let given: number | null = null;
	let dueAt = 0;
	let ringsAt = 0;
	let timer: NodeJS.Timeout | null = null;
	const wind = (now: number) => {
		if (timer !== null) clearTimeout(timer);
		ringsAt = dueAt;
		timer = setTimeout(ring, dueAt - now);
	};
	const ring = () => {
		timer = null;
		if (given === null) return;
		const now = performance.now();
		if (now < dueAt) return wind(now);
		const missed = given;
		given = null;
		onMissed(missed);
	};
	return {
		set(ms) {
			const now = performance.now();
			given = ms;
			dueAt = now + ms;
			if (timer === null || ringsAt > dueAt) wind(now);
		},
		clear() {
			given = null;
			// A timer of minutes would keep the process alive; on an idle connection there is no hurry to remove it.
			if (timer !== null) clearTimeout(timer);
			timer = null;
		},
	};
}
