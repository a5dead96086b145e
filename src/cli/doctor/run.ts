/** Chooses the checks of a run, runs them, and returns the findings in the order of the checks. */
import { UsageError } from '../frame/errors.js';
import {
	type Check,
	type Finding,
	type Group,
	groupOf,
	groups,
	problem,
	skipped,
	type Verdict,
	waitingGroups,
} from './model.js';

/** The selected checks. */
export interface Selection {
	/** Empty: all. */
	only: readonly Group[];
	skip: readonly Group[];
}

/** Throws `UsageError` when nothing is left to check. */
export function chooseChecks(checks: readonly Check[], { only, skip }: Selection): Check[] {
	const chosen = checks.filter((check) => {
		const group = groupOf(check);
		return group !== undefined && (only.length === 0 || only.includes(group)) && !skip.includes(group);
	});
	if (chosen.length > 0) return chosen;
	const there = groups.filter((group) => checks.some((check) => groupOf(check) === group));
	throw new UsageError('--only and --skip leave nothing to check', {
		hint: `groups here: ${there.join(', ')}`,
	});
}

export interface RunOptions {
	checks: readonly Check[];
	/** Ends the waiting: a check without a result by then is skipped. */
	signal: AbortSignal;
	/** After each check. */
	onDone: () => void;
}

/**
 * Never throws for an error of a check. Checks that wait for other machines begin together, after all others. Reading a
 * large database keeps this thread busy: a machine that answers meanwhile would seem to be silent.
 */
export async function runChecks({ checks, signal, onDone }: RunOptions): Promise<Finding[]> {
	const late = whenStopped(signal).then(() => [skipped('there was no time for it')]);
	const found = new Map<Check, Finding[]>();
	const run = async (check: Check) => {
		const verdicts = await Promise.race([late, attempt(check)]);
		found.set(
			check,
			verdicts.map((verdict) => ({ check: check.name, ...verdict })),
		);
		onDone();
	};
	for (const check of checks) if (!waitingGroups.has(groupOf(check)) && !signal.aborted) await run(check);
	await Promise.all(checks.filter((check) => !found.has(check)).map(run));
	return checks.flatMap((check) => found.get(check) ?? []);
}

function whenStopped(signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		if (signal.aborted) resolve();
		else signal.addEventListener('abort', () => resolve(), { once: true });
	});
}

async function attempt(check: Check): Promise<readonly Verdict[]> {
	try {
		const found = await check.run();
		return 'level' in found ? [found] : found;
	} catch (error) {
		return [
			problem(`this could not be looked at: ${error instanceof Error ? error.message : String(error)}`),
		];
	}
}
