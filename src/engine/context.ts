import type { Call } from '../api/api.js';
import type { Clock } from '../api/datetime.js';
import { ApiError, type FieldErrors, invalid, notFound } from '../api/errors.js';
import type { TestResult, Uuid, Webhook } from '../api/records.js';
import type { RefusalCode } from '../api/refusals.js';
import type { Parsed } from '../api/schema.js';
import type { Seen, Store, Written } from '../store/store.js';
import type { Courier } from './rules/campaign-rows.js';

export interface EngineContext {
	store: Store;
	clock: Clock;
	newId: () => Uuid;
	newSecret: () => string;
	ports: EnginePorts;
}

export type StoreContext = Pick<EngineContext, 'store' | 'clock'>;

/** `api`: a service makes the messages, and this database keeps only the campaigns. */
export interface CampaignContext extends StoreContext, Pick<EngineContext, 'newId'> {
	courier: Courier;
}

export function written<T>(outcome: Written<T>): T {
	switch (outcome.kind) {
		case 'written':
			return outcome.record;
		case 'not_found':
			throw notFound();
		case 'refused':
			throw invalid(outcome.errors);
	}
}

export function checked<T>(
	parsed: { kind: 'valid'; value: T } | { kind: 'invalid'; errors: FieldErrors },
): T {
	if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	return parsed.value;
}

/** A 400 names every bad field at once: where the shape is bad, the store checks the good fields. */
export async function checkedBeside<T>(
	parsed: Parsed<T>,
	fieldErrors: (good: NoInfer<Partial<T>>) => Promise<FieldErrors>,
): Promise<T> {
	if (parsed.kind === 'valid') return parsed.value;
	throw invalid({ ...parsed.errors, ...(await fieldErrors(parsed.good ?? {})) });
}

export function found<T>(record: T | null): T {
	if (record === null) throw notFound();
	return record;
}

export function refuse(field: string, message: string, code = 'invalid'): never {
	throw invalid({ [field]: [{ code, message }] });
}

export function deleted(existed: boolean): void {
	if (!existed) throw notFound();
}

export function assertWanted(signal: AbortSignal | undefined): void {
	if (signal?.aborted) throw new ApiError('network', 'The request was aborted.', { cause: signal.reason });
}

export function seenBy(call: Call | undefined): Seen {
	return call?.ownOnly === true ? { only_of: call.client ?? '' } : {};
}

export interface EnginePorts {
	/** Null where a webhook delivery may go there. A name that does not resolve is accepted. */
	checkTarget(url: string): Promise<RefusalCode | null>;
	notifyTest(webhook: Webhook): Promise<TestResult>;
	renderMessage(id: Uuid): Promise<Buffer | null>;
	whyPaused(): string | null;
}
