/** Bodies of the extensions that the Api does not check itself: their shape is checked where they come in. */

import { maxBatchRows, type RequestRow, sameMails } from '../../api/campaigns.js';
import type { Recipient } from '../../api/capabilities.js';
import { invalid } from '../../api/errors.js';
import { isRecord } from '../../api/json.js';
import { char, email } from '../../api/schema/char.js';
import { dict, json, list } from '../../api/schema/containers.js';
import { type Field, field, nullable, optional, refuse, valid, withDefault } from '../../api/schema/field.js';
import { boolean, choice, integer, uuid } from '../../api/schema/scalars.js';
import { type FieldSet, fieldSet } from '../../api/schema.js';
import { suppressionRowFields } from '../../api/suppressions.js';

/** The checked body. Throws `invalid` with every field error. */
export function parseBody<T>(fields: FieldSet<T>, body: unknown): T {
	const parsed = fields.parse(body, 'create');
	if (parsed.kind === 'invalid') throw invalid(parsed.errors);
	return parsed.value;
}

/** A campaign's name, or its hash. */
const key = () => char({ max: 255, trim: 'off' });

/** The keys that open a campaign or reopen it; the Api checks the others. */
export const campaignOpening = fieldSet({
	key: optional(key()),
	unless: optional(choice(sameMails)),
});

export const importSpec = fieldSet({
	key: key(),
	list_id: integer({ min: 1 }),
	on_conflict: withDefault(choice(['update', 'skip', 'error']), () => 'update' as const),
	reactivate: withDefault(boolean(), () => false),
});

/** `cells` is long, so it is one check and one field error. */
export const importBatch = fieldSet({
	columns: list(char({ max: 255, trim: 'off' }), { allowEmpty: 'no', max: 1000 }),
	cells: cells(),
});

/** The source of a row: its line, and the reason why it was refused there. */
const ofSource = {
	line: { type: 'integer', minimum: 0 },
	refused: { type: 'object', properties: { code: { type: 'string' }, error: { type: 'string' } } },
};

/** Addresses are checked row by row: a bad one is a reject, not an error of the batch. */
export const recipientBatch = fieldSet({
	recipients: list(recipient(), { max: maxBatchRows }),
});

/** Requests are checked row by row: a bad one is a reject, not an error of the batch. */
export const requestBatch = fieldSet({ requests: list(requestRow(), { max: maxBatchRows }) });

export const completeBody = fieldSet({ position: integer({ min: 0 }) });

export const releaseBody = fieldSet({ expect_count: integer({ min: 0 }) });

/** A time as people give it; the engine reads it. */
export const planBody = fieldSet({
	at: optional(char({ max: 64 })),
	in_ms: optional(integer({ min: 0 })),
	window: optional(char({ max: 64 })),
});

/** Rows are checked one by one: a bad one is a reject, not an error of the call. */
export const suppressionRows = fieldSet({ rows: list(anyRow(), { max: 5_000 }) });

/** Ids, conditions or all; the engine checks that there is one of them, and that the deliveries exist. */
export const replayBody = fieldSet({
	deliveries: withDefault(nullable(list(uuid(), { allowEmpty: 'no', max: 1000 })), () => null),
	failed: withDefault(boolean(), () => false),
	since: withDefault(nullable(char({ max: 32 })), () => null),
	all: withDefault(boolean(), () => false),
});

export const erasureBody = fieldSet({ email: email() });

/** `patch` is that of a subscriber, its `meta` is ignored; `set` and `unset` change the stored meta. */
export const mergeBody = fieldSet({
	patch: withDefault(dict(nullable(json()), { max: 1000 }), () => ({})),
	set: withDefault(dict(nullable(json()), { max: 10_000 }), () => ({})),
	unset: withDefault(list(char({ max: 255, trim: 'off' }), { max: 1000 }), () => []),
});

/** `subscriber` is the input of a subscriber, which the engine checks. */
export const addBody = fieldSet({
	subscriber: dict(nullable(json()), { max: 1000 }),
	if_exists: choice(['skip', 'update']),
});

function anyRow(): Field<unknown, 'required'> {
	return field(suppressionRowFields.jsonSchema(), valid);
}

function cells(): Field<(string | null)[], 'required'> {
	const schema = { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } };
	return field(schema, (input) => {
		const isCells = Array.isArray(input) && input.every((cell) => cell === null || typeof cell === 'string');
		return isCells ? valid(input) : refuse('invalid', 'Not a valid list of strings and nulls.');
	});
}

/** Checks only the shape; the value is passed on unchanged. */
function recipient(): Field<Recipient, 'required'> {
	const schema = {
		type: 'object',
		properties: {
			to: { type: 'string' },
			context: { type: 'object', additionalProperties: { type: 'string' } },
			...ofSource,
		},
		required: ['to'],
	};
	return field(schema, (input) =>
		isRecipient(input) ? valid(input) : refuse('invalid', 'Use {"to": "…", "context": {"name": "value"}}.'),
	);
}

function isRecipient(input: unknown): input is Recipient {
	if (!isRecord(input) || typeof input['to'] !== 'string') return false;
	return isTexts(input['context']) && isOfSource(input);
}

function isOfSource({ line, refused }: Record<string, unknown>): boolean {
	return (line === undefined || Number.isSafeInteger(line)) && isTexts(refused);
}

function isTexts(value: unknown): boolean {
	if (value === undefined) return true;
	return isRecord(value) && Object.values(value).every((inner) => typeof inner === 'string');
}

function requestRow(): Field<RequestRow, 'required'> {
	const schema = {
		type: 'object',
		properties: { request: { $ref: '#/components/schemas/SendRequest' }, ...ofSource },
	};
	const isRow = (input: unknown): input is RequestRow => isRecord(input) && isOfSource(input);
	return field(schema, (input) =>
		isRow(input) ? valid(input) : refuse('invalid', 'Use {"request": {…}, "line": 1}.'),
	);
}
