/** Addresses that get no mail, and why: our extension of the service document (api-decisions 14, 22). */
import { type EmailKey, emailKey } from './address.js';
import type { Call, PageRequest } from './api.js';
import { Reject } from './capabilities.js';
import type { Micros } from './datetime.js';
import type { FieldErrors } from './errors.js';
import type { Page, WireDateTime } from './records.js';
import { choice, email, integer, moment, nullable, optional, withDefault } from './schema/fields.js';
import * as t from './schema/record.js';
import { fieldSet, type Infer } from './schema.js';

/**
 * The reasons. `UNSUBSCRIBED`, `SOFTBOUNCED` and `MANUAL` (a person's decision) stop bulk mail, `HARDBOUNCED` and
 * `COMPLAINED` all mail.
 */
export const suppressionReasons = [
	'COMPLAINED',
	'HARDBOUNCED',
	'UNSUBSCRIBED',
	'SOFTBOUNCED',
	'MANUAL',
] as const;
export type SuppressionReason = (typeof suppressionReasons)[number];

const importedReasons: ReadonlySet<string> = new Set<SuppressionReason>([
	'UNSUBSCRIBED',
	'HARDBOUNCED',
	'COMPLAINED',
]);

/**
 * The suppression that the `disable_reason` of an import's row makes, in any case (api-decisions 14); null: another
 * text, or none.
 */
export function importedReason(disable_reason: string | null): SuppressionReason | null {
	const word = disable_reason?.trim().toUpperCase() ?? '';
	return suppressionReasons.find((reason) => reason === word && importedReasons.has(reason)) ?? null;
}

/**
 * The origin: the person (`RECIPIENT`), the mail server's refusal (`DELIVERY`), a later report (`BOUNCE`), a feedback
 * loop (`COMPLAINT`), a call or a command (`API`), a file (`IMPORT`).
 */
export const suppressionSources = ['RECIPIENT', 'DELIVERY', 'BOUNCE', 'COMPLAINT', 'API', 'IMPORT'] as const;
export type SuppressionSource = (typeof suppressionSources)[number];

export const Suppression = t.named(
	'Suppression',
	t.record({
		email: t.needed(t.email),
		reason: t.needed(t.word(suppressionReasons)),
		/** The list whose mail it stops; null = mail of every list. Only UNSUBSCRIBED can be of one list (api-decisions 40). */
		list_id: t.orNull(t.integer),
		/** One of `suppressionSources`; those of another version may be unknown. */
		source: t.needed(t.described(t.text, { examples: [...suppressionSources] })),
		date_created: t.moment,
		/** From then on it is treated as absent; null = it stands until it is removed. */
		expires_at: t.orNull(t.moment),
	}),
);
export type Suppression = Infer<typeof Suppression>;

export interface SuppressionInput {
	email: string;
	reason?: SuppressionReason;
	/** With UNSUBSCRIBED alone; null or absent: of all lists. */
	list_id?: number | null;
	expires_at?: WireDateTime | null;
}

/** A row of a file, with further columns: an export can be imported again unchanged. */
export interface SuppressionRow extends SuppressionInput {
	source?: SuppressionSource;
	date_created?: WireDateTime;
}

export interface SuppressionFilter {
	email__icontains?: string;
	email__exact?: string;
	reason?: SuppressionReason;
	source?: SuppressionSource;
	/** Only those of this list, without the ones of all lists. */
	list_id?: number;
}

/** Suppressions after a cursor, by address, reason and list. `next` is the cursor to continue with; null at the end. */
export const SuppressionSlice = t.named('SuppressionSlice', t.sliceOf(Suppression, t.text));
export type SuppressionSlice = Infer<typeof SuppressionSlice>;

/** rows = created + updated + unchanged + rejected. `updated`: its end was moved back or removed. */
const SuppressionCounts = t.record({
	created: t.needed(t.count),
	updated: t.needed(t.count),
	unchanged: t.needed(t.count),
	rejected: t.needed(t.count),
});

/** The outcomes of rows that were put, or the expected ones. `row` of a reject counts from 0 within the call. */
export const SuppressionAck = t.named(
	'SuppressionAck',
	t.record({ counts: t.needed(SuppressionCounts), rejects: t.needed(t.listOf(Reject)) }),
);
export type SuppressionAck = Infer<typeof SuppressionAck>;

export function rejectErrors({ code, error }: SuppressionAck['rejects'][number]): FieldErrors {
	const [, name = 'email', message = error] = /^(\w+): (.*)$/.exec(error) ?? [];
	return { [name]: [{ code, message }] };
}

/** The removed suppressions, and how many subscribers with this address are inactive and stay so. */
export const SuppressionRemoval = t.named(
	'SuppressionRemoval',
	t.record({ removed: t.needed(t.listOf(Suppression)), inactive_subscribers: t.needed(t.count) }),
);
export type SuppressionRemoval = Infer<typeof SuppressionRemoval>;

export interface RemovedSuppressions {
	email: string;
	reason?: SuppressionReason;
	list_id?: number;
}

export interface Suppressions {
	page(request: SuppressionFilter & PageRequest, call?: Call): Promise<Page<Suppression>>;
	/** The same by key, so that the last slice costs as much as the first; it is no snapshot. At most 1,000 a slice. */
	slice(
		request: SuppressionFilter & { cursor?: string; limit: number },
		call?: Call,
	): Promise<SuppressionSlice>;
	/**
	 * Adding never weakens: the later end counts, and no end is later than any. An existing one is returned unchanged.
	 * Without an end, the subscribers with this address become inactive, in its list or in all. Throws `invalid`, also for
	 * an erased address (code `erased`) and a missing list (`does_not_exist`).
	 */
	create(input: SuppressionInput, call?: Call): Promise<Suppression>;
	/**
	 * As `create`, for many: at most 5,000. A row with a bad shape is a reject like others. The same rows again change
	 * nothing, so an unanswered call may be repeated; its answer then has `unchanged`.
	 */
	put(rows: readonly SuppressionRow[], call?: Call): Promise<SuppressionAck>;
	check(rows: readonly SuppressionRow[], call?: Call): Promise<SuppressionAck>;
	/**
	 * All reasons, or the named one; of all lists and of each, or only of the named one. Subscribers stay inactive:
	 * writing to them again is a separate decision. Throws `not_found` when none matches.
	 */
	remove(which: RemovedSuppressions, call?: Call): Promise<SuppressionRemoval>;
}

export interface NewSuppression {
	email_key: EmailKey;
	reason: SuppressionReason;
	list_id: number | null;
	source: SuppressionSource;
	created_at: Micros | null;
	expires_at: Micros | null;
}

const input = {
	email: email(),
	reason: withDefault(choice(suppressionReasons), () => 'MANUAL' as const),
	list_id: withDefault(nullable(integer({ min: 1 })), () => null),
	expires_at: withDefault(nullable(moment()), () => null),
};

export const suppressionFields = fieldSet(input, { crossCheck: checkList });

export const suppressionRowFields = fieldSet(
	{
		...input,
		source: withDefault(choice(suppressionSources), () => 'IMPORT' as const),
		date_created: optional(moment()),
	},
	{ crossCheck: checkList },
);

export const removalFields = fieldSet({
	email: email(),
	reason: optional(choice(suppressionReasons)),
	list_id: optional(integer({ min: 1 })),
});

function checkList({
	reason = 'UNSUBSCRIBED',
	list_id = null,
}: Partial<Pick<NewSuppression, 'reason' | 'list_id'>>): FieldErrors {
	if (list_id === null || reason === 'UNSUBSCRIBED') return {};
	return { list_id: [{ code: 'invalid', message: `Only UNSUBSCRIBED can be of one list, not ${reason}.` }] };
}

export function toNewSuppression(row: Infer<typeof suppressionRowFields>): NewSuppression {
	return {
		email_key: emailKey(row.email),
		reason: row.reason,
		list_id: row.list_id,
		source: row.source,
		created_at: row.date_created ?? null,
		expires_at: row.expires_at,
	};
}
