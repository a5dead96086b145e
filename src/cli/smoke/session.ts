/** One run of `mailctl smoke`: its checks or its clean-up alone, until the deadline, then the report. */
import { formatDateTime, microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { CommandContext } from '../context.js';
import { DeadlinePassed } from '../errors.js';
import { type Caller, createCaller, delayed } from './caller.js';
import { cleanUp, findThings, removeThing, type Thing } from './cleanup.js';
import { createLedger, type Ledger } from './ledger.js';
import type { CheckResult, HaltReason, Kind, Leftover, SmokeReport } from './model.js';
import type { RunNames } from './names.js';
import { type Planned, planChecks, type Selection } from './plan.js';
import { type ChecksRun, runChecks } from './run.js';
import { createWorkshop, type Workshop } from './workshop.js';

export interface SessionOptions {
	names: RunNames;
	mail: { to: string; from: string } | null;
	/** Ctrl-C, SIGTERM and the deadline. */
	signal: AbortSignal;
}

export interface Finished {
	report: SmokeReport;
	halted: { why: HaltReason; message: string } | null;
}

/** The command as a whole has ten seconds after its signal; two are for the report and the closing. */
const cleanupGraceMs = 8_000;

/** What `--deadline` is when nobody gives one. */
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
export function plan(cx: CommandContext, options: SessionOptions, selection: Selection): Planned[] {
	const target = { isLocal: true, hasToken: false };
	return planChecks(workshopOf(cx, options, { ledger: createLedger(), target }), selection);
}

/** Runs the checks, cleans up, and reports; never throws for what the deployment does. */
export async function runSmoke(
	cx: CommandContext,
	options: SessionOptions,
	selection: Selection,
): Promise<Finished> {
	const start = monotonicMicros();
	const started = cx.clock.now();
	const ledger = createLedger();
	const { signal, names } = options;
	const { target } = await cx.connection();
	const hasToken = target.kind === 'remote' && target.token !== null;
	const workshop = workshopOf(cx, options, {
		ledger,
		target: { isLocal: target.kind === 'local', hasToken },
	});
	const planned = planChecks(workshop, selection);
	const progress = cx.progress('checking', planned.length);
	let done = 0;
	let checks: ChecksRun;
	try {
		checks = await runChecks({
			planned,
			call: await callerOf(cx, signal),
			signal,
			whyStopped: () => whyStopped(signal),
			onResult: () => {
				done += 1;
				progress.update(done);
			},
		});
	} finally {
		progress.stop();
	}
	const { results, deviations, halted } = checks;
	const cleaned = ledger.isEmpty() ? null : await cleanedUp(cx, options, ledger);
	const all = cleaned === null ? results : [...results, cleaned.result];
	const leftovers = cleaned?.leftovers ?? [];
	const whole = { checks: all, deviations, leftovers };
	return { report: await reportOf(cx, { run: names.id, started, start, ...whole }), halted };
}

/** `--cleanup-only`: what any run has left, each a check of its own. */
export async function runCleanup(cx: CommandContext, { names, signal }: SessionOptions): Promise<Finished> {
	const start = monotonicMicros();
	const started = cx.clock.now();
	const call = await callerOf(cx, signal);
	const checks: CheckResult[] = [];
	const leftovers: Leftover[] = [];
	for (const thing of await findThings(call, null)) {
		const before = monotonicMicros();
		const removal = await removeThing(call, thing, null);
		if (removal !== null) leftovers.push(removal);
		checks.push({
			id: `cleanup.${thing.kind}-${thing.id}`,
			title: `${describe(thing)} is deleted`,
			group: 'cleanup',
			outcome: removal === null ? 'pass' : 'fail',
			detail: removal?.why ?? null,
			duration_ms: since(before),
		});
	}
	const whole = { checks, deviations: [], leftovers };
	return { report: await reportOf(cx, { run: names.id, started, start, ...whole }), halted: null };
}

/** What `--cleanup-only` would delete. */
export async function findLeftovers(cx: CommandContext, signal: AbortSignal): Promise<Thing[]> {
	return findThings(await callerOf(cx, signal), null);
}

/** `list 12 "mailctl-smoke-…"`. */
export function describe({ kind, id, name }: Thing): string {
	return `${kind} ${id} "${name}"`;
}

async function cleanedUp(
	cx: CommandContext,
	{ names, signal }: SessionOptions,
	ledger: Ledger,
): Promise<{ result: CheckResult; leftovers: Leftover[] }> {
	const start = monotonicMicros();
	const patience = delayed(signal, cleanupGraceMs);
	try {
		const nameOf = (kind: Kind) => ({ list: names.list, field: names.variable, webhook: names.url })[kind];
		const call = await callerOf(cx, patience.signal);
		const leftovers = await cleanUp(call, ledger, { id: names.id, nameOf });
		const whys = leftovers.map(({ kind, id, name, why }) => `${kind} ${id ?? '?'} "${name}": ${why}`);
		const result: CheckResult = {
			id: 'cleanup.all',
			title: 'everything the run made is deleted',
			group: 'cleanup',
			outcome: leftovers.length === 0 ? 'pass' : 'fail',
			detail: leftovers.length === 0 ? null : whys.join('\n'),
			duration_ms: since(start),
		};
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

function workshopOf(
	cx: CommandContext,
	{ names, mail, signal }: SessionOptions,
	more: Pick<Workshop, 'ledger' | 'target'>,
): Workshop {
	return createWorkshop({ names, mail, signal, connection: cx.connection, ...more });
}

function whyStopped({ reason }: AbortSignal): string {
	return reason instanceof Error ? reason.message : 'stopped';
}

function since(start: number): number {
	return Math.round((monotonicMicros() - start) / microsPerMs);
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
