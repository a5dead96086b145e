import { isRecord } from '../json.js';
import type { Infer } from '../schema.js';
import type { JsonSchema } from './fields.js';

/** `optional` may be absent. `newer` is absent only in answers of older servers. */
type Presence = 'present' | 'optional' | 'newer';

export interface Shape<T, P extends Presence = Presence> {
	readonly type?: T;
	readonly presence: P;
	/** Builds the schema on demand, because most commands need none, and building all 300 takes 3 ms. */
	readonly schema: () => JsonSchema;
	readonly kind: string;
	is(value: unknown): boolean;
	/** Returns the first needed key that the value lacks. */
	missing(value: unknown): Missing | null;
	readonly isNeeded?: true;
}

export interface Missing {
	path: string;
	kind: string;
}

type Keys = Readonly<Record<string, Shape<unknown>>>;
type Absent<K extends Keys> = {
	[N in keyof K]: K[N] extends Shape<unknown, 'present'> ? never : N;
}[keyof K];
type Flat<T> = { [N in keyof T]: T[N] } & {};
export type RecordOf<K extends Keys> = Flat<
	{ -readonly [N in keyof K as N extends Absent<K> ? never : N]: Infer<K[N]> } & {
		-readonly [N in keyof K as N extends Absent<K> ? N : never]?: Infer<K[N]>;
	}
>;

export interface RecordShape<K extends Keys> extends Shape<RecordOf<K>, 'present'> {
	readonly keys: K;
}

function shape<T>(
	schema: () => JsonSchema,
	kind: string,
	is: (value: unknown) => boolean,
	missing: Shape<T>['missing'] = () => null,
): Shape<T, 'present'> {
	return { presence: 'present', schema, kind, is, missing };
}

/** Accepts keys that are not declared, without checking them. */
export function record<const K extends Keys>(keys: K): RecordShape<K> {
	const schema = () => ({
		type: 'object',
		properties: Object.fromEntries(Object.entries(keys).map(([name, inner]) => [name, inner.schema()])),
		required: Object.keys(keys).filter((name) => keys[name]?.presence !== 'optional'),
	});
	const missing = (value: unknown) => {
		if (!isRecord(value)) return null;
		for (const [name, inner] of Object.entries(keys)) {
			if (!inner.isNeeded || (value[name] === undefined && inner.presence === 'optional')) continue;
			const found = missingAt(name, inner, value[name]);
			if (found !== null) return found;
		}
		return null;
	};
	return { ...shape(schema, 'an object', isRecord, missing), keys };
}

export const components = new Map<string, () => JsonSchema>();

export function named<const N extends string, S extends Shape<unknown>>(name: N, inner: S): S & { name: N } {
	components.set(name, inner.schema);
	return { ...inner, name, schema: () => ({ $ref: `#/components/schemas/${name}` }) };
}

export function component<const N extends string, const K extends Keys>(name: N, keys: K) {
	return named(name, record(keys));
}

export function listOf<T>(item: Shape<T>): Shape<T[], 'present'> {
	const schema = () => ({ type: 'array', items: item.schema() });
	return shape(schema, 'a list', Array.isArray, (value) => {
		if (!Array.isArray(value)) return null;
		for (const [index, one] of value.entries()) {
			const found = missingAt(index, item, one);
			if (found !== null) return found;
		}
		return null;
	});
}

function missingAt(key: string | number, of: Shape<unknown>, value: unknown): Missing | null {
	if (!of.is(value)) return { path: String(key), kind: of.kind };
	const within = of.missing(value);
	return within && { path: `${key}.${within.path}`, kind: within.kind };
}

/** Service document, "Paginated list envelope". */
export function pageOf(item: Shape<unknown>, more: Keys = {}): Shape<unknown, 'present'> {
	const link = described(orNull(text), { format: 'uri' });
	const besides = Object.fromEntries(Object.entries(more).map(([name, one]) => [name, optional(one)]));
	const results = needed(listOf(item));
	return record({ count: needed(count), next: needed(link), previous: link, results, ...besides });
}

export function sliceOf<T, C>(item: Shape<T>, cursor: Shape<C>) {
	return record({ results: needed(listOf(item)), next: needed(orNull(cursor)) });
}

/** Makes a client reject an answer that lacks this key, or a needed key inside its value. */
export function needed<S extends Shape<unknown>>(inner: S): S & { isNeeded: true } {
	return { ...inner, isNeeded: true };
}

export function optional<T>(inner: Shape<T>): Shape<T, 'optional'> {
	return { ...inner, presence: 'optional' };
}

export function newer<T>(inner: Shape<T>): Shape<T, 'newer'> {
	return { ...inner, presence: 'newer' };
}

export function orNull<T>(inner: Shape<T>): Shape<T | null, 'present'> {
	const schema = () => {
		const { type, enum: words, ...rest } = inner.schema() as { type?: string; enum?: readonly unknown[] };
		return type === undefined
			? { anyOf: [inner.schema(), { type: 'null' }] }
			: { type: [type, 'null'], ...rest, ...(words !== undefined && { enum: [...words, null] }) };
	};
	return shape(
		schema,
		`${inner.kind} or null`,
		(value) => value === null || inner.is(value),
		(value) => (value === null ? null : inner.missing(value)),
	);
}

export function typed<T>(inner: Shape<unknown>): Shape<T, 'present'> {
	return { ...inner, presence: 'present' } as Shape<T, 'present'>; // `type` is never set
}

export function described<T>(inner: Shape<T>, more: JsonSchema): Shape<T, 'present'> {
	return { ...inner, presence: 'present', schema: () => ({ ...inner.schema(), ...more }) };
}

const isText = (value: unknown) => typeof value === 'string';

export const text = shape<string>(() => ({ type: 'string' }), 'a text', isText);
export const flag = shape<boolean>(
	() => ({ type: 'boolean' }),
	'true or false',
	(value) => typeof value === 'boolean',
);
export const number = shape<number>(
	() => ({ type: 'number' }),
	'a number',
	(value) => typeof value === 'number',
);
export const integer = shape<number>(() => ({ type: 'integer' }), 'an integer', Number.isSafeInteger);
export const id = described(integer, { minimum: 1 });
export const count = shape<number>(
	() => ({ type: 'integer', minimum: 0 }),
	'a count',
	(value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0,
);
export const uuid = described(text, { format: 'uuid' });
export const email = described(text, { format: 'email' });
export const moment = described(text, {
	description: 'In UTC, written without a zone, with six fractional digits.',
	pattern: String.raw`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}$`,
});
export const day = described(text, { format: 'date' });

export const array = shape<unknown[]>(() => ({ type: 'array' }), 'a list', Array.isArray);

/** Documents the known words. A client accepts other words too. */
export function word<const W extends string>(words: readonly W[]): Shape<W, 'present'> {
	return shape(() => ({ type: 'string', enum: [...words] }), 'a text', isText);
}

export function dictOf<T>(value: Shape<T>): Shape<Record<string, T>, 'present'> {
	return shape(() => ({ type: 'object', additionalProperties: value.schema() }), 'an object', isRecord);
}

export function object<T>(schema: JsonSchema): Shape<T, 'present'> {
	return shape(() => ({ type: 'object', ...schema }), 'an object', isRecord);
}
