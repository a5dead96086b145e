/** Field errors by stored state for values that are valid by themselves, asked without a change. */
import type { Micros } from '../api/datetime.js';
import type { FieldErrors } from '../api/errors.js';
import type { SubscriberPatch } from './store.js';

/** The valid part of an input; `id`: the record to change, null for a new one. */
export type Question =
	| { kind: 'subscriber'; list_id: number; id: number | null; patch: SubscriberPatch; now: Micros }
	| { kind: 'field'; id: number | null; variable?: string }
	| { kind: 'template'; id: string | null; name?: string };

export interface FieldErrorReads {
	/** The field errors of the write at this moment; `{}`: none. Another answer may hold a moment later. */
	fieldErrors(c: Question): Promise<FieldErrors>;
}
