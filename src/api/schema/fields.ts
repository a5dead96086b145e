/** Kinds of input fields. Their texts and codes are those of Django REST framework 3.14. */

import {
	type Address,
	emailKey,
	isEmailAddress,
	type Mailbox,
	maxAddressLength,
	parseMailbox,
} from '../address.js';
import { isTimeZone, type Micros, parseDateTime, parseWindow } from '../datetime.js';
import type { FieldError, FieldErrors } from '../errors.js';
import { findJsonFault, isRecord } from '../json.js';
import type { Uuid, WireDateTime } from '../records.js';
import {
	countCodePoints,
	findLoneSurrogate,
	JsonNumber,
	toText,
	trimWhitespace,
	typeName,
} from './python.js';
import { notAChoice, texts } from './texts.js';
import { isWebUrl, maxUrlLength } from './url.js';

export type Checked<T> =
	| { kind: 'valid'; value: T }
	| { kind: 'invalid'; errors: readonly FieldError[] | FieldErrors };

export type Presence = 'required' | 'defaulted' | 'optional';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** `T` is the checked value, `G` the input. */
export interface Field<T, P extends Presence = Presence, G = T> {
	/** Never set; exists only for the type `G`. */
	readonly given?: G;
	readonly presence: P;
	readonly schema: JsonSchema;
	/** Returns a new value each time, because callers may change it. */
	readonly makeDefault?: () => T;
	check(input: unknown): Checked<T>;
}

export function field<T, G = T>(
	schema: JsonSchema,
	check: (input: unknown) => Checked<T>,
): Field<T, 'required', G> {
	return {
		presence: 'required',
		schema,
		check: (input) => (input === null || input === undefined ? refuseNull() : check(input)),
	};
}

export function optional<T, G>(inner: Field<T, Presence, G>): Field<T, 'optional', G> {
	return { presence: 'optional', schema: inner.schema, check: inner.check };
}

export function withDefault<T, G>(
	inner: Field<T, Presence, G>,
	makeDefault: () => T,
): Field<T, 'defaulted', G> {
	const schema = { ...inner.schema, default: makeDefault() };
	return { presence: 'defaulted', schema, makeDefault, check: inner.check };
}

export function nullable<T, P extends Presence, G>(inner: Field<T, P, G>): Field<T | null, P, G | null> {
	return {
		...inner,
		schema: { anyOf: [inner.schema, { type: 'null' }] },
		check: (input) => (input === null ? valid(null) : inner.check(input)),
	};
}

export function valid<T>(value: T): Checked<T> {
	return { kind: 'valid', value };
}

export function refuse(code: string, message: string): { kind: 'invalid'; errors: readonly FieldError[] } {
	return { kind: 'invalid', errors: [{ code, message }] };
}

export function refuseNull(): { kind: 'invalid'; errors: readonly FieldError[] } {
	return refuse('null', texts.null);
}

export type TextRule = (value: string) => FieldError | null;

interface CharOptions {
	max?: number;
	maxBytes?: number;
	allowBlank?: boolean;
	trim?: 'on' | 'off';
	invalid?: string;
	rules?: readonly TextRule[];
	schema?: JsonSchema;
}

/** Turns numbers into text as DRF's CharField does, keeping every digit. */
export function char(options: CharOptions = {}): Field<string, 'required'> {
	const rules = [...limits(options), nullCharacters, surrogates, ...(options.rules ?? [])];
	return field(charSchema(options), (input) => checkText(input, options, rules));
}

export function email(options: Pick<CharOptions, 'allowBlank'> = {}): Field<string, 'required'> {
	const message = texts.email;
	return char({
		...options,
		max: maxAddressLength,
		invalid: message,
		rules: [(value) => (isEmailAddress(value) ? null : { code: 'invalid', message })],
		schema: { format: 'email' },
	});
}

export function url(): Field<string, 'required'> {
	const message = texts.url;
	return char({
		max: maxUrlLength,
		invalid: message,
		rules: [(value) => (isWebUrl(value) ? null : { code: 'invalid', message })],
		schema: { format: 'uri' },
	});
}

export function pattern(regex: RegExp, options: CharOptions = {}): Field<string, 'required'> {
	const message = 'This value does not match the required pattern.';
	const matches: TextRule = (value) => (regex.test(value) ? null : { code: 'invalid', message });
	return char({
		...options,
		rules: [matches, ...(options.rules ?? [])],
		schema: { pattern: regex.source, ...options.schema },
	});
}

export const nullCharacters: TextRule = (value) =>
	value.includes('\0') ? { code: 'null_characters_not_allowed', message: texts.nullCharacters } : null;

export const surrogates: TextRule = (value) => {
	const lone = findLoneSurrogate(value);
	if (lone === null) return null;
	const message = `Surrogate characters are not allowed: U+${lone.toString(16).toUpperCase()}.`;
	return { code: 'surrogate_characters_not_allowed', message };
};

export function textFaults(value: string): FieldError[] {
	return [nullCharacters(value), surrogates(value)].filter((error) => error !== null);
}

function checkText(input: unknown, options: CharOptions, rules: readonly TextRule[]): Checked<string> {
	const text = textOf(input);
	const trimmed = text !== null && options.trim !== 'off' ? trimWhitespace(text) : text;
	if (trimmed === '') return options.allowBlank ? valid('') : refuse('blank', texts.blank);
	if (trimmed === null) return refuse('invalid', options.invalid ?? texts.string);
	const errors = rules.map((rule) => rule(trimmed)).filter((error) => error !== null);
	return errors.length === 0 ? valid(trimmed) : { kind: 'invalid', errors };
}

function textOf(input: unknown): string | null {
	if (typeof input === 'string') return input;
	if (input instanceof JsonNumber) return input.toString();
	return typeof input === 'number' && Number.isFinite(input) ? String(input) : null;
}

function limits({ max, maxBytes }: CharOptions): TextRule[] {
	const rules: TextRule[] = [];
	if (max !== undefined) rules.push((value) => (isLonger(value, max) ? tooLong(max, 'characters') : null));
	if (maxBytes !== undefined) {
		rules.push((value) => (Buffer.byteLength(value) > maxBytes ? tooLong(maxBytes, 'bytes') : null));
	}
	return rules;
}

function isLonger(value: string, max: number): boolean {
	return value.length > max && countCodePoints(value) > max;
}

function tooLong(max: number, unit: 'characters' | 'bytes'): FieldError {
	return { code: 'max_length', message: `Ensure this field has no more than ${max} ${unit}.` };
}

function charSchema({ max, allowBlank, schema }: CharOptions): JsonSchema {
	return {
		type: 'string',
		...(max !== undefined && { maxLength: max }),
		...(!allowBlank && { minLength: 1 }),
		...schema,
	};
}

const trueValues = new Set<unknown>([...'t T y Y yes Yes YES true True TRUE on On ON 1'.split(' '), 1, true]);
const falseValues = new Set<unknown>([
	...'f F n N no No NO false False FALSE off Off OFF 0'.split(' '),
	0,
	false,
]);

const maxIntegerText = 1000;

export function boolean(): Field<boolean, 'required'> {
	return field({ type: 'boolean' }, (given) => {
		// Accepts 1.0, because it equals 1 in Python.
		const input = given instanceof JsonNumber ? given.toNumber() : given;
		if (trueValues.has(input)) return valid(true);
		if (falseValues.has(input)) return valid(false);
		return refuse('invalid', texts.boolean);
	});
}

export function integer({ min }: { min?: number } = {}): Field<number, 'required'> {
	const schema = { type: 'integer', ...(min !== undefined && { minimum: min }) };
	return field(schema, (input) => {
		if (typeof input === 'string' && input.length > maxIntegerText) {
			return refuse('max_string_length', 'String value too large.');
		}
		const value = integerOf(input);
		if (value === null) return refuse('invalid', texts.integer);
		if (min !== undefined && value < min) {
			return refuse('min_value', `Ensure this value is greater than or equal to ${min}.`);
		}
		return valid(value);
	});
}

export function uuid(): Field<Uuid, 'required'> {
	return field({ type: 'string', format: 'uuid' }, (input) => {
		const hex = uuidHex(input);
		return hex === null ? refuse('invalid', texts.uuid) : valid(hyphenated(hex));
	});
}

export function choice<const C extends string>(choices: readonly C[]): Field<C, 'required'> {
	return field({ type: 'string', enum: [...choices] }, (input) => {
		const text = toText(input);
		const found = choices.find((candidate) => candidate === text);
		return found === undefined ? refuse('invalid_choice', notAChoice(text)) : valid(found);
	});
}

function integerOf(input: unknown): number | null {
	if (typeof input !== 'number' && typeof input !== 'string' && !(input instanceof JsonNumber)) return null;
	const match = /^\s*([+-]?\d+)(?:\.0*)?\s*$/.exec(String(input));
	const value = Number(match?.[1] ?? Number.NaN);
	return Number.isSafeInteger(value) ? value + 0 : null;
}

function uuidHex(input: unknown): string | null {
	// Python's bool is an int, and DRF's UUIDField accepts ints.
	if (typeof input === 'boolean') return uuidHex(input ? 1 : 0);
	if (input instanceof JsonNumber) {
		const value = input.isInteger && input.text.length < 50 ? BigInt(input.text) : -1n;
		return value >= 0n && value < 2n ** 128n ? value.toString(16).padStart(32, '0') : null;
	}
	if (typeof input === 'number') {
		return Number.isSafeInteger(input) && input >= 0 ? input.toString(16).padStart(32, '0') : null;
	}
	if (typeof input !== 'string' || input.length > 100) return null;
	const hex = input
		.replaceAll('urn:', '')
		.replaceAll('uuid:', '')
		.replace(/^[{}]+/, '')
		.replace(/(?<![{}])[{}]+$/, '')
		.replaceAll('-', '');
	return /^[0-9a-f]{32}$/i.test(hex) ? hex.toLowerCase() : null;
}

function hyphenated(hex: string): Uuid {
	return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

interface ListOptions {
	allowEmpty?: 'yes' | 'no';
	max?: number;
}

/** Checks no item if the list is too long. Ten megabytes of invalid items would cause half a gigabyte of errors. */
export function list<T, G>(
	child: Field<T, Presence, G>,
	{ allowEmpty, max }: ListOptions = {},
): Field<T[], 'required', readonly G[]> {
	const schema = {
		type: 'array',
		items: child.schema,
		...(allowEmpty === 'no' && { minItems: 1 }),
		...(max !== undefined && { maxItems: max }),
	};
	return field(schema, (input) => {
		if (!Array.isArray(input)) {
			return refuse('not_a_list', `Expected a list of items but got type "${typeName(input)}".`);
		}
		if (input.length === 0 && allowEmpty === 'no') return refuse('empty', 'This list may not be empty.');
		if (max !== undefined && input.length > max) {
			return refuse('max_length', `Ensure this field has no more than ${max} elements.`);
		}
		const entries = Array.from(input, (item, index) => [String(index), child.check(item)] as const);
		const checked = gather(entries);
		return checked.kind === 'invalid' ? checked : valid(checked.value.map(([, value]) => value));
	});
}

interface DictOptions<T> {
	check?: (key: string, value: T) => Checked<T>;
	max?: number;
}

export function dict<T>(
	child: Field<T>,
	{ check, max }: DictOptions<T> = {},
): Field<Record<string, T>, 'required', Readonly<Record<string, T>>> {
	const schema = {
		type: 'object',
		additionalProperties: child.schema,
		...(max !== undefined && { maxProperties: max }),
	};
	const checkEntry = (key: string, item: unknown): Checked<T> => {
		const errors = textFaults(key);
		if (errors.length > 0) return { kind: 'invalid', errors };
		const checked = child.check(item);
		return checked.kind === 'valid' && check ? check(key, checked.value) : checked;
	};
	return field(schema, (input) => {
		if (!isRecord(input)) {
			return refuse('not_a_dict', `Expected a dictionary of items but got type "${typeName(input)}".`);
		}
		const keys = Object.keys(input);
		if (max !== undefined && keys.length > max) {
			return refuse('max_length', `Ensure this field has no more than ${max} elements.`);
		}
		const checked = gather(keys.map((key) => [key, checkEntry(key, input[key])] as const));
		// Unlike an assignment, `fromEntries` treats `__proto__` as an ordinary key.
		return checked.kind === 'invalid' ? checked : valid(Object.fromEntries(checked.value));
	});
}

export function json(): Field<unknown, 'required'> {
	return field({}, (input) => {
		const fault = findJsonFault(input);
		return fault === null ? valid(input) : refuse(fault.code, fault.message);
	});
}

function gather<T>(entries: readonly (readonly [string, Checked<T>])[]): Checked<[string, T][]> {
	const values: [string, T][] = [];
	const errors: [string, FieldErrors[string]][] = [];
	for (const [key, checked] of entries) {
		if (checked.kind === 'valid') values.push([key, checked.value]);
		else errors.push([key, checked.errors]);
	}
	return errors.length === 0 ? valid(values) : { kind: 'invalid', errors: Object.fromEntries(errors) };
}

const message = texts.email;
const text = char({ invalid: message });

export function address(): Field<Address, 'required', string> {
	const plain = email();
	return field(plain.schema, (input) => {
		const checked = plain.check(input);
		return checked.kind === 'invalid'
			? checked
			: valid({ address: checked.value, key: emailKey(checked.value) });
	});
}

export function mailbox(): Field<Mailbox, 'required', string> {
	return field({ type: 'string', minLength: 1 }, (input) => {
		const checked = text.check(input);
		if (checked.kind === 'invalid') return checked;
		const parsed = parseMailbox(checked.value);
		return parsed === null ? refuse('invalid', message) : valid(parsed);
	});
}

/** The service document shows `from` both as a text and as an array with one text. */
export function oneOrListOfOne<T, G>(inner: Field<T, Presence, G>): Field<T, 'required', G | readonly G[]> {
	const asList = { type: 'array', items: inner.schema, minItems: 1, maxItems: 1 };
	return field({ anyOf: [inner.schema, asList] }, (input) => {
		if (!Array.isArray(input)) return inner.check(input);
		return input.length === 1 ? inner.check(input[0]) : refuse('invalid', message);
	});
}

export function moment(): Field<Micros, 'required', WireDateTime> {
	return field({ type: 'string', format: 'date-time' }, (input) => {
		const at = typeof input === 'string' ? parseDateTime(input.trim()) : null;
		return at === null ? refuse('invalid', texts.datetime) : valid(at);
	});
}

export function timeZone(): Field<string, 'required'> {
	return field({ type: 'string' }, (input) =>
		typeof input === 'string' && isTimeZone(input)
			? valid(input)
			: refuse('invalid', 'Enter an IANA time zone, such as Europe/Oslo.'),
	);
}

export function sendingWindow(): Field<string, 'required'> {
	return field({ type: 'string', pattern: '^\\d\\d:\\d\\d-\\d\\d:\\d\\d$' }, (input) =>
		typeof input === 'string' && parseWindow(input) !== null
			? valid(input)
			: refuse('invalid', 'Enter two different times, such as 09:00-18:00.'),
	);
}
