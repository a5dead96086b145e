import type { Probe } from './probe.js';
import type { Leftover } from './records.js';

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
	/** Stable, for scripts: `lists.create`. The part before the dot is its group. */
	id: `${Group}.${string}`;
	title: string;
	need: Need;
	/** It judges each 403 itself; for other checks a 403 is a right that the token lacks. */
	judgesRefusals?: true;
	/** Throws `Broken` or `Skipped`; anything else that is thrown is a failure too. Returns a detail worth showing. */
	run(probe: Probe): Promise<string | undefined>;
}

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

export interface SmokeReport {
	run: string;
	target: string;
	/** ISO 8601, UTC. */
	started: string;
	duration_ms: number;
	checks: readonly CheckResult[];
	deviations: readonly { check: string; text: string }[];
	leftovers: readonly Leftover[];
	counts: { passed: number; failed: number; skipped: number; deviations: number; leftovers: number };
}

export function groupOf({ id }: Check): Group {
	const group = groups.find((one) => id.startsWith(`${one}.`));
	if (group === undefined) throw new Error(`${id} belongs to no group`);
	return group;
}

export const reporterNames = ['text', 'tap', 'junit', 'json'] as const;
export type ReporterName = (typeof reporterNames)[number];
