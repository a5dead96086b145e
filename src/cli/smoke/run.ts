import { formatDateTime, microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { CommandContext } from '../frame/context.js';
import { UsageError } from '../frame/errors.js';
import { allChecks, type RunOptions } from './checks.js';
import { type Check, type CheckResult, type Group, groups, type SmokeReport } from './model.js';
import type { Caller } from './probe.js';
import { after, createCaller, createdId, Denied, Halted, Probe, Skipped, whyHalted } from './probe.js';
import type { Kind, Leftover, Thing } from './records.js';
import { collectionOf, describe, findThings, kinds, messageOf, nameIn, removeThing } from './records.js';

export interface Selection {
	full: boolean;
	only: readonly Group[];
	skip: readonly Group[];
}

/** Every run includes these two checks, because all other checks need them. */
const preconditions: ReadonlySet<string> = new Set(['connection.reachable', 'auth.token']);

/** `isAsked` is false for a precondition that the user did not select. The report shows this check only if it fails. */
interface Planned extends Check {
	isAsked: boolean;
}

export interface Finished {
	report: SmokeReport;
	halted: Halted | null;
}

/** The command must end within ten seconds of the signal, and the last deletion takes up to two. */
const cleanupGrace = 5_000;

export class Run {
	readonly #start = monotonicMicros();
	readonly #cx: CommandContext;
	readonly #options: RunOptions;
	readonly #started: number;
	readonly #checks: CheckResult[] = [];
	readonly #deviations: { check: string; text: string }[] = [];
	readonly #leftovers: Leftover[] = [];
	/**
	 * Bodies of POST requests, by path and then by the id in the answer. A path stays even if its answer is lost,
	 * because the service may have created a record.
	 */
	readonly #posted = new Map<string, Map<number, unknown>>();
	#halted: Halted | null = null;

	constructor(cx: CommandContext, options: RunOptions) {
		this.#cx = cx;
		this.#options = options;
		this.#started = cx.clock.now();
	}

	plan({ full, only, skip }: Selection): Planned[] {
		const isPossible = { read: true, change: full, send: this.#options.mail !== null };
		if (only.includes('send') && !isPossible.send)
			throw new UsageError('--only send needs --send-to and --from');
		const chosen = groups.filter(
			(group) => (only.length === 0 || only.includes(group)) && !skip.includes(group),
		);
		const asked = chosen.filter((group) => group !== 'send' || isPossible.send);
		if (asked.length === 0)
			throw new UsageError('--only and --skip leave no checks', { hint: `groups: ${groups.join(', ')}` });
		return allChecks(this.#cx, this.#options)
			.map((check) => ({ ...check, isAsked: asked.includes(check.group) }))
			.filter(({ id, need, isAsked }) => isPossible[need] && (isAsked || preconditions.has(id)));
	}

	/** Deletes the records that the checks created, even after the signal. */
	async smoke(selection: Selection): Promise<Finished> {
		await this.#check(this.plan(selection));
		const { id } = this.#options.names;
		const among = kinds.filter((kind) => this.#posted.has(collectionOf(kind)));
		if (among.length > 0)
			await this.#cleaned('all', 'everything the run made is deleted', async () => {
				const call = await this.#caller(after(this.#options.signal, cleanupGrace));
				for (const thing of await this.#find(call, among, id)) await this.#remove(call, thing, id);
			});
		return this.#finish();
	}

	async cleanUp(): Promise<Finished> {
		const first = allChecks(this.#cx, this.#options).filter(({ id }) => preconditions.has(id));
		await this.#check(first.map((check) => ({ ...check, isAsked: false })));
		// With `isAsked: false`, `#checks` contains only the preconditions that failed.
		if (this.#checks.length > 0) return this.#finish();
		const call = await this.#caller();
		for (const thing of await this.#find(call, kinds, null))
			await this.#cleaned(`${thing.kind}-${thing.id}`, `${describe(thing)} is deleted`, () =>
				this.#remove(call, thing, null),
			);
		return this.#finish();
	}

	async findLeftovers(): Promise<Thing[]> {
		const call = await this.#caller();
		const found: Thing[] = [];
		for (const kind of kinds) found.push(...(await findThings(call, null, kind)));
		return found;
	}

	async #caller(signal = this.#options.signal): Promise<Caller> {
		const { exchange, target } = await this.#cx.connection();
		const token = target.kind === 'remote' ? target.token : null;
		const { settings, clock } = this.#cx;
		return createCaller({ exchange, retries: settings.retries.value, signal, token, clock });
	}

	async #check(planned: readonly Planned[]): Promise<void> {
		const call = await this.#caller();
		const noting: Caller = async (ask) => {
			if (ask.method !== 'POST') return call(ask);
			const known = this.#posted.get(ask.path);
			const made = known ?? new Map();
			this.#posted.set(ask.path, made);
			const answer = await call(ask);
			const { status } = answer;
			const isRefused = status >= 400 && status < 500 && status !== 408;
			if (known === undefined && isRefused) this.#posted.delete(ask.path);
			const id = createdId(answer);
			if (id !== null) made.set(id, ask.body);
			return answer;
		};
		const progress = this.#cx.progress('checking', planned.length);
		try {
			for (const [done, check] of planned.entries()) {
				await this.#checkOne(check, new Probe(noting));
				progress.update(done + 1);
			}
		} finally {
			progress.stop();
		}
	}

	async #checkOne(check: Planned, probe: Probe): Promise<void> {
		const start = monotonicMicros();
		const { id, title, group, need, isAsked } = check;
		const end = await this.#end(check, probe);
		const isSkipped = end instanceof Skipped || (end instanceof Denied && need === 'read');
		if (end instanceof Error && !isSkipped) probe.fault(end.message);
		const isFailed = probe.faults.length > 0;
		if (!isAsked && !isFailed) return;
		const passed = probe.deviations.length > 0 ? 'deviation' : 'pass';
		const outcome = isFailed ? 'fail' : isSkipped ? 'skip' : passed;
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

	async #find(call: Caller, among: readonly Kind[], run: string | null): Promise<Thing[]> {
		const { names } = this.#options;
		const found: Thing[] = [];
		for (const kind of among) {
			const made = new Map(this.#posted.get(collectionOf(kind)));
			try {
				for (const thing of await findThings(call, run, kind)) {
					found.push(thing);
					made.delete(thing.id);
				}
			} catch (error) {
				const why = `the search failed, so the record may remain: ${messageOf(error)}`;
				this.#leftovers.push({ kind, id: null, name: names[kind], why });
			}
			for (const [id, body] of made)
				found.push({ kind, id, name: nameIn(kind, body) ?? names[kind], isUnnamed: true });
		}
		return found;
	}

	async #remove(call: Caller, thing: Thing, run: string | null): Promise<void> {
		const { kind, id, name } = thing;
		const why = await removeThing(call, thing, run);
		if (why !== null) this.#leftovers.push({ kind, id, name, why });
	}

	async #cleaned(id: string, title: string, work: () => Promise<void>): Promise<void> {
		const [start, before] = [monotonicMicros(), this.#leftovers.length];
		await work();
		const whys = this.#leftovers.slice(before).map((one) => `${describe(one)}: ${one.why}`);
		const [outcome, detail] =
			whys.length === 0 ? ['pass' as const, null] : ['fail' as const, whys.join('\n')];
		const duration_ms = since(start);
		this.#checks.push({ id: `cleanup.${id}`, title, group: 'cleanup', outcome, detail, duration_ms });
	}

	async #finish(): Promise<Finished> {
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
