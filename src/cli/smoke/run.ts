/** Runs the checks one after the other, always cleans up, and sums up. */
import { microsPerMs, monotonicMicros } from '../../api/datetime.js';
import { said } from './assertions.js';
import type { Answer, Ask, Caller } from './caller.js';
import {
	type Check,
	type CheckResult,
	Denied,
	type Deviation,
	Halted,
	type HaltReason,
	type Probe,
	type Right,
	Skipped,
} from './model.js';
import type { Planned } from './plan.js';

export interface ChecksOptions {
	planned: readonly Planned[];
	call: Caller;
	/** Ends the run: the remaining checks are skipped. */
	signal: AbortSignal;
	/** The reason of the checks skipped for the signal. */
	whyStopped: () => string;
	onResult: (result: CheckResult) => void;
}

export interface ChecksRun {
	results: CheckResult[];
	deviations: Deviation[];
	/** Nothing further could be checked. */
	halted: { why: HaltReason; message: string } | null;
	/** What the token lacks for checks of this run. */
	missing: Set<Right>;
	/** The checks that were left out for it. */
	leftOut: CheckResult[];
}

/** Never throws for an error of a check. */
export async function runChecks(options: ChecksOptions): Promise<ChecksRun> {
	const run: ChecksRun = { results: [], deviations: [], halted: null, missing: new Set(), leftOut: [] };
	const told = new Set<string>();
	for (const { check, isAsked } of options.planned) {
		const { result, deviations, halted, denied } = await runCheck(check, options, {
			skip: stopped(options, run),
			told,
		});
		if (denied !== null) run.missing.add(denied);
		run.halted ??= halted;
		if (!isAsked && result.outcome !== 'fail') continue;
		run.results.push(result);
		if (denied !== null && result.outcome === 'skip') run.leftOut.push(result);
		run.deviations.push(...deviations);
		options.onResult(result);
	}
	return run;
}

interface Ended {
	result: CheckResult;
	deviations: Deviation[];
	halted: ChecksRun['halted'];
	denied: Right | null;
}

function stopped({ signal, whyStopped }: ChecksOptions, { halted }: ChecksRun): string | null {
	if (signal.aborted) return whyStopped();
	if (halted === null) return null;
	return whyHalted[halted.why];
}

const whyHalted: Readonly<Record<HaltReason, string>> = {
	unreachable: 'there is no answer',
	elsewhere: 'it is not this service',
	refused: 'the token is refused',
};

/** `told`: groups that have failed for a right, so that one missing right is one failure of its group. */
async function runCheck(
	check: Check,
	options: ChecksOptions,
	{ skip, told }: { skip: string | null; told: Set<string> },
): Promise<Ended> {
	const start = monotonicMicros();
	const faults: string[] = [];
	const differences: string[] = [];
	const probe: Probe = {
		call: check.judgesRefusals === true ? options.call : permitted(options.call),
		fault: (text) => void faults.push(text),
		deviate: (text) => void (differences.includes(text) || differences.push(text)),
	};
	const tried = skip === null ? await attempt(check, probe, options) : { skip };
	const denied = 'broken' in tried && tried.broken instanceof Denied ? tried.broken : null;
	const end = denied === null ? tried : deniedEnd(check, denied, told);
	const { id, title, group } = check;
	const verdict = verdictOf(end, faults, differences);
	return {
		result: {
			id,
			title,
			group,
			...verdict,
			duration_ms: Math.round((monotonicMicros() - start) / microsPerMs),
		},
		deviations: differences.map((text) => ({ check: id, text })),
		halted: 'broken' in end && end.broken instanceof Halted ? haltOf(end.broken) : null,
		denied: denied?.right ?? null,
	};
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

/** Reading what the token may not read is left out; a change or a send was asked for, and fails. */
function deniedEnd({ need, group }: Check, denied: Denied, told: Set<string>): End {
	const key = `${group} ${denied.right}`;
	if (need === 'read' || told.has(key)) return { skip: denied.message };
	told.add(key);
	return { broken: denied };
}

type End = { detail: string | undefined } | { skip: string } | { broken: Error };

async function attempt(check: Check, probe: Probe, { signal, whyStopped }: ChecksOptions): Promise<End> {
	try {
		return { detail: await check.run(probe) };
	} catch (error) {
		if (signal.aborted) return { skip: whyStopped() };
		if (error instanceof Skipped) return { skip: error.message };
		return { broken: error instanceof Error ? error : new Error(String(error)) };
	}
}

function verdictOf(
	end: End,
	faults: readonly string[],
	differences: readonly string[],
): Pick<CheckResult, 'outcome' | 'detail'> {
	const found = 'broken' in end ? [...faults, end.broken.message] : faults;
	if (found.length > 0) return { outcome: 'fail', detail: found.join('\n') };
	if ('skip' in end) return { outcome: 'skip', detail: end.skip };
	const detail = ('detail' in end ? end.detail : undefined) ?? null;
	return { outcome: differences.length > 0 ? 'deviation' : 'pass', detail };
}

function haltOf({ why, message }: Halted): { why: HaltReason; message: string } {
	return { why, message };
}
