/** nodemailer's errors while a session is opened, as phases and replies. */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Reply, SmtpPhase } from '../store/queue.js';
import { localReply, parseReply } from './reply.js';
import type { SmtpSettings } from './settings.js';
import { noStartTls, tlsFault } from './tls-faults.js';

/** Connecting, TLS from the first byte and the greeting are told apart by the error; the trace is silent there. */
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

/** The server's words if it said any with a code, else the local reason. */
export function replyOf(
	error: SMTPConnection.SMTPError,
	{ phase, settings, offersTls }: { phase: SmtpPhase; settings: SmtpSettings; offersTls: boolean },
): Reply {
	if (phase === 'tls') {
		// The library asks for what was not offered; the answer to that explains nothing.
		const isMissing = settings.security === 'required' && !offersTls;
		const fault = isMissing ? noStartTls(settings) : tlsFault(error, settings);
		if (fault !== null) return localReply('tls', fault);
	}
	const reply = typeof error.response === 'string' ? parseReply(phase, error.response) : null;
	return reply?.code === null || reply === null ? localReply(phase, error.message) : reply;
}
