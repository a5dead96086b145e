/** Runs the checks one after the other, always cleans up, and sums up. */
import { microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { Caller } from './caller.js';
import {
	type Check,
	type CheckResult,
	type Deviation,
	Halted,
	type HaltReason,
	type Probe,
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
}

/** Never throws for an error of a check. */
export async function runChecks(options: ChecksOptions): Promise<ChecksRun> {
	const run: ChecksRun = { results: [], deviations: [], halted: null };
	for (const { check, isAsked } of options.planned) {
		const { result, deviations, halted } = await runCheck(check, options, stopped(options, run));
		run.halted ??= halted;
		if (!isAsked && result.outcome !== 'fail') continue;
		run.results.push(result);
		run.deviations.push(...deviations);
		options.onResult(result);
	}
	return run;
}

interface Ended {
	result: CheckResult;
	deviations: Deviation[];
	halted: ChecksRun['halted'];
}

function stopped({ signal, whyStopped }: ChecksOptions, { halted }: ChecksRun): string | null {
	if (signal.aborted) return whyStopped();
	if (halted === null) return null;
	return halted.why === 'unreachable' ? 'there is no answer' : 'the token is refused';
}

async function runCheck(check: Check, options: ChecksOptions, skip: string | null): Promise<Ended> {
	const start = monotonicMicros();
	const faults: string[] = [];
	const differences: string[] = [];
	const probe: Probe = {
		call: options.call,
		fault: (text) => void faults.push(text),
		deviate: (text) => void (differences.includes(text) || differences.push(text)),
	};
	const end = skip === null ? await attempt(check, probe, options) : { skip };
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
	};
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
