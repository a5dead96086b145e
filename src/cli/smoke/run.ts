import { formatDateTime, microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { allChecks } from './checks.js';
import { type Check, type CheckResult, type Group, groups, type SmokeReport } from './model.js';
import { after, type Caller, createCaller, Denied, Halted, Probe, Skipped, whyHalted } from './probe.js';
import {
	collectionOf,
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
	mail: { to: string; from: string } | null;
	signal: AbortSignal;
}

/** All other checks need these two, so they run even when their groups are not selected. */
const preconditions: ReadonlySet<string> = new Set(['connection.reachable', 'auth.token']);

/** `isAsked` false: a precondition that was not selected; reported only when it does not pass. */
interface Planned {
	check: Check;
	isAsked: boolean;
}

export async function plan(
	cx: CommandContext,
	options: RunOptions,
	{ full, only, skip }: Selection,
): Promise<Planned[]> {
	const sends = options.mail !== null;
	if (only.includes('send') && !sends) throw new UsageError('--only send needs --send-to and --from');
	const asked = groups.filter(
		(group) =>
			(only.length === 0 || only.includes(group)) && !skip.includes(group) && (group !== 'send' || sends),
	);
	if (asked.length === 0)
		throw new UsageError('--only and --skip leave no checks', { hint: `groups: ${groups.join(', ')}` });
	const isPossible = { read: true, change: full, send: sends };
	return (await checksOf(cx, options)).flatMap((check) => {
		const isAsked = asked.includes(check.group);
		return isPossible[check.need] && (isAsked || preconditions.has(check.id)) ? [{ check, isAsked }] : [];
	});
}

async function checksOf(cx: CommandContext, options: RunOptions): Promise<Check[]> {
	const { target } = cx.dryRun ? { target: null } : await cx.connection();
	const hasToken = target?.kind !== 'remote' || target.token !== null;
	return allChecks({ ...options, hasToken, connection: cx.connection });
}

export interface Finished {
	report: SmokeReport;
	halted: Halted | null;
}

/** Milliseconds. The command as a whole has ten seconds after its signal, and the last deletion takes up to two. */
const cleanupGrace = 5_000;

class Run {
	readonly #start = monotonicMicros();
	readonly #cx: CommandContext;
	readonly #options: RunOptions;
	readonly #started: number;
	readonly #checks: CheckResult[] = [];
	readonly #deviations: { check: string; text: string }[] = [];
	readonly #leftovers: Leftover[] = [];
	/** Paths of POST requests that may have made a record: an unanswered one may have been carried out. */
	readonly #posted = new Set<string>();
	#halted: Halted | null = null;

	constructor(cx: CommandContext, options: RunOptions) {
		this.#cx = cx;
		this.#options = options;
		this.#started = cx.clock.now();
	}

	async caller(signal = this.#options.signal): Promise<Caller> {
		const { exchange, target } = await this.#cx.connection();
		const token = target.kind === 'remote' ? target.token : null;
		const { settings, clock } = this.#cx;
		return createCaller({ exchange, retries: settings.retries.value, signal, token, clock });
	}

	async check(planned: readonly Planned[]): Promise<void> {
		const call = await this.caller();
		const noting: Caller = async (ask) => {
			const isNew = ask.method === 'POST' && !this.#posted.has(ask.path);
			if (isNew) this.#posted.add(ask.path);
			const answer = await call(ask);
			if (isNew && answer.status >= 400 && answer.status < 500) this.#posted.delete(ask.path);
			return answer;
		};
		const progress = this.#cx.progress('checking', planned.length);
		try {
			for (const [done, { check, isAsked }] of planned.entries()) {
				await this.#checkOne(check, isAsked, new Probe(noting));
				progress.update(done + 1);
			}
		} finally {
			progress.stop();
		}
	}

	async #checkOne(check: Check, isAsked: boolean, probe: Probe): Promise<void> {
		const start = monotonicMicros();
		const { id, title, group, need } = check;
		const end = await this.#end(check, probe);
		const isSkipped = end instanceof Skipped || (end instanceof Denied && need === 'read');
		if (end instanceof Error && !isSkipped) probe.fault(end.message);
		const isFailed = probe.faults.length > 0;
		if (!isAsked && !isFailed) return;
		const outcome = isFailed
			? 'fail'
			: isSkipped
				? 'skip'
				: probe.deviations.length > 0
					? 'deviation'
					: 'pass';
		const observed = end instanceof Error ? end.message : typeof end === 'string' ? end : null;
		const detail = isFailed ? probe.faults.join('\n') : observed;
		this.#checks.push({ id, title, group, outcome, detail, duration_ms: since(start) });
		this.#deviations.push(...probe.deviations.map((text) => ({ check: id, text })));
	}

	async #end(check: Check, probe: Probe): Promise<unknown> {
		const { signal } = this.#options;
		if (this.#halted !== null) return new Skipped(whyHalted[this.#halted.why]);
		try {
			signal.throwIfAborted();
			return await check.run(probe);
		} catch (error) {
			if (signal.aborted) return new Skipped(messageOf(signal.reason));
			if (error instanceof Halted) this.#halted = error;
			return error instanceof Error ? error : new Error(String(error));
		}
	}

	/** Deletes what the run may have made, also after its signal. */
	async cleanUp(): Promise<void> {
		const among = kinds.filter((kind) => this.#posted.has(collectionOf(kind)));
		if (among.length === 0) return;
		const { id } = this.#options.names;
		await this.#cleaned('all', 'everything the run made is deleted', async () => {
			const call = await this.caller(after(this.#options.signal, cleanupGrace));
			for (const thing of await this.#find(call, among, id)) await this.#remove(call, thing, id);
		});
	}

	/** Deletes what any run has left. */
	async cleanUpAll(): Promise<void> {
		if (this.#checks.length > 0) return;
		const call = await this.caller();
		for (const thing of await this.#find(call, kinds, null))
			await this.#cleaned(`${thing.kind}-${thing.id}`, `${describe(thing)} is deleted`, () =>
				this.#remove(call, thing, null),
			);
	}

	/** Finds records of a run, or of any when null. A collection that cannot be searched may hold some. */
	async #find(call: Caller, among: readonly Kind[], run: string | null): Promise<Thing[]> {
		const found: Thing[] = [];
		for (const kind of among)
			try {
				found.push(...(await findThings(call, run, kind)));
			} catch (error) {
				const why = `it may be there: the search failed: ${messageOf(error)}`;
				this.#leftovers.push({ kind, id: null, name: this.#options.names[kind], why });
			}
		return found;
	}

	async #remove(call: Caller, thing: Thing, run: string | null): Promise<void> {
		const why = await removeThing(call, thing, run);
		if (why !== null) this.#leftovers.push({ ...thing, why });
	}

	async #cleaned(id: string, title: string, work: () => Promise<void>): Promise<void> {
		const [start, before] = [monotonicMicros(), this.#leftovers.length];
		await work();
		const whys = this.#leftovers.slice(before).map((one) => `${describe(one)}: ${one.why}`);
		const [outcome, detail] =
			whys.length === 0 ? (['pass', null] as const) : (['fail', whys.join('\n')] as const);
		const duration_ms = since(start);
		this.#checks.push({ id: `cleanup.${id}`, title, group: 'cleanup', outcome, detail, duration_ms });
	}

	async finish(): Promise<Finished> {
		const [checks, deviations, leftovers] = [this.#checks, this.#deviations, this.#leftovers];
		const { target } = await this.#cx.connection();
		const number = (...outcomes: CheckResult['outcome'][]) =>
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
		return { report, halted: this.#halted };
	}
}

function since(start: number): number {
	return Math.round((monotonicMicros() - start) / microsPerMs);
}

export async function runSmoke(
	cx: CommandContext,
	options: RunOptions,
	selection: Selection,
): Promise<Finished> {
	const run = new Run(cx, options);
	await run.check(await plan(cx, options, selection));
	await run.cleanUp();
	return run.finish();
}

export async function runCleanup(cx: CommandContext, options: RunOptions): Promise<Finished> {
	const run = new Run(cx, options);
	const all = await checksOf(cx, options);
	await run.check(all.filter(({ id }) => preconditions.has(id)).map((check) => ({ check, isAsked: false })));
	await run.cleanUpAll();
	return run.finish();
}

export async function findLeftovers(cx: CommandContext, options: RunOptions): Promise<Thing[]> {
	const call = await new Run(cx, options).caller();
	const found: Thing[] = [];
	for (const kind of kinds) found.push(...(await findThings(call, null, kind)));
	return found;
}
