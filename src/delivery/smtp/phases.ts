/**
 * The phases of a session: how far its opening has come, by the trace of nodemailer's connection, whose error codes do
 * not name the phase; and how long each may take. `smtp/transaction.ts` counts the phases on the open session.
 */
import type { SmtpPhase } from '../../engine/rules/outcomes.js';
import type { SmtpTimeouts } from './settings.js';
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

/** Milliseconds that a phase may take. */
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
	/** In `ms` milliseconds; replaces the last one. */
	set(ms: number): void;
	clear(): void;
}

/**
 * `onMissed` gets the milliseconds that were set. A conversation sets four deadlines a mail, of minutes. The timer
 * stays while it fires early enough, and then checks the current deadline.
 */
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
