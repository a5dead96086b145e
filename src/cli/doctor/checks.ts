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

/** The keys of a finding, in the order they are printed. The steps of a fix are joined into one line. */
export const columns: Columns<Finding> = [
	column('check', 'CHECK', { isName: true }),
	column('level', 'LEVEL'),
	column('message', 'MESSAGE'),
	column('fix', 'FIX', { value: ({ fix }) => fix?.replaceAll(':\n', ': ').replaceAll('\n', '; ') ?? null }),
];

export const ok = (message: string): Verdict => ({ level: 'ok', message, fix: null });
export const skipped = (message: string): Verdict => ({ level: 'skipped', message, fix: null });
export const warning = (message: string, fix: string | null = null): Verdict => ({
	...{ level: 'warning', message, fix },
});
export const problem = (message: string, fix: string | null = null): Verdict => ({
	...{ level: 'problem', message, fix },
});

/** Thrown within a check that cannot be made: it is skipped for this reason. */
export class Skip extends Error {}

export type Answer = Verdict | readonly Verdict[];
export type CheckName = `${Group}.${string}`;

/** Scripts rely on the names. A report has them by group, and within it in the order of the table. */
export type Checks = Readonly<Record<CheckName, () => Answer | Promise<Answer>>>;

export interface Surroundings {
	/** A command of mailctl with the target of this call, to be pasted. */
	line(...command: readonly string[]): string;
	text(hint: Hint): string;
	now(): Micros;
	moment(at: Micros): string;
	until(at: Micros): string;
	isFull: boolean;
	/** Ends one question to another machine after so many milliseconds (5 s) or `--timeout`, and with the run. */
	timeout(ms?: number): AbortSignal;
	/** Called before another machine is asked. Throws `Skip` under --offline. */
	goOnline(): void;
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

export type Chosen = readonly (readonly [name: CheckName, run: Checks[CheckName]])[];

export function chooseChecks(checks: Checks, { only, skip }: Selection): Chosen {
	const all = Object.entries(checks) as [CheckName, Checks[CheckName]][]; // the type of the table
	all.sort(([one], [other]) => groups.indexOf(groupOf(one)) - groups.indexOf(groupOf(other)));
	const isChosen = (group: Group) => (only.length === 0 || only.includes(group)) && !skip.includes(group);
	const chosen = all.filter(([name]) => isChosen(groupOf(name)));
	if (chosen.length > 0) return chosen;
	const there = [...new Set(all.map(([name]) => groupOf(name)))].join(', ');
	throw new UsageError('--only and --skip leave no checks', { hint: `groups for this target: ${there}` });
}

/**
 * Findings in the order of the checks. Checks that wait for other machines begin together, after all others: while this
 * thread reads a large database, a machine that answers would seem silent. A check without a result when `signal` aborts
 * is skipped.
 */
export async function runChecks(checks: Chosen, signal: AbortSignal, onDone: () => void): Promise<Finding[]> {
	const late = new Promise<Verdict>((resolve) => {
		const stop = () => resolve(skipped('not finished in time'));
		if (signal.aborted) stop();
		else signal.addEventListener('abort', stop, { once: true });
	});
	const found = new Map<CheckName, Finding[]>();
	const runOne = async ([check, run]: Chosen[number]) => {
		const attempt = (async () => run())().catch((error: unknown) =>
			error instanceof Skip ? skipped(error.message) : problem(`this check failed: ${firstError(error)}`),
		);
		const verdicts = [await Promise.race([late, attempt])].flat();
		found.set(
			check,
			verdicts.map((verdict) => ({ check, ...verdict })),
		);
		onDone();
	};
	for (const check of checks) if (!waiting.has(groupOf(check[0])) && !signal.aborted) await runOne(check);
	await Promise.all(checks.filter(([name]) => !found.has(name)).map(runOne));
	return checks.flatMap(([name]) => found.get(name) ?? []);
}

function groupOf(name: CheckName): Group {
	return name.slice(0, name.indexOf('.')) as Group; // the type of names
}
