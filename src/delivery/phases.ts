/**
 * Knows how far a conversation has come, from the trace that nodemailer's connection writes. Its error codes do not
 * tell the phase, and only the phase tells whether a broken connection is harmless (before the final dot) or
 * ambiguous (after it).
 */
import type { SmtpPhase } from '../store/queue.js';

/** One call an entry of the trace; `line` is free of secrets, the connection masks them. */
export interface TraceEntry {
	from: 'client' | 'server' | 'dot';
	line: string;
}

export interface PhaseTracker {
	readonly phase: SmtpPhase;
	/** EHLO keywords of the current session, upper case; cleared by STARTTLS. */
	readonly extensions: ReadonlySet<string>;
	/** Replies to the commands of the current message: the first is MAIL's, the second its first RCPT's. */
	readonly replies: number;
	note(entry: TraceEntry): void;
	/** The next message starts. */
	startMail(recipients: number): void;
}

/** `onChange` is called whenever a phase begins, even the same again. */
export function createPhaseTracker(onChange: (phase: SmtpPhase) => void): PhaseTracker {
	let phase: SmtpPhase = 'connect';
	let extensions = new Set<string>();
	let isMailing = false;
	let replies = 0;
	let recipients = 0;

	const enter = (next: SmtpPhase) => {
		phase = next;
		onChange(next);
	};
	const noteCommand = (line: string) => {
		if (isMailing) return;
		const verb = /^[A-Z]+/.exec(line)?.[0] ?? '';
		enter(setupPhases[verb] ?? phase);
	};
	const noteReply = (line: string) => {
		if (!isMailing) {
			if (phase === 'ehlo' && line.startsWith('250')) extensions = keywordsOf(line);
			return;
		}
		// With PIPELINING the commands leave together, so the replies are what says how far the server is.
		replies += 1;
		// 421 ends the session, whatever it answers: what was asked last stays the place where it ended.
		if (line.startsWith('421')) return;
		const next = replies <= recipients ? 'rcpt' : replies === recipients + 1 ? 'data' : 'body';
		if (phase === 'mail' || phase === 'rcpt' || phase === 'data') enter(next);
	};
	return {
		get phase() {
			return phase;
		},
		get extensions() {
			return extensions;
		},
		get replies() {
			return replies;
		},
		note(entry) {
			if (entry.from === 'client') noteCommand(entry.line);
			else if (entry.from === 'server') noteReply(entry.line);
			else enter('answer');
		},
		startMail(count) {
			isMailing = true;
			replies = 0;
			recipients = count;
			enter('mail');
		},
	};
}

const setupPhases: Readonly<Record<string, SmtpPhase>> = {
	EHLO: 'ehlo',
	HELO: 'ehlo',
	STARTTLS: 'tls',
	AUTH: 'auth',
};

function keywordsOf(ehlo: string): Set<string> {
	const lines = ehlo.split(/\r?\n/).slice(1);
	return new Set(lines.map((line) => (line.slice(4).split(/[ =]/)[0] ?? '').toUpperCase()));
}
