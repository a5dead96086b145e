import { type Address, type EmailKey, formatMailbox, type Mailbox } from './address.js';
import { type Attachment, attachments } from './attachments.js';
import type { Micros } from './datetime.js';
import type { FieldErrors } from './errors.js';
import { maxBodyBytes } from './inputs.js';
import { messageTypes, type Uuid } from './records.js';
import * as f from './schema/fields.js';
import { headers } from './schema/headers.js';
import { trimWhitespace } from './schema/python.js';
import { texts } from './schema/texts.js';
import { type FieldSet, fieldSet, type Infer, type ParseMode, required, type ValueOf } from './schema.js';

export const maxRecipients = 1000;
const maxCopies = 100;
export const maxVariables = 5000;
export const maxSubjectLength = 998;

/** The service document has no rule for keys, so mailctl assumes this one (api-decisions 29). */
export const idempotencyKeyRule = {
	isKept: (key: string): boolean => /^[\x21-\x7e]{1,255}$/.test(key),
	message: 'Use 1 to 255 visible ASCII characters.',
};

export type CheckedContent = ReturnType<typeof normalizeContent>;
export type CheckedSend = ReturnType<typeof normalizeSend>;
export type CheckedAudience = ReturnType<typeof normalizeAudience>;

export interface CheckedTiming {
	starts_at: Micros | null;
	window: string | null;
	time_zone: string | null;
}

const body = f.char({ trim: 'off', maxBytes: maxBodyBytes });

/** Rejects a text of only white space, as DRF does. */
const notBlank: f.TextRule = (value) =>
	trimWhitespace(value) === '' ? { code: 'blank', message: texts.blank } : null;
const mailboxes = f.list(f.mailbox(), { max: maxCopies });

const contentDeclaration = {
	type: f.withDefault(f.choice(messageTypes), () => 'TRANSACTIONAL' as const),
	from: f.oneOrListOfOne(f.mailbox()),
	subject: f.optional(f.char({ max: maxSubjectLength })),
	text_body: f.optional(body),
	html_body: f.optional(body),
	template_unique_id: f.optional(f.uuid()),
	reply_to: f.withDefault(mailboxes, () => []),
	headers: f.withDefault(headers(), () => ({})),
	disable_inline: f.withDefault(f.boolean(), () => false),
	disable_tracking: f.withDefault(f.boolean(), () => false),
	context: f.withDefault(
		f.dict(f.char({ trim: 'off', rules: [notBlank] }), { max: maxVariables }),
		() => ({}),
	),
	tag: f.optional(f.char({ max: 255 })),
	campaign_unique_id: f.optional(f.uuid()),
	attachments: f.optional(attachments()),
};

/** Service document, "Send a message". mailctl adds `list_id` and some content keys (api-decisions 24, 28, 38, 46). */
const sendDeclaration = {
	...contentDeclaration,
	to: f.list(f.address(), { allowEmpty: 'no', max: maxRecipients }),
	cc: f.withDefault(mailboxes, () => []),
	bcc: f.withDefault(mailboxes, () => []),
	list_id: f.optional(f.integer({ min: 1 })),
};

const declaredSend = fieldSet(sendDeclaration, {
	crossCheck: (good, isMissing) => ({ ...checkContent(isMissing), ...checkCopies(good) }),
});

const campaignSource = f.dict(f.char({ allowBlank: true, max: 256 * 1024, trim: 'off' }), { max: 20 });

const mostLists = 100;
const lists = f.list(f.integer({ min: 1 }), { max: mostLists });
const openedCampaigns = f.list(f.uuid(), { max: mostLists });

export const audienceDeclaration = {
	lists: f.optional(lists),
	exclude_lists: f.optional(lists),
	where: f.optional(f.list(f.char({ max: 1000, trim: 'off' }), { max: mostLists })),
	where_opened: f.optional(openedCampaigns),
	where_not_opened: f.optional(openedCampaigns),
};

const conditionNames = ['exclude_lists', 'where', 'where_opened', 'where_not_opened'] as const;

export const timingDeclaration = {
	starts_at: f.optional(f.moment()),
	/** Mail leaves only between these two times (`HH:MM-HH:MM` in `time_zone`). The window may cross midnight. */
	window: f.optional(f.sendingWindow()),
	time_zone: f.optional(f.timeZone()),
};

const declaredCampaign = fieldSet(
	{
		...contentDeclaration,
		...audienceDeclaration,
		...timingDeclaration,
		strict_vars: f.withDefault(f.boolean(), () => true),
		list_id: f.optional(f.integer({ min: 1 })),
		source: f.optional(campaignSource),
	},
	{ crossCheck: (good, isMissing) => ({ ...checkContent(isMissing), ...checkAudience(good, isMissing) }) },
);

export const requestsFields = fieldSet({
	requests: f.boolean(),
	strict_vars: f.withDefault(f.boolean(), () => true),
	source: f.optional(campaignSource),
	...timingDeclaration,
});

export const sendFields = normalized(declaredSend, normalizeSend);
export const campaignFields = normalized(declaredCampaign, normalizeCampaign);

export interface StoredParts {
	type?: CheckedContent['type'];
	from_key?: EmailKey;
	template_unique_id?: Uuid | null;
	list_id?: number | null;
}

interface NormalizedFields<T, G> {
	/** Only carries the type `G`, and is never set. */
	readonly given?: G;
	parse(
		body: unknown,
		mode?: ParseMode,
	): { kind: 'valid'; value: T } | { kind: 'invalid'; errors: FieldErrors; good: StoredParts };
	jsonSchema(): f.JsonSchema;
}

type Declared = ValueOf<typeof contentDeclaration>;

function checkContent(isMissing: (name: keyof Declared) => boolean): FieldErrors {
	if (!isMissing('template_unique_id')) return {};
	const hasBody = !isMissing('text_body') || !isMissing('html_body');
	return {
		...(isMissing('subject') && { subject: [required] }),
		...(!hasBody && { text_body: [required], html_body: [required] }),
	};
}

const noCopies = { code: 'invalid', message: 'BULK messages cannot have cc or bcc.' } as const;

function checkCopies({
	type,
	cc = [],
	bcc = [],
}: Partial<Pick<ValueOf<typeof sendDeclaration>, 'type' | 'cc' | 'bcc'>>): FieldErrors {
	if (type !== 'BULK') return {};
	return { ...(cc.length > 0 && { cc: [noCopies] }), ...(bcc.length > 0 && { bcc: [noCopies] }) };
}

function checkAudience(
	{ list_id, lists }: { list_id?: number; lists?: readonly number[] },
	isMissing: (name: 'list_id' | keyof typeof audienceDeclaration) => boolean,
): FieldErrors {
	const hasList = !isMissing('list_id');
	const isFirst = lists === undefined || (hasList && list_id === undefined) || lists[0] === list_id;
	const isOfLists = hasList || conditionNames.every(isMissing);
	return {
		...(!isFirst && { lists: [{ code: 'invalid', message: 'The first item must equal list_id.' }] }),
		...(!isOfLists && { list_id: [required] }),
	};
}

function normalizeAudience({
	list_id,
	lists = list_id === undefined ? [] : [list_id],
	exclude_lists = [],
	where = [],
	where_opened = [],
	where_not_opened = [],
}: { list_id?: number } & Partial<ValueOf<typeof audienceDeclaration>>) {
	return {
		lists: [...new Set(lists)],
		exclude_lists: [...new Set(exclude_lists)],
		where: [...new Set(where)],
		where_opened: [...new Set(where_opened)],
		where_not_opened: [...new Set(where_not_opened)],
	};
}

export function normalizeTiming({
	starts_at = null,
	window = null,
	time_zone = null,
}: { [K in keyof CheckedTiming]?: CheckedTiming[K] | undefined }): CheckedTiming {
	return { starts_at, window, time_zone };
}

function normalizeSend(value: ValueOf<typeof sendDeclaration>) {
	const cc = distinct(value.cc);
	const copied = new Set(cc.map(({ key }) => key));
	const bcc = distinct(value.bcc).filter(({ key }) => !copied.has(key));
	return {
		...normalizeContent(value, { cc, bcc }),
		to: distinct(value.to),
		cc,
		bcc,
		list_id: value.list_id ?? null,
	};
}

function normalizeCampaign(value: Infer<typeof declaredCampaign>) {
	return {
		...normalizeContent(value, { cc: [], bcc: [] }),
		strict_vars: value.strict_vars,
		list_id: value.list_id ?? null,
		audience: normalizeAudience(value),
		timing: normalizeTiming(value),
	};
}

function normalizeContent(value: Declared, copies: Record<'cc' | 'bcc', Mailbox[]>) {
	return {
		type: value.type,
		from: value.from,
		from_key: value.from.key,
		envelope: {
			from: formatMailbox(value.from),
			reply_to: distinct(value.reply_to).map(formatMailbox),
			cc: copies.cc.map(formatMailbox),
			bcc: copies.bcc.map(({ address }) => address),
			headers: value.headers,
		},
		subject: value.subject ?? null,
		text_body: value.text_body ?? null,
		html_body: value.html_body ?? null,
		template_unique_id: value.template_unique_id ?? null,
		disable_inline: value.disable_inline,
		...(value.disable_tracking && { disable_tracking: true }),
		context: value.context,
		tag: value.tag ?? null,
		campaign_unique_id: value.campaign_unique_id ?? null,
		...(value.attachments !== undefined &&
			value.attachments.length > 0 && { attachments: value.attachments }),
	};
}

function distinct<A extends Address>(addresses: readonly A[]): A[] {
	const seen = new Set<string>();
	return addresses.filter(({ key }) => !seen.has(key) && seen.add(key));
}

function normalized<A extends Asked, G, T>(
	fields: FieldSet<A, G>,
	normalize: (value: A) => T,
): NormalizedFields<T, G> {
	return {
		parse: (body) => {
			const parsed = fields.parse(body, 'create');
			if (parsed.kind === 'valid') return { kind: 'valid', value: normalize(parsed.value) };
			const { type, from, template_unique_id, list_id } = parsed.good ?? {};
			return {
				kind: 'invalid',
				errors: parsed.errors,
				good: {
					...(type !== undefined && { type }),
					...(from !== undefined && { from_key: from.key }),
					...(template_unique_id !== undefined && { template_unique_id }),
					...(list_id !== undefined && { list_id }),
				},
			};
		},
		jsonSchema: () => fields.jsonSchema('create'),
	};
}

type Asked = Partial<
	Pick<ValueOf<typeof sendDeclaration>, 'type' | 'from' | 'template_unique_id' | 'list_id'>
>;

export interface Content {
	subject: string;
	text: string | null;
	html: string | null;
	disable_inline: boolean;
	attachments?: readonly Attachment[];
}

export interface Envelope {
	from: string;
	reply_to: readonly string[];
	cc: readonly string[];
	bcc: readonly string[];
	headers: Readonly<Record<string, string>>;
}
