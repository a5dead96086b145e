/** nodemailer's errors and results as conversations. */
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { Reply, SmtpPhase } from '../store/queue.js';
import type { Conversation } from './conversation.js';
import { localReply, parseReply } from './reply.js';
import type { SmtpSettings } from './settings.js';

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
export function replyOf(error: SMTPConnection.SMTPError, phase: SmtpPhase): Reply {
	const reply = typeof error.response === 'string' ? parseReply(phase, error.response) : null;
	return reply?.code === null || reply === null ? localReply(phase, error.message) : reply;
}

/** `current` is the phase the trace knows; an error that names its command knows better. */
export function conversationOf(error: SMTPConnection.SMTPError, current: SmtpPhase): Conversation {
	const phase = commandPhase(error, current);
	const reply = replyOf(error, phase);
	const isLocal = error.response === undefined && (error.code === 'EMESSAGE' || error.code === 'EENVELOPE');
	const kind = isLocal ? 'unsendable' : (reply.code ?? 0) >= 400 ? 'refused' : 'broken';
	return { kind, reply, refusedCopies: [] };
}

function commandPhase(error: SMTPConnection.SMTPError, current: SmtpPhase): SmtpPhase {
	if (error.command === 'MAIL FROM') return 'mail';
	if (error.command === 'RCPT TO') return 'rcpt';
	if (error.command === 'DATA') return error.code === 'EMESSAGE' ? 'answer' : 'data';
	return current;
}

/** A 2xx after the final dot, with the copies refused on the way. */
export function accepted(info: SMTPConnection.SentMessageInfo): Conversation {
	const reply = parseReply('answer', info.response);
	const refusedCopies = (info.rejectedErrors ?? []).map((error) => ({
		to: String('recipient' in error ? error.recipient : ''),
		reply: replyOf(error, 'rcpt'),
	}));
	// "2" and garbage is no reply: nobody knows what the server did with the message.
	return { kind: reply.code === null ? 'broken' : 'accepted', reply, refusedCopies };
}
