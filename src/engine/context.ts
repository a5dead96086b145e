/** What every resource of the engine is made from. */
import type { Clock } from '../api/datetime.js';
import { ApiError, type FieldErrors, invalid, notFound } from '../api/errors.js';
import type { Uuid } from '../api/records.js';
import type { Store, Written } from '../store/store.js';
import type { EnginePorts } from './ports.js';

/** What every resource of the engine is made from; ids and time come from outside. */
export interface EngineContext {
	store: Store;
	clock: Clock;
	newId: () => Uuid;
	/** 256 random bits in base64url. */
	newSecret: () => string;
	ports: EnginePorts;
}

/** The record of a change, or the error that says why there is none. */
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

/** The checked value of an input, or a 400 with every complaint. */
export function checked<T>(
	parsed: { kind: 'valid'; value: T } | { kind: 'invalid'; errors: FieldErrors },
): T {
	if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	return parsed.value;
}

/** The record, or `not_found`. */
export function found<T>(record: T | null): T {
	if (record === null) throw notFound();
	return record;
}

/** Nothing, or `not_found` when there was nothing to delete. */
export function deleted(existed: boolean): void {
	if (!existed) throw notFound();
}

/** The work is done whatever happens to the caller; but nothing is begun for one who has left already. */
export function assertWanted(signal: AbortSignal | undefined): void {
	if (signal?.aborted) throw new ApiError('network', 'The request was aborted.', { cause: signal.reason });
}
