/** One declaration gives an input's type, its check and its JSON Schema. The check reports all bad fields together. */
import { type FieldErrors, nonFieldErrors } from './errors.js';
import { isRecord } from './json.js';
import type { Field, JsonSchema, Presence } from './schema/fields.js';
import { typeName } from './schema/python.js';
import { texts } from './schema/texts.js';

export type ParseMode = 'create' | 'replace' | 'patch';

export type Parsed<T> =
	| { kind: 'valid'; value: T }
	| { kind: 'invalid'; errors: FieldErrors; good?: Partial<T> };

export type Fields = Readonly<Record<string, Field<unknown, Presence, unknown>>>;

export type ValueOf<F extends Fields> = Flat<
	{ [K in keyof F as PresenceOf<F[K]> extends 'optional' ? never : K]: TypeOf<F[K]> } & {
		[K in keyof F as PresenceOf<F[K]> extends 'optional' ? K : never]?: TypeOf<F[K]>;
	}
>;

export type GivenOf<F extends Fields> = Flat<
	{ [K in keyof F as PresenceOf<F[K]> extends 'required' ? K : never]: Given<F[K]> } & {
		[K in keyof F as PresenceOf<F[K]> extends 'required' ? never : K]?: Given<F[K]>;
	}
>;

/** The type of the input, in which keys with a default are optional. */
export type Given<S> = S extends { readonly given?: infer T } ? T : never;

/** The type of the checked value, which includes defaults. */
export type Infer<S> = S extends { readonly type?: infer T } ? T : never;

export interface FieldSet<T, G = unknown> {
	/** No value has this key. `Infer` reads its type, because `parse` has two overloads. */
	readonly type?: T;
	readonly given?: G;
	parse(body: unknown, mode: 'create' | 'replace'): Parsed<T>;
	parse(body: unknown, mode: ParseMode): Parsed<Partial<T>>;
	jsonSchema(mode?: ParseMode): JsonSchema;
}

/** Checks the valid fields (`good`) even if others are bad: one answer names all errors (api-decisions 42). */
type CrossCheck<T> = (good: Partial<T>, isMissing: (name: keyof T) => boolean) => FieldErrors;

export function fieldSet<F extends Fields>(
	fields: F,
	options: { crossCheck?: CrossCheck<ValueOf<F>> } = {},
): FieldSet<ValueOf<F>, GivenOf<F>> {
	function parse(body: unknown, mode: ParseMode): Parsed<ValueOf<F>> {
		if (!isRecord(body)) return refuseBody(body);
		const { values, errors } = checkFields(fields, body, mode);
		// Each of these values has passed the check of its field.
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
type TypeOf<F> = F extends Field<infer T, Presence, unknown> ? T : never;
type PresenceOf<F> = F extends Field<unknown, infer P, unknown> ? P : Presence;

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
		// Omit defaults, because clients would add them to the patch and overwrite stored values.
		const { default: _, ...rest } = schema;
		return rest;
	};
	return {
		type: 'object',
		properties: Object.fromEntries(entries.map(([name, field]) => [name, schemaOf(field)])),
		...(mode !== 'patch' && names.length > 0 && { required: names }),
	};
}
