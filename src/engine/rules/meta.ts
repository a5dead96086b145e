/** What a subscriber's meta may hold, and how it becomes the variables of a message. */
import type { FieldErrors } from '../../api/errors.js';
import { maxMetaBytes } from '../../api/subscribers.js';

/** Complaints about keys that no field defines, and about size; null when there are none. */
export function checkMeta(
	meta: Readonly<Record<string, unknown>>,
	known: ReadonlySet<string>,
): FieldErrors | null {
	const unknown = Object.keys(meta).filter((key) => !known.has(key));
	if (unknown.length > 0) {
		return {
			meta: unknown.map((key) => ({ code: 'unknown_variable', message: `Unknown variable: ${key}.` })),
		};
	}
	if (Buffer.byteLength(JSON.stringify(meta)) <= maxMetaBytes) return null;
	return {
		meta: [{ code: 'max_length', message: `Ensure this field has no more than ${maxMetaBytes} bytes.` }],
	};
}

export interface MetaChange {
	/** Replaces everything first. */
	meta?: Readonly<Record<string, unknown>>;
	merge_meta?: Readonly<Record<string, unknown>>;
	unset_meta?: readonly string[];
}

/** The meta after a change. Entries, never assignments: a key may be called `__proto__`. */
export function changeMeta(
	stored: Readonly<Record<string, unknown>>,
	{ meta, merge_meta = {}, unset_meta = [] }: MetaChange,
): Record<string, unknown> {
	const entries = new Map(Object.entries(meta ?? stored));
	for (const [key, value] of Object.entries(merge_meta)) entries.set(key, value);
	for (const key of unset_meta) entries.delete(key);
	return Object.fromEntries(entries);
}

/** A meta value as it stands in a text; null when there is nothing to show. */
export function metaText(value: unknown): string | null {
	if (value === null || value === undefined) return null;
	return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

export interface Person {
	email: string;
	name: string;
	email_reason: string;
	meta: Readonly<Record<string, unknown>>;
}

const lateBuiltIns: ReadonlySet<string> = new Set(['unsubscribe_url', 'view_url']);

/**
 * The values of the used variables that are a person's own: meta over `email`, `name`, `email_reason`. What the
 * context holds is left out, because it is kept once for all; links are made when the message is.
 */
export function personVariables(
	person: Person,
	used: readonly string[],
	context: Readonly<Record<string, string>>,
): Record<string, string> {
	const builtIns = new Map([
		['email', person.email],
		['name', person.name],
		['email_reason', person.email_reason],
	]);
	const meta = new Map(Object.entries(person.meta));
	return Object.fromEntries(
		used
			.filter((name) => !Object.hasOwn(context, name) && !lateBuiltIns.has(name))
			.flatMap((name): [string, string][] => {
				const value = metaText(meta.get(name)) ?? builtIns.get(name);
				return value === undefined ? [] : [[name, value]];
			}),
	);
}

/** The used variables that have a value nowhere. */
export function missingVariables(
	own: Readonly<Record<string, string>>,
	used: readonly string[],
	context: Readonly<Record<string, string>>,
): string[] {
	return used.filter(
		(name) => !Object.hasOwn(context, name) && !Object.hasOwn(own, name) && !lateBuiltIns.has(name),
	);
}

/** A recipient's own context over what is known of the person; used variables only. */
export function overlayVariables(
	known: Readonly<Record<string, string>>,
	used: readonly string[],
	given: Readonly<Record<string, string>>,
): Record<string, string> {
	return Object.fromEntries([...Object.entries(known), ...pick(used, given)]);
}

/** What a worker needs: a message's own variables over the context of all, used ones only. */
export function joinVariables(
	own: Readonly<Record<string, string>>,
	used: readonly string[],
	context: Readonly<Record<string, string>>,
): Record<string, string> {
	// A person's meta never stands against the context: personVariables left out what the context holds.
	return Object.fromEntries([...pick(used, context), ...Object.entries(own)]);
}

function pick(used: readonly string[], values: Readonly<Record<string, string>>): [string, string][] {
	return used
		.filter((name) => Object.hasOwn(values, name))
		.map((name): [string, string] => [name, values[name] ?? '']);
}
