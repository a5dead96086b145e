/** What `mailctl doctor` is made of: checks, and what each of them found. */

/** What `--only` and `--skip` name, in the order they are shown. */
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

/** `problem`: something does not work, or will not; `warning`: it works, and somebody should know. */
export type Level = 'ok' | 'warning' | 'problem' | 'skipped';

/** What a check found: a sentence, and what to do about it. */
export interface Verdict {
	level: Level;
	message: string;
	/** A command, a record to publish or a sentence; null where there is nothing to do. */
	fix: string | null;
}

/** A verdict with the name of its check: what is printed. */
export interface Finding extends Verdict {
	check: string;
}

/** One question. It may have several answers: one for each domain, say. */
export interface Check {
	/** Stable, for scripts: `queue.paused`. What stands before the dot is its group. */
	name: `${Group}.${string}`;
	/** What is thrown is a problem of its own. */
	run(): Promise<Verdict | readonly Verdict[]>;
}

/** What every check may need to know. */
export interface Surroundings {
	/** `mailctl --db news.db WORDS`: a command on the target that is looked at. */
	line(words: string): string;
	/** Nothing leaves this machine. */
	isOffline: boolean;
	/** Large databases are read whole. */
	isFull: boolean;
	/** Ctrl-C, and `--deadline`. */
	signal: AbortSignal;
}

/** As it should be; the message says what was seen. */
export function ok(message: string): Verdict {
	return { level: 'ok', message, fix: null };
}

/** It works, and somebody should know. */
export function warning(message: string, fix: string | null = null): Verdict {
	return { level: 'warning', message, fix };
}

/** It does not work, or will not. */
export function problem(message: string, fix: string | null = null): Verdict {
	return { level: 'problem', message, fix };
}

/** It was not looked at; the message says why, and is the same for all that have the reason in common. */
export function skipped(message: string): Verdict {
	return { level: 'skipped', message, fix: null };
}

/** The group of a check. */
export function groupOf({ name }: Pick<Check, 'name'>): Group | undefined {
	return groups.find((group) => name.startsWith(`${group}.`));
}
