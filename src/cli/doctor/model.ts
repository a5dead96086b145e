/** The model of `mailctl doctor`: checks and their findings. */

/** The values of `--only` and `--skip`, in the order they are shown. */
export const groups = [
	'machine',
	'config',
	'database',
	'settings',
	'smtp',
	'queue',
	'webhooks',
	'dns',
	'connection',
	'service',
] as const;
/** One of `groups`. */
export type Group = (typeof groups)[number];

/** Groups whose checks wait for other machines. */
export const waitingGroups: ReadonlySet<Group | undefined> = new Set([
	'smtp',
	'dns',
	'connection',
	'service',
]);

/** `problem`: something does not work, or will not; `warning`: it works, but a person should know. */
export type Level = 'ok' | 'warning' | 'problem' | 'skipped';

/** The result of a check: a sentence, and the fix. */
export interface Verdict {
	level: Level;
	message: string;
	/** A command, a record to publish or a sentence, or such steps in order, a line each; null: there is nothing to do. */
	fix: string | null;
}

/** A verdict with the name of its check, as it is printed. */
export interface Finding extends Verdict {
	check: string;
}

/** One question. It may have several answers: one for each domain, say. */
export interface Check {
	/** Stable, for scripts: `queue.paused`. The part before the dot is its group. */
	name: `${Group}.${string}`;
	/** A thrown error is a problem of its own. */
	run(): Promise<Verdict | readonly Verdict[]>;
}

/** Facts and services that every check may need. */
export interface CheckEnvironment {
	/** `mailctl --db news.db WORDS`: a command on the target that is looked at, for a shell. */
	line(...command: readonly string[]): string;
	/** The time zone in which moments are told (IANA name). */
	zone: string;
	/** Nothing leaves this machine. */
	isOffline: boolean;
	/** Large databases are read whole. */
	isFull: boolean;
	/**
	 * For one question to another machine: ends after so many milliseconds (5 s) or `--timeout`, and with the run
	 * (Ctrl-C, `--deadline`). Its reason is an error with that text.
	 */
	timeout(ms?: number): AbortSignal;
}

/** Nothing is wrong; the message describes what was found. */
export function ok(message: string): Verdict {
	return { level: 'ok', message, fix: null };
}

/** It works, but a person should know. */
export function warning(message: string, fix: string | null = null): Verdict {
	return { level: 'warning', message, fix };
}

/** It does not work, or will not. */
export function problem(message: string, fix: string | null = null): Verdict {
	return { level: 'problem', message, fix };
}

/** The check did not run. The message is the reason, the same text for all checks skipped for it. */
export function skipped(message: string): Verdict {
	return { level: 'skipped', message, fix: null };
}

/** The group of a check. */
export function groupOf({ name }: Pick<Check, 'name'>): Group | undefined {
	return groups.find((group) => name.startsWith(`${group}.`));
}
