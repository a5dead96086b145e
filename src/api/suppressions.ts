import { type EmailKey, emailKey } from './address.js';
import type { Call, PageRequest } from './api.js';
import { Reject } from './capabilities.js';
import type { Micros } from './datetime.js';
import type { FieldErrors } from './errors.js';
import type { Page } from './records.js';
import * as f from './schema/fields.js';
import * as t from './schema/record.js';
import { fieldSet, type Given, type Infer } from './schema.js';

/** `HARDBOUNCED` and `COMPLAINED` stop all mail. The other reasons stop only bulk mail. */
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

/** Ignores the case of the `disable_reason` in an import row (api-decisions 14). */
export function importedReason(disable_reason: string | null): SuppressionReason | null {
	const word = disable_reason?.trim().toUpperCase() ?? '';
	return suppressionReasons.find((reason) => reason === word && importedReasons.has(reason)) ?? null;
}

/** Sources in order: the recipient, a mail server, a later bounce, a feedback loop, a call or command, an import. */
export const suppressionSources = ['RECIPIENT', 'DELIVERY', 'BOUNCE', 'COMPLAINT', 'API', 'IMPORT'] as const;
export type SuppressionSource = (typeof suppressionSources)[number];

export const Suppression = t.component('Suppression', {
	email: t.needed(t.email),
	reason: t.needed(t.word(suppressionReasons)),
	list_id: t.orNull(t.integer),
	source: t.needed(t.described(t.text, { examples: [...suppressionSources] })),
	date_created: t.moment,
	expires_at: t.orNull(t.moment),
});
export type Suppression = Infer<typeof Suppression>;

export type SuppressionInput = Given<typeof suppressionFields>;
export type SuppressionRow = Given<typeof suppressionRowFields>;

export interface SuppressionFilter {
	email__icontains?: string;
	email__exact?: string;
	reason?: SuppressionReason;
	source?: SuppressionSource;
	list_id?: number;
}

export const SuppressionSlice = t.named('SuppressionSlice', t.sliceOf(Suppression, t.text));
export type SuppressionSlice = Infer<typeof SuppressionSlice>;

const SuppressionCounts = t.record({
	created: t.needed(t.count),
	updated: t.needed(t.count),
	unchanged: t.needed(t.count),
	rejected: t.needed(t.count),
});

export const SuppressionAck = t.component('SuppressionAck', {
	counts: t.needed(SuppressionCounts),
	rejects: t.needed(t.listOf(Reject)),
});
export type SuppressionAck = Infer<typeof SuppressionAck>;

export function rejectErrors({ code, error }: SuppressionAck['rejects'][number]): FieldErrors {
	const [, name = 'email', message = error] = /^(\w+): (.*)$/.exec(error) ?? [];
	return { [name]: [{ code, message }] };
}

export const SuppressionRemoval = t.component('SuppressionRemoval', {
	removed: t.needed(t.listOf(Suppression)),
	inactive_subscribers: t.needed(t.count),
});
export type SuppressionRemoval = Infer<typeof SuppressionRemoval>;

export interface Suppressions {
	page(request: SuppressionFilter & PageRequest, call?: Call): Promise<Page<Suppression>>;
	/** The last slice costs as much as the first. Rows may change between slices. `limit` is at most 1,000. */
	slice(
		request: SuppressionFilter & { cursor?: string; limit: number },
		call?: Call,
	): Promise<SuppressionSlice>;
	/** Extends an existing suppression, but never shortens it. A suppression without expiry deactivates subscribers. */
	create(input: SuppressionInput, call?: Call): Promise<Suppression>;
	/** Takes at most 5,000 rows. Rejects only the invalid rows. The caller may repeat a call that got no answer. */
	put(rows: readonly SuppressionRow[], call?: Call): Promise<SuppressionAck>;
	check(rows: readonly SuppressionRow[], call?: Call): Promise<SuppressionAck>;
	/** Without a reason, removes all suppressions of the address. Subscribers stay inactive. Throws `not_found`. */
	remove(which: Given<typeof removalFields>, call?: Call): Promise<SuppressionRemoval>;
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
	email: f.email(),
	reason: f.withDefault(f.choice(suppressionReasons), () => 'MANUAL' as const),
	list_id: f.withDefault(f.nullable(f.integer({ min: 1 })), () => null),
	expires_at: f.withDefault(f.nullable(f.moment()), () => null),
};

export const suppressionFields = fieldSet(input, { crossCheck: checkList });

export const suppressionRowFields = fieldSet(
	{
		...input,
		source: f.withDefault(f.choice(suppressionSources), () => 'IMPORT' as const),
		date_created: f.optional(f.moment()),
	},
	{ crossCheck: checkList },
);

export const removalFields = fieldSet({
	email: f.email(),
	reason: f.optional(f.choice(suppressionReasons)),
	list_id: f.optional(f.integer({ min: 1 })),
});

function checkList({
	reason = 'UNSUBSCRIBED',
	list_id = null,
}: Partial<Pick<NewSuppression, 'reason' | 'list_id'>>): FieldErrors {
	if (list_id === null || reason === 'UNSUBSCRIBED') return {};
	return {
		list_id: [{ code: 'invalid', message: `Only UNSUBSCRIBED can apply to a single list, not ${reason}.` }],
	};
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
