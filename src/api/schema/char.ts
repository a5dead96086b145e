/** Text fields: DRF's CharField and the fields derived from it (EmailField, URLField, a validated pattern). */
import { isEmailAddress, maxAddressLength } from '../address.js';
import type { FieldError } from '../errors.js';
import { type Checked, type Field, field, type JsonSchema, refuse, valid } from './field.js';
import { JsonNumber } from './number.js';
import { countCodePoints, findLoneSurrogate, trimWhitespace } from './python.js';
import { texts } from './texts.js';
import { isWebUrl, maxUrlLength } from './url.js';

/** The error of a text, or null. */
export type TextRule = (value: string) => FieldError | null;

/** Limits of a text; absent = none. */
export interface CharOptions {
	/** Code points. */
	max?: number;
	/** Octets of UTF-8, where a limit is about size. */
	maxBytes?: number;
	allowBlank?: boolean;
	/** `off` keeps white space at both ends; DRF trims. */
	trim?: 'on' | 'off';
	/** The error for a value that is not a text; derived kinds have their own. */
	invalid?: string;
	rules?: readonly TextRule[];
	schema?: JsonSchema;
}

/**
 * A text. Finite numbers become text as in DRF's CharField, digit for digit; booleans and containers do not. All errors
 * of a text are reported: too long and NUL are two.
 */
export function char(options: CharOptions = {}): Field<string, 'required'> {
	const rules = [...limits(options), nullCharacters, surrogates, ...(options.rules ?? [])];
	return field(charSchema(options), (input) => checkText(input, options, rules));
}

/** An address that Django's EmailValidator accepts, at most 254 characters. */
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

/** An http or https URL that Django's URLValidator accepts, at most 2048 characters. */
export function url(): Field<string, 'required'> {
	const message = texts.url;
	return char({
		max: maxUrlLength,
		invalid: message,
		rules: [(value) => (isWebUrl(value) ? null : { code: 'invalid', message })],
		schema: { format: 'uri' },
	});
}

/** A text that matches `regex` (a CharField with a RegexValidator); anchors are the caller's. */
export function pattern(regex: RegExp, options: CharOptions = {}): Field<string, 'required'> {
	const message = 'This value does not match the required pattern.';
	const matches: TextRule = (value) => (regex.test(value) ? null : { code: 'invalid', message });
	return char({
		...options,
		rules: [matches, ...(options.rules ?? [])],
		schema: { pattern: regex.source, ...options.schema },
	});
}

/** "Null characters are not allowed." */
export const nullCharacters: TextRule = (value) =>
	value.includes('\0') ? { code: 'null_characters_not_allowed', message: texts.nullCharacters } : null;

/** Half a surrogate pair is no text: it cannot be written as UTF-8. */
export const surrogates: TextRule = (value) => {
	const lone = findLoneSurrogate(value);
	if (lone === null) return null;
	const message = `Surrogate characters are not allowed: U+${lone.toString(16).toUpperCase()}.`;
	return { code: 'surrogate_characters_not_allowed', message };
};

/** Errors that prevent storing a text of any kind: NUL and half surrogate pairs. */
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
