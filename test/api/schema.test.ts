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
import { reportQuery } from '../../src/api/reports.js';
import {
	boolean,
	char,
	choice,
	dict,
	email,
	type Field,
	integer,
	json,
	list,
	nullable,
	optional,
	url,
	uuid,
	withDefault,
} from '../../src/api/schema/fields.js';
import { trimWhitespace } from '../../src/api/schema/python.js';
import { fieldSet, type Infer } from '../../src/api/schema.js';
import { subscriberFields } from '../../src/api/subscribers.js';

function answer(field: Field<unknown>, input: unknown): unknown {
	const parsed = fieldSet({ x: field }).parse({ x: input }, 'create');
	return parsed.kind === 'valid' ? { value: parsed.value.x } : errorBody(parsed.errors)['x'];
}

const notString = ['Not a valid string.'];
const notNull = ['This field may not be null.'];

const table: [string, Field<unknown>, unknown, unknown][] = [
	['a text is trimmed', char(), ' \x1f a b\u3000\n', { value: 'a b' }],
	['a byte order mark is no white space', char(), '\ufeffa', { value: '\ufeffa' }],
	['a text is kept as it is where trimming is off', char({ trim: 'off' }), ' a ', { value: ' a ' }],
	['white space alone is a text where trimming is off', char({ trim: 'off' }), ' ', { value: ' ' }],
	['an integer becomes text', char(), 12, { value: '12' }],
	['a fraction becomes text', char(), -1.5, { value: '-1.5' }],
	['a boolean is no text', char(), true, notString],
	['a list is no text', char(), [], notString],
	['an object is no text', char(), {}, notString],
	['NaN is no text', char(), Number.NaN, notString],
	['null is no text', char(), null, notNull],
	['white space alone is blank', char(), ' \t ', ['This field may not be blank.']],
	['blank is taken where it may be', char({ allowBlank: true }), '  ', { value: '' }],
	[
		'three characters are too many for two',
		char({ max: 2 }),
		'abc',
		['Ensure this field has no more than 2 characters.'],
	],
	['an emoji is one character', char({ max: 2 }), '😀😀', { value: '😀😀' }],
	[
		'octets are counted where size is meant',
		char({ maxBytes: 3 }),
		'€€',
		['Ensure this field has no more than 3 bytes.'],
	],
	[
		'too long and NUL are two complaints',
		char({ max: 2 }),
		'a\0bc',
		['Ensure this field has no more than 2 characters.', 'Null characters are not allowed.'],
	],
	['half a surrogate pair is refused', char(), 'a\ud83d', ['Surrogate characters are not allowed: U+D83D.']],
	['an e-mail field says its own text of a list', email(), ['a@b.no'], ['Enter a valid email address.']],
	['a number is not an e-mail address', email(), 5, ['Enter a valid email address.']],
	[
		'an address of 255 characters is too long',
		email(),
		`${'a'.repeat(245)}@bb.no.com`,
		['Ensure this field has no more than 254 characters.'],
	],
	['true is true', boolean(), true, { value: true }],
	['"Yes" is true', boolean(), 'Yes', { value: true }],
	['1 is true', boolean(), 1, { value: true }],
	['"off" is false', boolean(), 'off', { value: false }],
	['0 is false', boolean(), -0, { value: false }],
	['"yEs" is no boolean', boolean(), 'yEs', ['Must be a valid boolean.']],
	['" true" is no boolean', boolean(), ' true', ['Must be a valid boolean.']],
	['2 is no boolean', boolean(), 2, ['Must be a valid boolean.']],
	['a list is no boolean', boolean(), [true], ['Must be a valid boolean.']],
	['an empty text is no boolean', boolean(), '', ['Must be a valid boolean.']],
	['a text of digits is an integer', integer(), ' 12.0 ', { value: 12 }],
	['a fraction is no integer', integer(), 1.5, ['A valid integer is required.']],
	['true is no integer', integer(), true, ['A valid integer is required.']],
	[
		'an integer may be too small',
		integer({ min: 1 }),
		0,
		['Ensure this value is greater than or equal to 1.'],
	],
	['a thousand digits are refused unread', integer(), '1'.repeat(1001), ['String value too large.']],
	[
		'a UUID is lower-cased',
		uuid(),
		'6BA7B810-9DAD-11D1-80B4-00C04FD430C8',
		{ value: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' },
	],
	[
		'a UUID may lack its hyphens',
		uuid(),
		'{6ba7b8109dad11d180b400c04fd430c8}',
		{ value: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' },
	],
	['a short UUID is none', uuid(), '6ba7b810', ['Must be a valid UUID.']],
	['a list is no UUID', uuid(), [], ['Must be a valid UUID.']],
	['a word of the choice is taken', choice(['A', 'B']), 'B', { value: 'B' }],
	['another word is named', choice(['A']), 'a', ['"a" is not a valid choice.']],
	[
		'a value that is no word is named as Python writes it',
		choice(['A']),
		[true, null, "it's"],
		['"[True, None, "it\'s"]" is not a valid choice.'],
	],
	['a text is no list', list(char()), 'a', ['Expected a list of items but got type "str".']],
	['an object is no list', list(char()), {}, ['Expected a list of items but got type "dict".']],
	['a number is no list', list(char()), 1, ['Expected a list of items but got type "int".']],
	['an empty list may be refused', list(char(), { allowEmpty: 'no' }), [], ['This list may not be empty.']],
	[
		'items are keyed by index',
		list(char()),
		['a', null, ''],
		{ '1': notNull, '2': ['This field may not be blank.'] },
	],
	[
		'a list may be too long',
		list(char(), { max: 1 }),
		['a', 'b'],
		['Ensure this field has no more than 1 elements.'],
	],
	['a list is no dictionary', dict(char()), [], ['Expected a dictionary of items but got type "list".']],
	['values are keyed by key', dict(char()), { a: 1, b: true }, { b: notString }],
	['JSON is taken as it is', json(), { a: [1, null] }, { value: { a: [1, null] } }],
	['NUL deep in JSON is refused', json(), { a: ['\0'] }, ['Null characters are not allowed.']],
	['null is a value where it may be', nullable(char()), null, { value: null }],
];

describe('a field', () => {
	test.each(table)('%s', (_, field, input, expected) => {
		expect(answer(field, input)).toEqual(expected);
	});
});

const pair = fieldSet({
	a: char(),
	b: withDefault(boolean(), () => true),
	c: optional(integer()),
});

describe('a field set', () => {
	test('infers what its value holds', () => {
		expectTypeOf<Infer<typeof pair>>().toEqualTypeOf<{ a: string; b: boolean; c?: number }>();
		expectTypeOf<Infer<typeof listFields>>().toEqualTypeOf<ListInput>();
		expectTypeOf<Infer<typeof fieldFields>>().toEqualTypeOf<FieldInput>();
		expectTypeOf<Infer<typeof senderFields>>().toEqualTypeOf<Required<SenderInput>>();
		expectTypeOf<Infer<typeof subscriberFields>>().toEqualTypeOf<Required<SubscriberInput>>();
		expectTypeOf<Infer<typeof webhookFields>>().toEqualTypeOf<Required<WebhookInput>>();
		expectTypeOf<Infer<typeof templateFields>>().toEqualTypeOf<Required<TemplateInput>>();
	});

	test('fills in defaults when it creates or replaces, and not when it patches', () => {
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

	test.each([
		[[], 'Invalid data. Expected a dictionary, but got list.'],
		['{}', 'Invalid data. Expected a dictionary, but got str.'],
		[1, 'Invalid data. Expected a dictionary, but got int.'],
		[1.5, 'Invalid data. Expected a dictionary, but got float.'],
		[false, 'Invalid data. Expected a dictionary, but got bool.'],
		[null, 'No data provided'],
	])('refuses %j as a body', (body, message) => {
		const parsed = pair.parse(body, 'patch');
		expect(parsed.kind === 'invalid' && errorBody(parsed.errors)).toEqual({ non_field_errors: [message] });
	});

	test('reads own keys only', () => {
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

	test('never throws, whatever it is given', () => {
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
				expect(['valid', 'invalid']).toContain(reportQuery.parse(input, '2026-11-21').kind);
			}),
		);
	});

	test('trims once and for all', () => {
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

describe('a URL', () => {
	test.each([
		'http://localhost:8025/hook',
		'https://user:pw@a.example.com:8443/p?q#f',
		'http://127.0.0.1/',
		'HTTP://[::1]:80/',
		'https://bücher.example/ü',
	])('%s is taken', (text) => expect(answer(url(), text)).toEqual({ value: text }));

	test.each([
		'ftp://a.no/',
		'a.no',
		'http://a',
		'http://a .no',
		'http://a.no/\x01',
		'javascript://a.no/',
		'http://[::zz]/',
		'http://a.no\\@b.no',
		`http://a.${'b'.repeat(64)}/`,
	])('%j is refused', (text) => expect(answer(url(), text)).toEqual(['Enter a valid URL.']));
});
