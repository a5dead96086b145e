/** `--cleanup-only`: finds and deletes the leftovers of any run, each a check of its own in the report. */
import { microsPerMs, monotonicMicros } from '../../api/datetime.js';
import type { Caller } from './caller.js';
import { findThings, removeThing, type Thing } from './cleanup.js';
import type { CheckResult, Leftover } from './model.js';
import { kinds } from './names.js';

export interface Swept {
	checks: CheckResult[];
	leftovers: Leftover[];
}
export const nothing: Swept = { checks: [], leftovers: [] };

/** Finds all records first, then deletes one by one: an unreadable collection does not keep the others. */
export async function sweep(call: Caller, signal: AbortSignal): Promise<Swept> {
	const checks: CheckResult[] = [];
	const leftovers: Leftover[] = [];
	const found: Thing[] = [];
	for (const { kind, collection } of kinds) {
		const start = monotonicMicros();
		try {
			found.push(...(await findThings(call, null, kind)));
		} catch (error) {
			const why = messageOf(signal.aborted ? signal.reason : error);
			checks.push(cleaned(`find-${kind}s`, `${collection} is searched`, start, why));
		}
	}
	for (const thing of found) {
		const start = monotonicMicros();
		const removal = await removeThing(call, thing, null);
		if (removal !== null) leftovers.push(removal);
		const title = `${describe(thing)} is deleted`;
		checks.push(cleaned(`${thing.kind}-${thing.id}`, title, start, removal?.why ?? null));
	}
	return { checks, leftovers };
}

/** A step of the clean-up as a check; `fault` null: it passed. */
export function cleaned(id: string, title: string, start: number, fault: string | null): CheckResult {
	const outcome = fault === null ? 'pass' : 'fail';
	return { id: `cleanup.${id}`, title, group: 'cleanup', outcome, detail: fault, duration_ms: since(start) };
}

/** `list 12 "mailctl-smoke-…"`. */
export function describe({ kind, id, name }: Thing): string {
	return `${kind} ${id} "${name}"`;
}

/** The message of an error, or another thrown value as text. */
export function messageOf(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

/** Milliseconds since then, by the clock that only goes forward. */
export function since(start: number): number {
	return Math.round((monotonicMicros() - start) / microsPerMs);
}
