import type { Call } from './api.js';
import type { FieldErrors } from './errors.js';
import type { SubscriberInput } from './inputs.js';
import { isRecord, parseJson } from './json.js';
import type { Meta, MetaValue, Subscriber } from './records.js';
import * as f from './schema/fields.js';
import { JsonNumber, typeName } from './schema/python.js';
import { texts } from './schema/texts.js';
import { fieldSet } from './schema.js';

export const maxMetaBytes = 64 * 1024;

export const subscriberFields = fieldSet({
	email: f.email(),
	name: f.withDefault(f.char({ max: 255, allowBlank: true }), () => ''),
	meta: f.withDefault(meta(), (): Meta => ({})),
	is_active: f.withDefault(f.boolean(), () => true),
});

/** Accepts an object, or its JSON as a string (service document). Errors are keyed by variable. */
export function meta(): f.Field<Meta, 'required'> {
	const values = { type: ['string', 'number', 'boolean', 'null'] };
	const object = { type: 'object', additionalProperties: values };
	const schema = { anyOf: [object, { type: 'string', contentMediaType: 'application/json' }] };
	return f.field(schema, (input) => (typeof input === 'string' ? checkText(input) : checkObject(input)));
}

function checkText(text: string): f.Checked<Meta> {
	if (text.length > 8 * maxMetaBytes) return tooLarge();
	const parsed = parseJson(text, { numbers: 'exact' });
	if (parsed.kind === 'valid') return parsed.value === null ? f.refuseNull() : checkObject(parsed.value);
	return f.refuse(parsed.code === 'syntax' ? 'invalid' : parsed.code, parsed.message);
}

function checkObject(input: unknown): f.Checked<Meta> {
	if (!isRecord(input)) {
		return f.refuse('not_a_dict', `Expected a dictionary of items but got type "${typeName(input)}".`);
	}
	if (Object.keys(input).length > maxMetaBytes / 5) return tooLarge();
	const values: [string, MetaValue][] = [];
	const errors: [string, FieldErrors[string]][] = [];
	for (const [key, item] of Object.entries(input)) {
		const checked = checkValue(key, item);
		if (checked.kind === 'valid') values.push([key, checked.value]);
		else errors.push([key, checked.errors]);
	}
	if (errors.length > 0) return { kind: 'invalid', errors: Object.fromEntries(errors) };
	const value = Object.fromEntries(values);
	return Buffer.byteLength(JSON.stringify(value)) > maxMetaBytes ? tooLarge() : f.valid(value);
}

function checkValue(key: string, item: unknown): f.Checked<MetaValue> {
	const errors = (typeof item === 'string' ? [key, item] : [key]).flatMap(f.textFaults);
	if (errors.length > 0) return { kind: 'invalid', errors };
	if (item instanceof JsonNumber) {
		const value = item.toNumber();
		// The database stores numbers as doubles, so reject a number that a double would round.
		return value === null ? f.refuse('max_digits', texts.digits) : f.valid(value);
	}
	return isMetaValue(item) ? f.valid(item) : f.refuse('invalid', texts.metaValue);
}

function isMetaValue(item: unknown): item is MetaValue {
	if (typeof item === 'number') return Number.isFinite(item);
	return item === null || typeof item === 'string' || typeof item === 'boolean';
}

function tooLarge(): f.Checked<Meta> {
	return f.refuse('max_length', `Ensure this field has no more than ${maxMetaBytes} bytes.`);
}

/** The store merges the change into the stored meta, so that no writer overwrites another's change. */
export interface MetaChange {
	set: Meta;
	unset: readonly string[];
}

export interface SubscribersPlus {
	merge(
		listId: number,
		id: number,
		change: MetaChange & { patch: Partial<Omit<SubscriberInput, 'meta'>> },
		call?: Call,
	): Promise<Subscriber>;
	/** Atomic. A repeated call changes nothing. */
	add(
		listId: number,
		subscriber: SubscriberInput,
		options: { if_exists: 'skip' | 'update' },
		call?: Call,
	): Promise<Subscriber>;
	clear(listId: number, call?: Call): Promise<number>;
}
