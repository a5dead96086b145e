import type { Probe } from './probe.js';

export const groups = [
	...(['connection', 'auth', 'lists', 'subscribers', 'fields', 'webhooks', 'report', 'send'] as const),
];
export type Group = (typeof groups)[number];

export interface Check {
	/** Stable, for scripts: `lists.create`. The part before the dot is its group. */
	id: `${Group}.${string}`;
	title: string;
	need: 'read' | 'change' | 'send';
	/** Throws `Broken` or `Skipped`; anything else that is thrown is a failure too. A text is a detail worth showing. */
	run(probe: Probe): Promise<unknown>;
}

export function check(need: Check['need'], id: string, title: string, run: Check['run']): Check {
	return { need, id: id as Check['id'], title, run }; // groups are those of the callers
}

export type Outcome = 'pass' | 'fail' | 'skip' | 'deviation';

export interface CheckResult {
	id: string;
	title: string;
	group: Group | 'cleanup';
	outcome: Outcome;
	/** The reason of a failure or a skip, or the observation. May hold the deployment's own words. */
	detail: string | null;
	duration_ms: number;
}

export const kinds = ['list', 'field', 'webhook'] as const;
export type Kind = (typeof kinds)[number];

/** A record of a run that could not be deleted. `id` null: its collection could not be searched. */
export interface Leftover {
	kind: Kind;
	id: number | null;
	name: string;
	why: string;
}

export interface SmokeReport {
	run: string;
	target: string;
	started: string;
	duration_ms: number;
	checks: readonly CheckResult[];
	deviations: readonly { check: string; text: string }[];
	leftovers: readonly Leftover[];
	counts: { passed: number; failed: number; skipped: number; deviations: number; leftovers: number };
}

export function groupOf({ id }: Pick<Check, 'id'>): Group {
	return id.split('.', 1)[0] as Group; // by the type of ids
}

export const reporterNames = ['text', 'tap', 'junit', 'json'] as const;
export type ReporterName = (typeof reporterNames)[number];
