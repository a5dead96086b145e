/**
 * An input declared once: its TypeScript type, its check with Django REST framework's texts, its JSON Schema. A field
 * set ignores unknown keys, reads own keys only and names every bad field at once.
 */
import { type FieldErrors, nonFieldErrors } from './errors.js';
import { isRecord } from './json.js';
import type { Field, JsonSchema, Presence } from './schema/fields.js';
import { typeName } from './schema/python.js';
import { texts } from './schema/texts.js';

/** `create` and `replace` require the required fields and fill in defaults; `patch` takes only given ones. */
export type ParseMode = 'create' | 'replace' | 'patch';

export type Parsed<T> =
	| { kind: 'valid'; value: T }
	| { kind: 'invalid'; errors: FieldErrors; good?: Partial<T> };

export type Fields = Readonly<Record<string, Field<unknown>>>;

export type ValueOf<F extends Fields> = Flat<
	{ [K in keyof F as PresenceOf<F[K]> extends 'optional' ? never : K]: TypeOf<F[K]> } & {
		[K in keyof F as PresenceOf<F[K]> extends 'optional' ? K : never]?: TypeOf<F[K]>;
	}
>;

/** What a caller gives: defaulted fields may be absent too. */
type GivenOf<F extends Fields> = Flat<
	{ [K in keyof F as PresenceOf<F[K]> extends 'required' ? K : never]: TypeOf<F[K]> } & {
		[K in keyof F as PresenceOf<F[K]> extends 'required' ? never : K]?: TypeOf<F[K]>;
	}
>;

export type Given<S> = S extends { readonly given?: infer T } ? T : never;

export type Infer<S> = S extends { readonly type?: infer T } ? T : never;

export interface FieldSet<T, G = unknown> {
	/** Only for `Infer`, never set: inference uses only one overload of `parse`. */
	readonly type?: T;
	readonly given?: G;
	parse(body: unknown, mode: 'create' | 'replace'): Parsed<T>;
	parse(body: unknown, mode: ParseMode): Parsed<Partial<T>>;
	/** JSON Schema 2020-12 of the body; in a patch nothing is required. */
	jsonSchema(mode?: ParseMode): JsonSchema;
}

/**
 * Checks several fields together; `good` are the values of those that are valid by themselves. Every bad field is named at
 * once (api-decisions 42), where DRF would call its `validate` only once each of them is valid.
 */
type CrossCheck<T> = (good: Partial<T>, isMissing: (name: keyof T) => boolean) => FieldErrors;

/** `crossCheck` is not called for a patch. */
export function fieldSet<F extends Fields>(
	fields: F,
	options: { crossCheck?: CrossCheck<ValueOf<F>> } = {},
): FieldSet<ValueOf<F>, GivenOf<F>> {
	function parse(body: unknown, mode: ParseMode): Parsed<ValueOf<F>> {
		if (!isRecord(body)) return refuseBody(body);
		const { values, errors } = checkFields(fields, body, mode);
		// Each entry was checked by the field of its name; only the mapped type cannot follow that.
		const value = Object.fromEntries(values) as ValueOf<F>;
		const isMissing = (name: keyof ValueOf<F>) => !(name in value || name in errors);
		const together = mode === 'patch' ? {} : options.crossCheck?.(value, isMissing);
		const all = { ...errors, ...together, ...errors };
		return Object.keys(all).length === 0
			? { kind: 'valid', value }
			: { kind: 'invalid', errors: all, good: value };
	}
	return { parse, jsonSchema: (mode = 'create') => describe(fields, mode) };
}

type Flat<T> = { -readonly [K in keyof T]: T[K] } & {};
type TypeOf<F> = F extends Field<infer T> ? T : never;
type PresenceOf<F> = F extends Field<unknown, infer P> ? P : Presence;

function checkFields(
	fields: Fields,
	body: Readonly<Record<string, unknown>>,
	mode: ParseMode,
): { values: [string, unknown][]; errors: FieldErrors } {
	const values: [string, unknown][] = [];
	const errors: FieldErrors = {};
	for (const [name, field] of Object.entries(fields)) {
		const input = Object.hasOwn(body, name) ? body[name] : undefined;
		if (input === undefined) {
			if (mode === 'patch') continue;
			if (field.makeDefault) values.push([name, field.makeDefault()]);
			else if (field.presence === 'required') errors[name] = [required];
			continue;
		}
		const checked = field.check(input);
		if (checked.kind === 'valid') values.push([name, checked.value]);
		else errors[name] = checked.errors;
	}
	return { values, errors };
}

export const required = { code: 'required', message: texts.required } as const;

function refuseBody(body: unknown): { kind: 'invalid'; errors: FieldErrors } {
	// DRF has a text of its own for null as the whole body.
	const error =
		body === null || body === undefined
			? { code: 'null', message: 'No data provided' }
			: { code: 'invalid', message: `Invalid data. Expected a dictionary, but got ${typeName(body)}.` };
	return { kind: 'invalid', errors: { [nonFieldErrors]: [error] } };
}

function describe(fields: Fields, mode: ParseMode): JsonSchema {
	const entries = Object.entries(fields);
	const names = entries.filter(([, field]) => field.presence === 'required').map(([name]) => name);
	const schemaOf = ({ schema }: Fields[string]): JsonSchema => {
		if (mode !== 'patch') return schema;
		// What is not named stays: a client that fills a default in would change it.
		const { default: _, ...rest } = schema;
		return rest;
	};
	return {
		type: 'object',
		properties: Object.fromEntries(entries.map(([name, field]) => [name, schemaOf(field)])),
		...(mode !== 'patch' && names.length > 0 && { required: names }),
	};
}
