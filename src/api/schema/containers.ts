/** Fields that contain others: DRF's ListField, DictField and JSONField. */
import type { FieldErrors } from '../errors.js';
import { findJsonFault, isRecord } from '../json.js';
import { textFaults } from './char.js';
import { type Checked, type Field, field, refuse, valid } from './field.js';
import { typeName } from './python.js';

/** Limits of a list. */
export interface ListOptions {
	/** `no` refuses []. */
	allowEmpty?: 'yes' | 'no';
	/** Items. */
	max?: number;
}

/**
 * A list; errors are keyed by index. Longer than `max` it is refused as a whole: DRF would check every item first, but
 * the answer to ten megabytes of bad items would be half a gigabyte.
 */
export function list<T>(child: Field<T>, { allowEmpty, max }: ListOptions = {}): Field<T[], 'required'> {
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

/** Limits of a dictionary. */
export interface DictOptions<T> {
	/** Checks a key and its checked value together; its errors are keyed by the key. */
	check?: (key: string, value: T) => Checked<T>;
	/** Entries. */
	max?: number;
}

/** A dictionary of its own keys, with any names: keys are texts, as values are. Errors are keyed by key. */
export function dict<T>(
	child: Field<T>,
	{ check, max }: DictOptions<T> = {},
): Field<Record<string, T>, 'required'> {
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
		// fromEntries defines own properties: a key `__proto__` is a key like any other.
		return checked.kind === 'invalid' ? checked : valid(Object.fromEntries(checked.value));
	});
}

/** Any JSON value, at most 32 levels deep, without NUL and lone surrogates. */
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
