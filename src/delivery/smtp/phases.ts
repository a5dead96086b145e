/**
 * Tracks how far the opening of a session has come, by the trace of nodemailer's connection: its error codes do not
 * name the phase. `smtp/transaction.ts` counts the phases on the open session.
 */
import type { SmtpPhase } from '../../engine/rules/outcomes.js';
import type { SmtpExtensions } from './transaction.js';

/** A line of the trace, free of secrets: the connection masks them. */
export interface TraceEntry {
	from: 'client' | 'server';
	line: string;
}

export interface PhaseTracker {
	readonly phase: SmtpPhase;
	/** The answer to the last EHLO: after STARTTLS only the one under TLS (RFC 3207 s.4.2). */
	readonly extensions: SmtpExtensions;
	/** The server offered STARTTLS before anything was encrypted. */
	readonly offersTls: boolean;
	note(entry: TraceEntry): void;
}

/** Calls `onChange` whenever a phase begins, even the same again. */
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
