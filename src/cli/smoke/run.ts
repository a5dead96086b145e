/** Chooses the checks of a run, runs them one after the other, deletes what they made, and reports. */
import { formatDateTime, microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { type Answer, type Ask, type Caller, createCaller, delayed } from './caller.js';
import { allChecks } from './checks.js';
import {
	type Check,
	type CheckResult,
	type Group,
	groupOf,
	groups,
	type Outcome,
	type SmokeReport,
} from './model.js';
import { Denied, Halted, type HaltReason, Probe, type Right, Skipped, said } from './probe.js';
import {
	CreatedRecords,
	describe,
	findThings,
	type Kind,
	kinds,
	type Leftover,
	messageOf,
	type RunNames,
	removeThing,
	type Thing,
} from './records.js';

export interface Selection {
	full: boolean;
	only: readonly Group[];
	skip: readonly Group[];
}

export interface RunOptions {
	names: RunNames;
	/** `--send-to` and `--from`; null: no message is sent. */
	mail: { to: string; from: string } | null;
	signal: AbortSignal;
}

/** All other checks need these two, so they run even when their groups are not selected. */
const preconditions: ReadonlySet<string> = new Set(['connection.reachable', 'auth.token']);

/** `isAsked` false: a precondition that was not selected; reported only when it does not pass. */
export interface Planned {
	check: Check;
	isAsked: boolean;
}

/** Throws `UsageError` when nothing is left to check. */
export async function plan(
	cx: CommandContext,
	options: RunOptions,
	{ full, only, skip }: Selection,
	records = new CreatedRecords(),
): Promise<Planned[]> {
	const sends = options.mail !== null;
	if (only.includes('send') && !sends)
		throw new UsageError('--only send sends a message: it needs --send-to and --from');
	const asked = groups.filter(
		(group) =>
			(only.length === 0 || only.includes(group)) && !skip.includes(group) && (group !== 'send' || sends),
	);
	if (asked.length === 0)
		throw new UsageError('--only and --skip leave nothing to check', {
			hint: `groups: ${groups.join(', ')}`,
		});
	const isPossible = { read: true, change: full, send: sends, call: full && sends };
	return (await checksOf(cx, options, records)).flatMap((check) => {
		const isAsked = asked.includes(groupOf(check));
		return isPossible[check.need] && (isAsked || preconditions.has(check.id)) ? [{ check, isAsked }] : [];
	});
}

async function checksOf(cx: CommandContext, options: RunOptions, records: CreatedRecords): Promise<Check[]> {
	const { target } = cx.dryRun ? { target: null } : await cx.connection();
	// The owner of a database needs no token.
	const hasToken = target?.kind !== 'remote' || target.token !== null;
	return allChecks({ ...options, records, hasToken, connection: cx.connection });
}

export interface Finished {
	report: SmokeReport;
	halted: Halted | null;
	/** What the token lacks for checks of the run, and how many were left out for it. */
	missing: ReadonlySet<Right>;
	leftOut: number;
}

/**
 * The command as a whole has ten seconds after its signal. A change that is under way takes up to two of them, and so
 * does the last deletion of the clean-up.
 */
const cleanupGraceMs = 5_000;

class Run {
	readonly #start = monotonicMicros();
	readonly #cx: CommandContext;
	readonly #options: RunOptions;
	readonly #started: number;
	readonly #deviations: { check: string; text: string }[] = [];
	/** Groups that have failed for a right, so that one missing right is one failure of its group. */
	readonly #told = new Set<string>();
	readonly checks: CheckResult[] = [];
	readonly leftovers: Leftover[] = [];
	readonly missing = new Set<Right>();
	leftOut = 0;
	halted: Halted | null = null;

	constructor(cx: CommandContext, options: RunOptions) {
		this.#cx = cx;
		this.#options = options;
		this.#started = cx.clock.now();
	}

	async caller(signal: AbortSignal): Promise<Caller> {
		const { exchange, target } = await this.#cx.connection();
		const token = target.kind === 'remote' ? target.token : null;
		const { settings, clock } = this.#cx;
		return createCaller({ exchange, retries: settings.retries.value, signal, token, clock });
	}

	async check(planned: readonly Planned[], onDone?: () => void): Promise<void> {
		const call = await this.caller(this.#options.signal);
		for (const { check, isAsked } of planned) {
			await this.#checkOne(check, isAsked, call);
			onDone?.();
		}
	}

	async #checkOne(check: Check, isAsked: boolean, call: Caller): Promise<void> {
		const start = monotonicMicros();
		const probe = new Probe(check.judgesRefusals === true ? call : permitted(call));
		const end = await this.#end(check, probe);
		const isBroken = end instanceof Error && !(end instanceof Skipped);
		const faults = isBroken ? [...probe.faults, end.message] : probe.faults;
		const passed: Outcome = probe.deviations.length > 0 ? 'deviation' : 'pass';
		const [outcome, detail]: [Outcome, string | null] =
			faults.length > 0
				? ['fail', faults.join('\n')]
				: end instanceof Skipped
					? ['skip', end.message]
					: [passed, typeof end === 'string' ? end : null];
		if (end instanceof Halted) this.halted ??= end;
		if (!isAsked && outcome !== 'fail') return;
		const { id, title } = check;
		this.checks.push({ id, title, group: groupOf(check), outcome, detail, duration_ms: since(start) });
		this.#deviations.push(...probe.deviations.map((text) => ({ check: id, text })));
	}

	async #end(check: Check, probe: Probe): Promise<string | undefined | Error> {
		const { signal } = this.#options;
		if (signal.aborted) return new Skipped(messageOf(signal.reason));
		if (this.halted !== null) return new Skipped(whyHalted[this.halted.why]);
		try {
			return await check.run(probe);
		} catch (error) {
			if (signal.aborted) return new Skipped(messageOf(signal.reason));
			if (!(error instanceof Denied)) return error instanceof Error ? error : new Error(String(error));
			this.missing.add(error.right);
			// Reading what the token may not read is left out; a change or a send was asked for, and fails.
			const key = `${groupOf(check)} ${error.right}`;
			if (check.need !== 'read' && !this.#told.has(key)) {
				this.#told.add(key);
				return error;
			}
			this.leftOut += 1;
			return new Skipped(error.message);
		}
	}

	/** A step of the clean-up as a check; `fault` null: it passed. */
	cleaned(id: string, title: string, start: number, fault: string | null): void {
		const outcome = fault === null ? 'pass' : 'fail';
		const duration_ms = since(start);
		this.checks.push({ id: `cleanup.${id}`, title, group: 'cleanup', outcome, detail: fault, duration_ms });
	}

	async finish(): Promise<Finished> {
		const { checks, leftovers, halted, missing, leftOut } = this;
		const deviations = this.#deviations;
		const { target } = await this.#cx.connection();
		const number = (...outcomes: Outcome[]) =>
			checks.filter(({ outcome }) => outcomes.includes(outcome)).length;
		const report: SmokeReport = {
			run: this.#options.names.id,
			target: target.kind === 'remote' ? target.baseUrl : target.url,
			started: `${formatDateTime(this.#started).slice(0, 23)}Z`,
			duration_ms: since(this.#start),
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
		return { report, halted, missing, leftOut };
	}
}

const whyHalted: Readonly<Record<HaltReason, string>> = {
	unreachable: 'there is no answer',
	elsewhere: 'it is not this service',
	refused: 'the token is refused',
};

/** Milliseconds since then, by the clock that only goes forward. */
function since(start: number): number {
	return Math.round((monotonicMicros() - start) / microsPerMs);
}

/** A 403 is told as the right that the token lacks. Requests with a token of their own are as they are. */
function permitted(call: Caller): Caller {
	return async (ask) => {
		const answer = await call(ask);
		if (answer.status === 403 && ask.token === undefined) throw denialOf(ask, answer);
		return answer;
	};
}

function denialOf({ method, path }: Ask, answer: Answer): Denied {
	const what = subjects.find(([pattern]) => pattern.test(path))?.[1] ?? path;
	if (what === 'messages') return new Denied('send', `the token may not send: ${said(answer)} 403`);
	// Webhooks have passwords: on a mailctl server reading them takes more than `read`.
	const right = method === 'GET' && what !== 'webhooks' ? 'read' : 'admin';
	if (method === 'GET') return new Denied(right, `the token may not read ${what}`);
	return new Denied(right, `the token may not change ${what}: ${said(answer)} 403`);
}

const subjects: readonly (readonly [RegExp, string])[] = [
	[/\/subscribers\//, 'subscribers'],
	[/\/sub\/lists\b/, 'lists'],
	[/\/sub\/fields\b/, 'fields'],
	[/^\/webhooks\b/, 'webhooks'],
	[/^\/stat\//, 'reports'],
	[/^\/message\//, 'messages'],
];

/** Runs the checks and deletes what they made; never throws for a fault of the deployment. */
export async function runSmoke(
	cx: CommandContext,
	options: RunOptions,
	selection: Selection,
): Promise<Finished> {
	const run = new Run(cx, options);
	const records = new CreatedRecords();
	const planned = await plan(cx, options, selection, records);
	const progress = cx.progress('checking', planned.length);
	let done = 0;
	const onDone = () => {
		done += 1;
		progress.update(done);
	};
	await run.check(planned, onDone).finally(() => progress.stop());
	if (records.isEmpty) return run.finish();
	const start = monotonicMicros();
	const patience = delayed(options.signal, cleanupGraceMs);
	try {
		run.leftovers.push(...(await records.delete(await run.caller(patience.signal), options.names)));
	} finally {
		patience.stop();
	}
	const whys = run.leftovers.map((one) => `${describe(one)}: ${one.why}`);
	const fault = whys.length === 0 ? null : whys.join('\n');
	run.cleaned('all', 'everything the run made is deleted', start, fault);
	return run.finish();
}

export async function runCleanup(cx: CommandContext, options: RunOptions): Promise<Finished> {
	const run = new Run(cx, options);
	const all = await checksOf(cx, options, new CreatedRecords());
	await run.check(all.filter(({ id }) => preconditions.has(id)).map((check) => ({ check, isAsked: false })));
	if (run.checks.length > 0) return run.finish();
	const call = await run.caller(options.signal);
	const found: Thing[] = [];
	for (const kind of kinds) {
		const start = monotonicMicros();
		try {
			found.push(...(await findThings(call, null, kind)));
		} catch (error) {
			const why = messageOf(options.signal.aborted ? options.signal.reason : error);
			run.cleaned(`find-${kind}s`, `the ${kind}s are searched`, start, why);
		}
	}
	for (const thing of found) {
		const start = monotonicMicros();
		const why = await removeThing(call, thing, null);
		if (why !== null) run.leftovers.push({ ...thing, why });
		run.cleaned(`${thing.kind}-${thing.id}`, `${describe(thing)} is deleted`, start, why);
	}
	return run.finish();
}

export async function findLeftovers(cx: CommandContext, options: RunOptions): Promise<Thing[]> {
	const call = await new Run(cx, options).caller(options.signal);
	const found: Thing[] = [];
	for (const kind of kinds satisfies readonly Kind[]) found.push(...(await findThings(call, null, kind)));
	return found;
}
