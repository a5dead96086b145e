/** What `mailctl smoke` is made of: checks, what each came to, and the report of a run. */
import type { Answer, Ask } from './caller.js';

/** What `--only` and `--skip` name, in the order they run. */
export const groups = [
	'connection',
	'auth',
	'lists',
	'subscribers',
	'fields',
	'webhooks',
	'report',
	'send',
] as const;
export type Group = (typeof groups)[number];

/** `read` changes nothing; `change` is for `--full`; `send` for `--send-to`, `call` for both together. */
export type Need = 'read' | 'change' | 'send' | 'call';

export interface Check {
	/** Stable, for scripts: `lists.create`. */
	id: string;
	group: Group;
	/** What holds when it passes. */
	title: string;
	need: Need;
	/** Throws `Broken` or `Skipped`; anything else that is thrown is a failure too. Returns a detail worth showing. */
	run(probe: Probe): Promise<string | undefined>;
}

/** What a check works with. */
export interface Probe {
	call(ask: Ask): Promise<Answer>;
	/** Breaks the documented contract; the check goes on and will have failed. */
	fault(text: string): void;
	/** Differs from what the document leaves open; listed, no failure. */
	deviate(text: string): void;
}

/** Breaks the documented contract, and the check cannot go on. */
export class Broken extends Error {
	override readonly name: string = 'Broken';
}

/** Nothing further can be checked: no answer at all, or the token is refused. */
export class Halted extends Broken {
	override readonly name = 'Halted';
	readonly why: HaltReason;
	constructor(why: HaltReason, message: string) {
		super(message);
		this.why = why;
	}
}
export type HaltReason = 'unreachable' | 'refused';

/** The check does not apply here; the message says why. */
export class Skipped extends Error {
	override readonly name = 'Skipped';
}

/** `deviation`: passed, but some of what it saw is listed. */
export type Outcome = 'pass' | 'fail' | 'skip' | 'deviation';

export interface CheckResult {
	id: string;
	title: string;
	/** `cleanup` is what the run does at its end. */
	group: Group | 'cleanup';
	outcome: Outcome;
	/** Why it failed or was skipped, or what it saw. May hold the deployment's own words. */
	detail: string | null;
	duration_ms: number;
}

export interface Deviation {
	check: string;
	text: string;
}

export type Kind = 'list' | 'field' | 'webhook';

/** Something of a run that could not be deleted. `id` null: perhaps there, its creation was not answered. */
export interface Leftover {
	kind: Kind;
	id: number | null;
	name: string;
	why: string;
}

export interface SmokeReport {
	run: string;
	target: string;
	/** ISO 8601, UTC. */
	started: string;
	duration_ms: number;
	checks: readonly CheckResult[];
	deviations: readonly Deviation[];
	leftovers: readonly Leftover[];
	counts: { passed: number; failed: number; skipped: number; deviations: number; leftovers: number };
}
