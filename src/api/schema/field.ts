/**
 * The common parts of all fields: a check of one value, and its JSON Schema. Texts and codes are those of Django REST
 * framework 3.14, as in the service document.
 */
import type { FieldError, FieldErrors } from '../errors.js';
import { texts } from './texts.js';

/** Outcome of a check; errors of a list or a dictionary are keyed by index or key. */
export type Checked<T> =
	| { kind: 'valid'; value: T }
	| { kind: 'invalid'; errors: readonly FieldError[] | FieldErrors };

/** `required` must be given, `defaulted` becomes its default when it is not, `optional` stays absent. */
export type Presence = 'required' | 'defaulted' | 'optional';

/** A JSON Schema 2020-12 as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One value of an input. `check` is never called for an absent value and never throws. */
export interface Field<T, P extends Presence = Presence> {
	readonly presence: P;
	readonly schema: JsonSchema;
	/** Set when `presence` is `defaulted`; a fresh value each time, so that a mutable default is never shared. */
	readonly makeDefault?: () => T;
	check(input: unknown): Checked<T>;
}

/** A required field that refuses null; every kind is made here. `check` never gets null or undefined. */
export function field<T>(schema: JsonSchema, check: (input: unknown) => Checked<T>): Field<T, 'required'> {
	return {
		presence: 'required',
		schema,
		check: (input) => (input === null || input === undefined ? refuseNull() : check(input)),
	};
}

/** The field may be left out and is then absent from the value. */
export function optional<T>(inner: Field<T>): Field<T, 'optional'> {
	return { presence: 'optional', schema: inner.schema, check: inner.check };
}

/** The field may be left out and is then `makeDefault()` (but stays absent in a patch). */
export function withDefault<T>(inner: Field<T>, makeDefault: () => T): Field<T, 'defaulted'> {
	const schema = { ...inner.schema, default: makeDefault() };
	return { presence: 'defaulted', schema, makeDefault, check: inner.check };
}

/** Null is a value of its own. */
export function nullable<T, P extends Presence>(inner: Field<T, P>): Field<T | null, P> {
	return {
		...inner,
		schema: { anyOf: [inner.schema, { type: 'null' }] },
		check: (input) => (input === null ? valid(null) : inner.check(input)),
	};
}

/** A value that passed. */
export function valid<T>(value: T): Checked<T> {
	return { kind: 'valid', value };
}

/** A refusal with one error. */
export function refuse(code: string, message: string): { kind: 'invalid'; errors: readonly FieldError[] } {
	return { kind: 'invalid', errors: [{ code, message }] };
}

/** "This field may not be null." */
export function refuseNull(): { kind: 'invalid'; errors: readonly FieldError[] } {
	return refuse('null', texts.null);
}
