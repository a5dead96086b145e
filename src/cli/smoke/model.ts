import type { Probe } from './probe.js';
import type { Leftover } from './records.js';

export const groups = [
	...(['connection', 'auth', 'lists', 'subscribers', 'fields', 'webhooks', 'report', 'send'] as const),
];
export type Group = (typeof groups)[number];

export interface Check {
	group: Group;
	/** Scripts rely on the id. It begins with the group: `lists.create`. */
	id: string;
	title: string;
	need: 'read' | 'change' | 'send';
	/** Throws `Broken` or `Skipped`. Any other error counts as a failure. A returned text becomes the detail. */
	run(probe: Probe): Promise<unknown>;
}

type CheckId = `${Group}.${string}`;

export function check(need: Check['need'], id: CheckId, title: string, run: Check['run']): Check {
	return { need, group: id.slice(0, id.indexOf('.')) as Group, id, title, run }; // CheckId begins with a Group
}

export interface CheckResult extends Pick<Check, 'id' | 'title'> {
	group: Group | 'cleanup';
	outcome: 'pass' | 'fail' | 'skip' | 'deviation';
	/** The reason for a failure or a skip, or an observation. May quote answers of the service. */
	detail: string | null;
	duration_ms: number;
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

export const reporterNames = ['text', 'tap', 'junit', 'json'] as const;
export type ReporterName = (typeof reporterNames)[number];
