import type { Micros } from '../../api/datetime.js';
import { tlsReason } from '../../api/errors.js';
import type { Hint } from '../frame/command-line.js';
import { UsageError } from '../frame/errors.js';
import { type Columns, column } from '../render/columns.js';

export const groups = [
	...(['machine', 'config', 'database', 'settings', 'smtp', 'queue', 'webhooks'] as const),
	...(['dns', 'connection', 'service'] as const),
];
export type Group = (typeof groups)[number];

const waiting: ReadonlySet<string> = new Set<Group>(['smtp', 'dns', 'connection', 'service']);

/** `problem`: something does not work or will stop working. `warning`: something works, but needs attention. */
export type Level = 'ok' | 'warning' | 'problem' | 'skipped';

export interface Verdict {
	level: Level;
	message: string;
	/** A command, a DNS record or a sentence. Several steps have one line each. Null: nothing to do. */
	fix: string | null;
}

export interface Finding extends Verdict {
	check: string;
}

export const columns: Columns<Finding> = [
	column('check', 'CHECK', { isName: true }),
	column('level', 'LEVEL'),
	column('message', 'MESSAGE'),
	column('fix', 'FIX', { value: ({ fix }) => fix?.replaceAll(':\n', ': ').replaceAll('\n', '; ') ?? null }),
];

const verdict =
	(level: Level) =>
	(message: string, fix: string | null = null): Verdict => ({ level, message, fix });

export const ok = verdict('ok');
export const skipped = verdict('skipped');
export const warning = verdict('warning');
export const problem = verdict('problem');

/** Thrown by a check that cannot run. The report shows the check as skipped, with this message. */
export class Skip extends Error {}

export type Answer = Verdict | readonly Verdict[];
type Check = () => Answer | Promise<Answer>;

/** Scripts rely on the names. Within a group, the report has the order of the keys. */
export type Checks = Readonly<Record<`${Group}.${string}`, Check>>;

export interface Surroundings {
	/** Returns a command that users can paste, with the current target. */
	line(...command: readonly string[]): string;
	text(hint: Hint): string;
	now(): Micros;
	moment(at: Micros): string;
	until(at: Micros): string;
	isFull: boolean;
	/** The limit is the shorter of `ms` (default 5 s) and `--timeout`. The signal also aborts with the command. */
	timeout(ms?: number): AbortSignal;
	/** Call this before each request to another machine. Throws `Skip` with `--offline`. */
	goOnline(): void;
}

export function once<T>(ask: () => Promise<T>): () => Promise<T> {
	let asked: Promise<T> | null = null;
	return () => {
		asked ??= ask();
		return asked;
	};
}

export function firstError(error: unknown): string {
	if (error instanceof AggregateError && error.errors.length > 0) return firstError(error.errors[0]);
	return error instanceof Error ? tlsReason(error.message) : String(error);
}

export interface Selection {
	only: readonly Group[];
	skip: readonly Group[];
}

export function chooseChecks(checks: Checks, { only, skip }: Selection): Checks {
	const of = (group: Group) => Object.entries(checks).filter(([name]) => name.startsWith(`${group}.`));
	const there = groups.filter((group) => of(group).length > 0);
	const chosen = there.filter(
		(group) => (only.length === 0 || only.includes(group)) && !skip.includes(group),
	);
	if (chosen.length > 0) return Object.fromEntries(chosen.flatMap(of));
	const hint = `choose from the groups of this target: ${there.join(', ')}`;
	throw new UsageError('--only and --skip leave no checks', { hint });
}

/**
 * Returns the findings in the order of `checks`. The checks that wait for other machines run together, after all other
 * checks. Otherwise, SQLite would block this thread while an answer arrives, and the answer would seem late.
 */
export async function runChecks(checks: Checks, signal: AbortSignal, onDone: () => void): Promise<Finding[]> {
	const late = new Promise<Verdict>((resolve) => {
		const stop = () => resolve(skipped('not finished in time'));
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
	});
	const runOne = async (check: string, run: Check): Promise<Finding[]> => {
		const attempt = (async () => run())().catch((error: unknown) =>
			error instanceof Skip ? skipped(error.message) : problem(`this check failed: ${firstError(error)}`),
		);
		const answer = await Promise.race([late, attempt]);
		onDone();
		return [answer].flat().map((one) => ({ check, ...one }));
	};
	const all = Object.entries(checks);
	const isWaiting = (check: string) => waiting.has(check.replace(/\..*/, ''));
	const found = new Map<string, Finding[]>();
	for (const [check, run] of all) if (!isWaiting(check)) found.set(check, await runOne(check, run));
	const findings = all.map(async ([check, run]) => found.get(check) ?? (await runOne(check, run)));
	return (await Promise.all(findings)).flat();
}
