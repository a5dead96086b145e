/** Addresses that get no mail, and why: ours, not the service document's (api-decisions 14, 22). */
import { type EmailKey, emailKey } from './address.js';
import type { Call, PageRequest } from './api.js';
import { type Micros, parseDateTime } from './datetime.js';
import type { Page, WireDateTime } from './records.js';
import { email } from './schema/char.js';
import { type Field, field, nullable, optional, refuse, valid, withDefault } from './schema/field.js';
import { choice } from './schema/scalars.js';
import { fieldSet, type Infer } from './schema.js';

/**
 * Why. `UNSUBSCRIBED`, `SOFTBOUNCED` and `MANUAL` (somebody's decision) stop bulk mail, `HARDBOUNCED` and `COMPLAINED`
 * all mail.
 */
export const suppressionReasons = [
	'COMPLAINED',
	'HARDBOUNCED',
	'UNSUBSCRIBED',
	'SOFTBOUNCED',
	'MANUAL',
] as const;
/** One of `suppressionReasons`. */
export type SuppressionReason = (typeof suppressionReasons)[number];

/**
 * Who made it: the person (`RECIPIENT`), the mail server's refusal (`DELIVERY`), a report that came later (`BOUNCE`), a
 * feedback loop (`COMPLAINT`), a call or a command (`API`), a file (`IMPORT`).
 */
export const suppressionSources = ['RECIPIENT', 'DELIVERY', 'BOUNCE', 'COMPLAINT', 'API', 'IMPORT'] as const;
/** One of `suppressionSources`. */
export type SuppressionSource = (typeof suppressionSources)[number];

/** One reason against one address; an address may have several. */
export interface Suppression {
	/** As addresses are compared: lower case, the domain in punycode. */
	email: EmailKey;
	reason: SuppressionReason;
	/** One of `suppressionSources`; those of another version may be unknown. */
	source: string;
	date_created: WireDateTime;
	/** From then on it is as if it were not there; null = it stands until it is removed. */
	expires_at: WireDateTime | null;
}

/** What is added. An end that is past already is refused. */
export interface SuppressionInput {
	email: string;
	/** `MANUAL` unless given. */
	reason?: SuppressionReason;
	expires_at?: WireDateTime | null;
}

/** A row of a file, which may say more of itself: an export comes back as it went. */
export interface SuppressionRow extends SuppressionInput {
	/** `IMPORT` unless given. */
	source?: SuppressionSource;
	/** Now, unless given. */
	date_created?: WireDateTime;
}

/** All given conditions must hold; absent = any. What has expired is never found. */
export interface SuppressionFilter {
	email__icontains?: string;
	/** Compared as addresses are. */
	email__exact?: string;
	reason?: SuppressionReason;
	source?: SuppressionSource;
}

/** Suppressions behind a cursor, by address and reason. `next` is the cursor to go on with; null at the end. */
export interface SuppressionSlice {
	results: Suppression[];
	next: string | null;
}

/** rows = created + updated + unchanged + rejected. `updated`: it ends later than it did, or not at all. */
export interface SuppressionCounts {
	created: number;
	updated: number;
	unchanged: number;
	rejected: number;
}

/** What became of rows that were put, or would become of them. */
export interface SuppressionAck {
	counts: SuppressionCounts;
	/** `row` counts from 0 within the call. */
	rejects: readonly { row: number; code: string; error: string }[];
}

/** What was removed, and how many subscribers with this address are inactive and stay so. */
export interface SuppressionRemoval {
	removed: Suppression[];
	inactive_subscribers: number;
}

/** The suppressions of the database. Atomic, each call. */
export interface Suppressions {
	/** By address and reason. */
	page(request: SuppressionFilter & PageRequest, call?: Call): Promise<Page<Suppression>>;
	/** The same by key, so that the last slice costs what the first does; it is no snapshot. At most 1,000 a slice. */
	slice(
		request: SuppressionFilter & { cursor?: string; limit: number },
		call?: Call,
	): Promise<SuppressionSlice>;
	/**
	 * Adding never weakens: of two ends the later one stands, and none is later than any. What stands already is
	 * answered as it is. Without an end, the subscribers with this address become inactive, in all lists. Throws
	 * `invalid`, also for an erased address (code `erased`).
	 */
	create(input: SuppressionInput, call?: Call): Promise<Suppression>;
	/**
	 * As `create`, for many: at most 5,000. A row of the wrong shape is a reject like any other. The same rows again
	 * change nothing, so an unanswered call may be repeated; its answer then says `unchanged`.
	 */
	put(rows: readonly SuppressionRow[], call?: Call): Promise<SuppressionAck>;
	/** What `put` would answer; nothing is written. */
	check(rows: readonly SuppressionRow[], call?: Call): Promise<SuppressionAck>;
	/**
	 * All reasons, or the one that is named. Nobody becomes active by it: that each list's subscriber may be written to
	 * again is another decision. Throws `not_found` when nothing of that kind stands.
	 */
	remove(which: { email: string; reason?: SuppressionReason }, call?: Call): Promise<SuppressionRemoval>;
}

/** A suppression, checked; times are microseconds. */
export interface NewSuppression {
	email_key: EmailKey;
	reason: SuppressionReason;
	source: SuppressionSource;
	created_at: Micros | null;
	expires_at: Micros | null;
}

const input = {
	email: email(),
	reason: withDefault(choice(suppressionReasons), () => 'MANUAL' as const),
	expires_at: withDefault(nullable(moment()), () => null),
};

/** The input of `suppressions.create`. */
export const suppressionFields = fieldSet(input);

/** A row of `suppressions.put`. */
export const suppressionRowFields = fieldSet({
	...input,
	source: withDefault(choice(suppressionSources), () => 'IMPORT' as const),
	date_created: optional(moment()),
});

/** The input of `suppressions.remove`. */
export const removalFields = fieldSet({ email: email(), reason: optional(choice(suppressionReasons)) });

/** A checked row as it is stored. */
export function toNewSuppression(row: Infer<typeof suppressionRowFields>): NewSuppression {
	return {
		email_key: emailKey(row.email),
		reason: row.reason,
		source: row.source,
		created_at: row.date_created ?? null,
		expires_at: row.expires_at,
	};
}

/** `YYYY-MM-DDTHH:MM:SS`, up to six fractional digits; as microseconds. */
function moment(): Field<Micros, 'required'> {
	const message = 'Datetime has wrong format. Use YYYY-MM-DDTHH:MM:SS.ffffff.';
	return field({ type: 'string', format: 'date-time' }, (text) => {
		const at = typeof text === 'string' ? parseDateTime(text.trim()) : null;
		return at === null ? refuse('invalid', message) : valid(at);
	});
}
