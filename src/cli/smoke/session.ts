/** One run of `mailctl smoke`: its checks or its clean-up alone, until the deadline, then the report. */
import { formatDateTime, monotonicMicros } from '../../api/datetime.js';
import type { CommandContext } from '../frame/context.js';
import { CliError, DeadlinePassed } from '../frame/errors.js';
import { exits } from '../frame/exit.js';
import { type Caller, createCaller, delayed } from './caller.js';
import { type CheckContext, createCheckContext } from './check-context.js';
import { cleanUp, findThings, type Thing } from './cleanup.js';
import { type CreatedRecords, trackCreatedRecords } from './created-records.js';
import {
	Broken,
	type CheckResult,
	type HaltReason,
	type Kind,
	type Leftover,
	type Right,
	type SmokeReport,
} from './model.js';
import { kinds, type RunNames } from './names.js';
import { type Planned, planChecks, planPreconditions, type Selection } from './plan.js';
import { type ChecksRun, runChecks } from './run.js';
import { cleaned, messageOf, nothing, since, sweep } from './sweep.js';

export interface SessionOptions {
	names: RunNames;
	mail: { to: string; from: string } | null;
	/** Ctrl-C, SIGTERM and the deadline. */
	signal: AbortSignal;
}

export interface Finished {
	report: SmokeReport;
	halted: { why: HaltReason; message: string } | null;
	/** What the token lacks for checks of the run. */
	missing: ReadonlySet<Right>;
	/** The checks that were left out for it. */
	leftOut: readonly CheckResult[];
}

/**
 * The command as a whole has ten seconds after its signal. A change that is under way takes up to two of them, and so
 * does the last deletion of the clean-up.
 */
const cleanupGraceMs = 5_000;

/** The default of `--deadline`. */
export const defaultDeadline = { ms: 120_000, text: '2m' } as const;

/** The command's signal with smoke's own deadline where none was given; `stop` it at the end. */
export function withDeadline(cx: CommandContext): { signal: AbortSignal; stop: () => void } {
	if (cx.settings.deadline.value !== null) return { signal: cx.signal, stop: () => {} };
	const controller = new AbortController();
	const { ms, text } = defaultDeadline;
	const timer = setTimeout(() => controller.abort(new DeadlinePassed(text)), ms);
	return { signal: AbortSignal.any([cx.signal, controller.signal]), stop: () => clearTimeout(timer) };
}

/** The checks of a run, without running them. */
export async function plan(
	cx: CommandContext,
	options: SessionOptions,
	selection: Selection,
): Promise<Planned[]> {
	return planChecks(await checkContextOf(cx, options, trackCreatedRecords()), selection);
}

/** Runs the checks, cleans up, and reports; never throws for a fault of the deployment. */
export async function runSmoke(
	cx: CommandContext,
	options: SessionOptions,
	selection: Selection,
): Promise<Finished> {
	const start = monotonicMicros();
	const started = cx.clock.now();
	const records = trackCreatedRecords();
	const { signal, names } = options;
	const planned = planChecks(await checkContextOf(cx, options, records), selection);
	const progress = cx.progress('checking', planned.length);
	let done = 0;
	let checks: ChecksRun;
	const call = await callerOf(cx, signal);
	try {
		checks = await runChecks({
			...checking(call, signal),
			planned,
			onResult: () => {
				done += 1;
				progress.update(done);
			},
		});
	} finally {
		progress.stop();
	}
	const { results, deviations, halted, missing, leftOut } = checks;
	const cleanup = records.isEmpty() ? null : await cleanedUp(cx, options, records);
	const all = cleanup === null ? results : [...results, cleanup.result];
	const leftovers = cleanup?.leftovers ?? [];
	const whole = { checks: all, deviations, leftovers };
	const report = await reportOf(cx, { run: names.id, started, start, ...whole });
	return { report, halted, missing, leftOut };
}

/** `--cleanup-only`: the leftovers of any run, each a check of its own. */
export async function runCleanup(cx: CommandContext, options: SessionOptions): Promise<Finished> {
	const start = monotonicMicros();
	const started = cx.clock.now();
	const call = await callerOf(cx, options.signal);
	const context = await checkContextOf(cx, options, trackCreatedRecords());
	const preconditions = await runChecks({
		...checking(call, options.signal),
		planned: planPreconditions(context),
	});
	const swept = preconditions.results.length > 0 ? nothing : await sweep(call, options.signal);
	const checks = [...preconditions.results, ...swept.checks];
	const whole = { checks, deviations: [], leftovers: swept.leftovers };
	const report = await reportOf(cx, { run: options.names.id, started, start, ...whole });
	const { halted, missing, leftOut } = preconditions;
	return { report, halted, missing, leftOut };
}

/** The records that `--cleanup-only` would delete. Throws exit 11 for an unreadable collection. */
export async function findLeftovers(cx: CommandContext, signal: AbortSignal): Promise<Thing[]> {
	const call = await callerOf(cx, signal);
	const found: Thing[] = [];
	try {
		for (const { kind } of kinds) found.push(...(await findThings(call, null, kind)));
	} catch (error) {
		if (error instanceof Broken) throw new CliError('smoke_failed', exits.found, error.message);
		throw error;
	}
	return found;
}

async function cleanedUp(
	cx: CommandContext,
	{ names, signal }: SessionOptions,
	records: CreatedRecords,
): Promise<{ result: CheckResult; leftovers: Leftover[] }> {
	const start = monotonicMicros();
	const patience = delayed(signal, cleanupGraceMs);
	try {
		const nameOf = (kind: Kind) => ({ list: names.list, field: names.variable, webhook: names.url })[kind];
		const call = await callerOf(cx, patience.signal);
		const leftovers = await cleanUp(call, records, { id: names.id, nameOf });
		const whys = leftovers.map(({ kind, id, name, why }) => `${kind} ${id ?? '?'} "${name}": ${why}`);
		const fault = whys.length === 0 ? null : whys.join('\n');
		const result = cleaned('all', 'everything the run made is deleted', start, fault);
		return { result, leftovers };
	} finally {
		patience.stop();
	}
}

async function callerOf(cx: CommandContext, signal: AbortSignal): Promise<Caller> {
	const { exchange, target } = await cx.connection();
	const token = target.kind === 'remote' ? target.token : null;
	return createCaller({ exchange, retries: cx.settings.retries.value, signal, token, clock: cx.clock });
}

async function checkContextOf(
	cx: CommandContext,
	{ names, mail, signal }: SessionOptions,
	records: CreatedRecords,
): Promise<CheckContext> {
	const { target } = cx.dryRun ? { target: null } : await cx.connection();
	// The owner of a database needs no token.
	const hasToken = target?.kind !== 'remote' || target.token !== null;
	return createCheckContext({ names, mail, signal, records, hasToken, connection: cx.connection });
}

function checking(call: Caller, signal: AbortSignal) {
	return { call, signal, whyStopped: () => messageOf(signal.reason), onResult: () => {} };
}

interface Parts extends Pick<SmokeReport, 'run' | 'checks' | 'deviations' | 'leftovers'> {
	started: number;
	start: number;
}

async function reportOf(cx: CommandContext, parts: Parts): Promise<SmokeReport> {
	const { run, checks, deviations, leftovers, started, start } = parts;
	const { target } = await cx.connection();
	const number = (...outcomes: string[]) => checks.filter(({ outcome }) => outcomes.includes(outcome)).length;
	return {
		run,
		target: target.kind === 'remote' ? target.baseUrl : target.url,
		started: `${formatDateTime(started).slice(0, 23)}Z`,
		duration_ms: since(start),
		checks,
		deviations,
		leftovers,
		counts: {
			passed: number('pass', 'deviation'),
			failed: number('fail'),
			skipped: number('skip'),
			deviations: deviations.length,
			leftovers: leftovers.length,
		},
	};
}
