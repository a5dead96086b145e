/** Fields of one value other than free text: DRF's BooleanField, IntegerField, UUIDField and ChoiceField. */
import type { Uuid } from '../records.js';
import { type Field, field, refuse, valid } from './field.js';
import { JsonNumber } from './number.js';
import { toText } from './python.js';
import { notAChoice, texts } from './texts.js';

const trueValues: ReadonlySet<unknown> = new Set([
	't',
	'T',
	'y',
	'Y',
	'yes',
	'Yes',
	'YES',
	'true',
	'True',
	'TRUE',
	'on',
	'On',
	'ON',
	'1',
	1,
	true,
] as const);
const falseValues: ReadonlySet<unknown> = new Set([
	'f',
	'F',
	'n',
	'N',
	'no',
	'No',
	'NO',
	'false',
	'False',
	'FALSE',
	'off',
	'Off',
	'OFF',
	'0',
	0,
	false,
] as const);

const maxIntegerText = 1000;

/** True and false, and the words that DRF accepts for them. */
export function boolean(): Field<boolean, 'required'> {
	return field({ type: 'boolean' }, (given) => {
		// To Python 1.0 is 1.
		const input = given instanceof JsonNumber ? given.toNumber() : given;
		if (trueValues.has(input)) return valid(true);
		if (falseValues.has(input)) return valid(false);
		return refuse('invalid', texts.boolean);
	});
}

/** A safe integer, or its decimal text ("12", "12.0"), not below `min`. */
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

/** Any spelling that Python's UUID accepts (hex, hyphens, braces, urn, an integer), as lower case with hyphens. */
export function uuid(): Field<Uuid, 'required'> {
	return field({ type: 'string', format: 'uuid' }, (input) => {
		const hex = uuidHex(input);
		return hex === null ? refuse('invalid', texts.uuid) : valid(hyphenated(hex));
	});
}

/** One of a few words. */
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
	// A bool is an int to Python, and UUIDField takes ints.
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
