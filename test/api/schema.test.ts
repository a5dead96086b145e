import fc from 'fast-check';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { errorBody } from '../../src/api/errors.js';
import {
	type FieldInput,
	fieldFields,
	type ListInput,
	listFields,
	type SenderInput,
	type SubscriberInput,
	senderFields,
	type TemplateInput,
	templateFields,
	type WebhookInput,
	webhookFields,
} from '../../src/api/inputs.js';
import { campaignFields, sendFields } from '../../src/api/messages.js';
import { parseReportQuery } from '../../src/api/reports.js';
import {
	boolean,
	char,
	choice,
	type Field,
	integer,
	json,
	list,
	nullable,
	optional,
	withDefault,
} from '../../src/api/schema/fields.js';
import { parseInteger, trimWhitespace } from '../../src/api/schema/python.js';
import { fieldSet, type Infer } from '../../src/api/schema.js';
import { subscriberFields } from '../../src/api/subscribers.js';

function answer(field: Field<unknown>, input: unknown): unknown {
	const parsed = fieldSet({ x: field }).parse({ x: input }, 'create');
	return parsed.kind === 'valid' ? { value: parsed.value.x } : errorBody(parsed.errors)['x'];
}

const table: [string, Field<unknown>, unknown, unknown][] = [
	['a byte order mark is not white space', char(), '\ufeffa', { value: '\ufeffa' }],
	['a text keeps its spaces if trimming is off', char({ trim: 'off' }), ' a ', { value: ' a ' }],
	['NaN is refused as a text', char(), Number.NaN, ['Not a valid string.']],
	['an emoji counts as one character', char({ max: 2 }), '😀😀', { value: '😀😀' }],
	['bytes are counted', char({ maxBytes: 3 }), '€€', ['Ensure this field has no more than 3 bytes.']],
	[
		'a text that is too long and contains NUL has two errors',
		char({ max: 2 }),
		'a\0bc',
		['Ensure this field has no more than 2 characters.', 'Null characters are not allowed.'],
	],
	['half a surrogate pair is refused', char(), 'a\ud83d', ['Surrogate characters are not allowed: U+D83D.']],
	['a text of digits is an integer', integer(), ' 12.0 ', { value: 12 }],
	['a fraction is refused as an integer', integer(), 1.5, ['A valid integer is required.']],
	[
		'an integer may be too small',
		integer({ min: 1 }),
		0,
		['Ensure this value is greater than or equal to 1.'],
	],
	['a thousand digits are too large', integer(), '1'.repeat(1001), ['String value too large.']],
	[
		'a value that is not a word is named as Python writes it',
		choice(['A']),
		[true, null, "it's"],
		['"[True, None, "it\'s"]" is not a valid choice.'],
	],
	[
		'a list may be too long',
		list(char(), { max: 1 }),
		['a', 'b'],
		['Ensure this field has no more than 1 elements.'],
	],
	['NUL deep in JSON is refused', json(), { a: ['\0'] }, ['Null characters are not allowed.']],
	['null is accepted where the field allows it', nullable(char()), null, { value: null }],
];

describe('a field type', () => {
	test.each(table)('accepts or rejects a value by this rule: %s', (_, field, input, expected) => {
		expect(answer(field, input)).toEqual(expected);
	});
});

const pair = fieldSet({
	a: char(),
	b: withDefault(boolean(), () => true),
	c: optional(integer()),
});

describe('a field set', () => {
	test('infers the TypeScript type of its value', () => {
		expectTypeOf<Infer<typeof pair>>().toEqualTypeOf<{ a: string; b: boolean; c?: number }>();
		expectTypeOf<Infer<typeof listFields>>().toEqualTypeOf<Required<ListInput>>();
		expectTypeOf<Infer<typeof fieldFields>>().toEqualTypeOf<Required<FieldInput>>();
		expectTypeOf<Infer<typeof senderFields>>().toEqualTypeOf<Required<SenderInput>>();
		expectTypeOf<Infer<typeof subscriberFields>>().toEqualTypeOf<Required<SubscriberInput>>();
		expectTypeOf<Infer<typeof webhookFields>>().toEqualTypeOf<Required<WebhookInput>>();
		expectTypeOf<Infer<typeof templateFields>>().toEqualTypeOf<Required<TemplateInput>>();
	});

	test('fills in defaults on create and replace, but not on patch', () => {
		expect(pair.parse({ a: 'x' }, 'create')).toEqual({ kind: 'valid', value: { a: 'x', b: true } });
		expect(pair.parse({ a: 'x' }, 'replace')).toEqual({ kind: 'valid', value: { a: 'x', b: true } });
		expect(pair.parse({ c: 1, id: 7 }, 'patch')).toEqual({ kind: 'valid', value: { c: 1 } });
	});

	test('names every bad field at once, with its code', () => {
		expect(pair.parse({ b: 'perhaps', c: null }, 'create')).toMatchObject({
			kind: 'invalid',
			errors: {
				a: [{ code: 'required', message: 'This field is required.' }],
				b: [{ code: 'invalid', message: 'Must be a valid boolean.' }],
				c: [{ code: 'null', message: 'This field may not be null.' }],
			},
		});
	});

	test('reads only an object’s own keys, not inherited ones', () => {
		const inherited: unknown = Object.create({ a: 'inherited' });
		expect(pair.parse(inherited, 'create').kind).toBe('invalid');
		const hostile: unknown = JSON.parse('{"a":"x","__proto__":{"c":1},"constructor":1}');
		expect(pair.parse(hostile, 'create')).toEqual({ kind: 'valid', value: { a: 'x', b: true } });
	});

	test('describes itself as JSON Schema', () => {
		expect(pair.jsonSchema()).toEqual({
			type: 'object',
			properties: {
				a: { type: 'string', minLength: 1 },
				b: { type: 'boolean', default: true },
				c: { type: 'integer' },
			},
			required: ['a'],
		});
		expect(pair.jsonSchema('patch')).toEqual({
			type: 'object',
			properties: { a: { type: 'string', minLength: 1 }, b: { type: 'boolean' }, c: { type: 'integer' } },
		});
	});

	test('never throws on any input', () => {
		const sets = [
			listFields,
			fieldFields,
			senderFields,
			subscriberFields,
			webhookFields,
			templateFields,
			sendFields,
			campaignFields,
		];
		const keys = 'name email meta to from headers context type url variable list_id __proto__'.split(' ');
		const body = fc.oneof(
			fc.anything(),
			fc.dictionary(fc.constantFrom(...keys), fc.anything({ maxDepth: 3 })),
		);
		fc.assert(
			fc.property(body, (input) => {
				for (const set of sets) expect(['valid', 'invalid']).toContain(set.parse(input, 'create').kind);
				expect(['valid', 'invalid']).toContain(parseReportQuery(input, '2026-11-21').kind);
			}),
		);
	});

	test('parses non-ASCII digits, even where two sets of ten digits are adjacent in Unicode', () => {
		expect(['٣', '𝟎𝟗', '𝟘𝟚', '𝟷𝟿'].map(parseInteger)).toEqual([3, 9, 2, 19]);
	});
	test('trims a text completely, so that trimming it again changes nothing', () => {
		fc.assert(
			fc.property(
				fc.string({ unit: fc.constantFrom(' ', '\x1c', '\u3000', 'a', '\ufeff', '\n') }),
				(text) => {
					const trimmed = trimWhitespace(text);
					expect(trimWhitespace(trimmed)).toBe(trimmed);
				},
			),
		);
	});
});
