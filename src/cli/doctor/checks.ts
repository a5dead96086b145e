import type { Clock } from '../../api/datetime.js';
import { tlsReason } from '../../api/errors.js';
import type { Hint } from '../frame/command-line.js';
import { UsageError } from '../frame/errors.js';
import { type Columns, column } from '../render/columns.js';

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
export type Group = (typeof groups)[number];

const waiting: ReadonlySet<Group> = new Set(['smtp', 'dns', 'connection', 'service']);

/** `problem`: something does not work, or will not; `warning`: it works, but deserves a look. */
export type Level = 'ok' | 'warning' | 'problem' | 'skipped';

export interface Verdict {
	level: Level;
	message: string;
	/** A command, a record to publish or a sentence, or such steps in order, a line each; null: nothing to do. */
	fix: string | null;
}

export interface Finding extends Verdict {
	check: string;
}

/** The keys of a finding, in the order they are printed. The steps of a fix stand on one line, as those of a hint. */
export const columns: Columns<Finding> = [
	column('check', 'CHECK', { isName: true }),
	column('level', 'LEVEL'),
	column('message', 'MESSAGE'),
	column('fix', 'FIX', { value: ({ fix }) => fix?.replaceAll(':\n', ': ').replaceAll('\n', '; ') ?? null }),
];

/** Several verdicts: one for each domain, for example. */
export type Answer = Verdict | readonly Verdict[];

export interface Check {
	/** Stable, for scripts: `queue.paused`. The part before the dot is its group. */
	name: `${Group}.${string}`;
	run(): Answer | Promise<Answer>;
}

export interface Surroundings {
	/** `mailctl --db news.db WORDS`: a command on the target, for a shell. */
	line(...command: readonly string[]): string;
	text(hint: Hint): string;
	clock: Clock;
	zone: string;
	isOffline: boolean;
	isFull: boolean;
	/** Ends one question to another machine after so many milliseconds (5 s) or `--timeout`, and with the run. */
	timeout(ms?: number): AbortSignal;
}

export function ok(message: string): Verdict {
	return { level: 'ok', message, fix: null };
}

export function warning(message: string, fix: string | null = null): Verdict {
	return { level: 'warning', message, fix };
}

export function problem(message: string, fix: string | null = null): Verdict {
	return { level: 'problem', message, fix };
}

/** The check did not run. Checks that are skipped for one reason have the same message. */
export function skipped(message: string): Verdict {
	return { level: 'skipped', message, fix: null };
}

export function online({ isOffline }: Pick<Surroundings, 'isOffline'>, run: Check['run']): Check['run'] {
	return () => (isOffline ? skipped('--offline asks no other machine') : run());
}

export function once<T>(ask: () => Promise<T>): () => Promise<T> {
	let asked: Promise<T> | null = null;
	return () => {
		asked ??= ask();
		return asked;
	};
}

/** The text of an error; the first of several tried addresses is enough. */
export function firstError(error: unknown): string {
	if (error instanceof AggregateError && error.errors.length > 0) return firstError(error.errors[0]);
	return error instanceof Error ? tlsReason(error.message) : String(error);
}

export interface Selection {
	only: readonly Group[];
	skip: readonly Group[];
}

/** Throws `UsageError` when nothing is left to check. */
export function chooseChecks(checks: readonly Check[], { only, skip }: Selection): Check[] {
	const isChosen = (group: Group) => (only.length === 0 || only.includes(group)) && !skip.includes(group);
	const chosen = checks.filter((check) => isChosen(groupOf(check)));
	if (chosen.length > 0) return chosen;
	const there = [...new Set(checks.map(groupOf))];
	throw new UsageError('--only and --skip leave nothing to check', {
		hint: `groups here: ${there.join(', ')}`,
	});
}

/**
 * Findings in the order of the checks. Checks that wait for other machines begin together, after all others: while this
 * thread reads a large database, a machine that answers would seem silent. A check without a result when `signal` aborts
 * is skipped.
 */
export async function runChecks(
	checks: readonly Check[],
	{ signal, onDone }: { signal: AbortSignal; onDone?: () => void },
): Promise<Finding[]> {
	const late = new Promise<Verdict[]>((resolve) => {
		const stop = () => resolve([skipped('there was no time for it')]);
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
	});
	const found = new Map<Check, Finding[]>();
	const run = async (check: Check) => {
		const verdicts = await Promise.race([late, attempt(check)]);
		found.set(
			check,
			verdicts.map((verdict) => ({ check: check.name, ...verdict })),
		);
		onDone?.();
	};
	for (const check of checks) if (!waiting.has(groupOf(check)) && !signal.aborted) await run(check);
	await Promise.all(checks.filter((check) => !found.has(check)).map(run));
	return checks.flatMap((check) => found.get(check) ?? []);
}

async function attempt({ run }: Check): Promise<readonly Verdict[]> {
	try {
		const answer = await run();
		return 'level' in answer ? [answer] : answer;
	} catch (error) {
		return [problem(`this could not be looked at: ${firstError(error)}`)];
	}
}

function groupOf({ name }: Check): Group {
	const group = groups.find((one) => name.startsWith(`${one}.`));
	if (group === undefined) throw new Error(`${name} belongs to no group`);
	return group;
}
