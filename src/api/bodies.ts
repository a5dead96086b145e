import { maxAttachedBytes } from './attachments.js';
import type { Recipient } from './campaigns.js';
import { maxBatchRows, type RequestRow, sameMails } from './campaigns.js';
import {
	fieldFields,
	listDetailsFields,
	listFields,
	senderFields,
	templateFields,
	webhookFields,
} from './inputs.js';
import { isRecord } from './json.js';
import { campaignFields, requestsFields, sendFields } from './messages.js';
import * as f from './schema/fields.js';
import { type FieldSet, type Fields, fieldSet, type ParseMode, type ValueOf } from './schema.js';
import { subscriberFields } from './subscribers.js';
import { removalFields, suppressionFields, suppressionRowFields } from './suppressions.js';

export const maxBodyBytes = {
	json: 10 * 1024 * 1024,
	batch: 4 * 1024 * 1024,
	file: maxAttachedBytes,
} as const;
export type BodySize = keyof typeof maxBodyBytes;

export interface Body {
	size: BodySize;
	schema: f.JsonSchema;
	check?: FieldSet<unknown>;
	/** Keys that the method takes as separate arguments. Its argument `body` has all other keys. */
	apart?: readonly string[];
}

function given(fields: { jsonSchema(mode?: ParseMode): f.JsonSchema }, mode?: ParseMode): Body {
	return { size: 'json', schema: fields.jsonSchema(mode) };
}

function checked<F extends Fields>(fields: F, size: BodySize = 'json'): Body {
	const check: FieldSet<ValueOf<F>> = fieldSet(fields);
	return { size, schema: check.jsonSchema(), check };
}

const key = f.char({ max: 255, trim: 'off' });
const anyValues = f.dict(f.nullable(f.json()), { max: 1000 });

const campaignOpening = fieldSet({ key: f.optional(key), unless: f.optional(f.choice(sameMails)) });

const ofSource = {
	line: { type: 'integer', minimum: 0 },
	refused: { type: 'object', properties: { code: { type: 'string' }, error: { type: 'string' } } },
};

export const bodies = {
	ListInput: given(listFields),
	ListPatch: given(listFields, 'patch'),
	ListDetailsPatch: given(listDetailsFields, 'patch'),
	SubscriberInput: given(subscriberFields),
	SubscriberPatch: given(subscriberFields, 'patch'),
	FieldInput: given(fieldFields),
	FieldPatch: given(fieldFields, 'patch'),
	WebhookInput: given(webhookFields),
	WebhookPatch: given(webhookFields, 'patch'),
	SendRequest: given(sendFields),
	TemplateInput: given(templateFields),
	TemplatePatch: given(templateFields, 'patch'),
	SenderInput: given(senderFields),
	SenderPatch: given(senderFields, 'patch'),
	/** Ignores `meta` inside `patch`; `set` and `unset` change the meta instead. */
	SubscriberMerge: checked({
		patch: f.withDefault(anyValues, () => ({})),
		set: f.withDefault(f.dict(f.nullable(f.json()), { max: 10_000 }), () => ({})),
		unset: f.withDefault(f.list(f.char({ max: 255, trim: 'off' }), { max: 1000 }), () => []),
	}),
	SubscriberAddition: checked({ subscriber: anyValues, if_exists: f.choice(['skip', 'update']) }),
	ErasureBody: checked({ email: f.email() }),
	ReplayBody: checked({
		deliveries: f.withDefault(f.nullable(f.list(f.uuid(), { allowEmpty: 'no', max: 1000 })), () => null),
		failed: f.withDefault(f.boolean(), () => false),
		since: f.withDefault(f.nullable(f.char({ max: 32 })), () => null),
		all: f.withDefault(f.boolean(), () => false),
	}),
	ImportSpec: checked({
		key,
		list_id: f.integer({ min: 1 }),
		on_conflict: f.withDefault(f.choice(['update', 'skip', 'error']), () => 'update'),
		reactivate: f.withDefault(f.boolean(), () => false),
	}),
	ImportBatch: checked(
		{ columns: f.list(f.char({ max: 255, trim: 'off' }), { allowEmpty: 'no', max: 1000 }), cells: cells() },
		'batch',
	),
	CampaignSpec: {
		size: 'json',
		schema: {
			allOf: [
				campaignOpening.jsonSchema(),
				{ anyOf: [campaignFields.jsonSchema(), requestsFields.jsonSchema('create')] },
			],
		},
		check: campaignOpening,
		apart: ['key', 'unless'],
	},
	/** Leaves the rows to the store, which rejects invalid rows one by one instead of the whole batch. */
	RecipientBatch: checked({ recipients: f.list(recipient(), { max: maxBatchRows }) }, 'batch'),
	RequestBatch: checked({ requests: f.list(requestRow(), { max: maxBatchRows }) }, 'batch'),
	CompleteBody: checked({ position: f.integer({ min: 0 }) }),
	PlanBody: checked({
		at: f.optional(f.char({ max: 64 })),
		in_ms: f.optional(f.integer({ min: 0 })),
		window: f.optional(f.char({ max: 64 })),
	}),
	ReleaseBody: checked({ expect_count: f.integer({ min: 0 }) }),
	SuppressionInput: given(suppressionFields),
	SuppressionRows: checked(
		{ rows: f.list(f.field(suppressionRowFields.jsonSchema(), f.valid), { max: 5_000 }) },
		'batch',
	),
	SuppressionRemovalInput: given(removalFields),
	File: { size: 'file', schema: {} },
} satisfies Readonly<Record<string, Body>>;

function cells(): f.Field<(string | null)[], 'required'> {
	const schema = { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } };
	return f.field(schema, (input) => {
		const isCells = Array.isArray(input) && input.every((cell) => cell === null || typeof cell === 'string');
		return isCells ? f.valid(input) : f.refuse('invalid', 'Not a valid list of strings and nulls.');
	});
}

function recipient(): f.Field<Recipient, 'required'> {
	const schema = {
		type: 'object',
		properties: {
			to: { type: 'string' },
			context: { type: 'object', additionalProperties: { type: 'string' } },
			...ofSource,
		},
		required: ['to'],
	};
	const isRecipient = (input: unknown): input is Recipient =>
		isRecord(input) && typeof input['to'] === 'string' && isTexts(input['context']) && isOfSource(input);
	return f.field(schema, (input) =>
		isRecipient(input)
			? f.valid(input)
			: f.refuse('invalid', 'Use {"to": "…", "context": {"name": "value"}}.'),
	);
}

function requestRow(): f.Field<RequestRow, 'required'> {
	const schema = {
		type: 'object',
		properties: { request: { $ref: '#/components/schemas/SendRequest' }, ...ofSource },
	};
	const isRow = (input: unknown): input is RequestRow => isRecord(input) && isOfSource(input);
	return f.field(schema, (input) =>
		isRow(input) ? f.valid(input) : f.refuse('invalid', 'Use {"request": {…}, "line": 1}.'),
	);
}

function isOfSource({ line, refused }: Record<string, unknown>): boolean {
	return (line === undefined || Number.isSafeInteger(line)) && isTexts(refused);
}

function isTexts(value: unknown): boolean {
	if (value === undefined) return true;
	return isRecord(value) && Object.values(value).every((inner) => typeof inner === 'string');
}
