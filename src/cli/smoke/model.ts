/** The model of `mailctl smoke`: checks, their outcomes, and the report of a run. */
import type { Answer, Ask } from './caller.js';

/** The values of `--only` and `--skip`, in the order they run. */
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
	/** The statement that a pass confirms. */
	title: string;
	need: Need;
	/** It judges each 403 itself; for other checks a 403 is a right that the token lacks. */
	judgesRefusals?: true;
	/** Throws `Broken` or `Skipped`; anything else that is thrown is a failure too. Returns a detail worth showing. */
	run(probe: Probe): Promise<string | undefined>;
}

/** The tools of a check. */
export interface Probe {
	call(ask: Ask): Promise<Answer>;
	/** A breach of the documented contract; the check continues and fails. */
	fault(text: string): void;
	/** A difference where the document leaves room; listed, no failure. */
	deviate(text: string): void;
}

/** Breaks the documented contract, and the check cannot go on. */
export class Broken extends Error {
	override readonly name: string = 'Broken';
}

/** The token lacks a right for the check: no fault of the deployment. */
export class Denied extends Broken {
	override readonly name = 'Denied';
	readonly right: Right;
	constructor(right: Right, message: string) {
		super(message);
		this.right = right;
	}
}

/** The scopes of a mailctl server; other services have rights of their own. */
export type Right = 'read' | 'send' | 'admin';

/** Nothing further can be checked: no answer at all, another service's answer, or the token is refused. */
export class Halted extends Broken {
	override readonly name = 'Halted';
	readonly why: HaltReason;
	constructor(why: HaltReason, message: string) {
		super(message);
		this.why = why;
	}
}
export type HaltReason = 'unreachable' | 'elsewhere' | 'refused';

/** The check does not apply here; the message is the reason. */
export class Skipped extends Error {
	override readonly name = 'Skipped';
}

/** `deviation`: passed, with listed differences. */
export type Outcome = 'pass' | 'fail' | 'skip' | 'deviation';

export interface CheckResult {
	id: string;
	title: string;
	/** `cleanup` comes at the end of the run. */
	group: Group | 'cleanup';
	outcome: Outcome;
	/** The reason of a failure or a skip, or the observation. May hold the deployment's own words. */
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
