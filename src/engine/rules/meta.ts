import type { FieldErrors } from '../../api/errors.js';
import { unknownVariableText } from '../../api/refusals.js';
import { maxMetaBytes } from '../../api/subscribers.js';
import { hasDefault, variableNames } from '../../api/variables.js';

export function checkMeta(
	meta: Readonly<Record<string, unknown>>,
	known: ReadonlySet<string>,
): FieldErrors | null {
	const unknown = Object.keys(meta).filter((key) => !known.has(key));
	if (unknown.length > 0) {
		return {
			meta: unknown.map((key) => ({ code: 'unknown_variable', message: unknownVariableText(key) })),
		};
	}
	if (Buffer.byteLength(JSON.stringify(meta)) <= maxMetaBytes) return null;
	return {
		meta: [{ code: 'max_length', message: `Ensure this field has no more than ${maxMetaBytes} bytes.` }],
	};
}

export interface MetaChange {
	meta?: Readonly<Record<string, unknown>>;
	merge_meta?: Readonly<Record<string, unknown>>;
	unset_meta?: readonly string[];
}

export function changeMeta(
	stored: Readonly<Record<string, unknown>>,
	{ meta, merge_meta = {}, unset_meta = [] }: MetaChange,
): Record<string, unknown> {
	const entries = new Map(Object.entries(meta ?? stored));
	for (const [key, value] of Object.entries(merge_meta)) entries.set(key, value);
	for (const key of unset_meta) entries.delete(key);
	return Object.fromEntries(entries);
}

export function metaText(value: unknown): string | null {
	if (value === null || value === undefined) return null;
	return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

export interface Person {
	email: string;
	name: string | null;
	email_reason: string | null;
	meta: Readonly<Record<string, unknown>>;
}

const lateBuiltIns: ReadonlySet<string> = new Set(['unsubscribe_url', 'view_url']);

/** Null: only the service that makes the messages knows them, and gets all values. */
type Used = readonly string[] | null;

/**
 * Meta comes over `email`, `name` and `email_reason`. Variables of the context are kept once for all, and links are
 * made with the message.
 */
export function personVariables(
	person: Person,
	used: Used,
	context: Readonly<Record<string, string>>,
): Record<string, string> {
	const { meta } = person;
	const names = used === null ? ['name', 'email_reason', ...Object.keys(meta)] : variableNames(used);
	const values: [string, string][] = [];
	for (const name of names) {
		if (Object.hasOwn(context, name) || lateBuiltIns.has(name)) continue;
		const value = (Object.hasOwn(meta, name) ? metaText(meta[name]) : null) ?? builtIn(person, name);
		if (value !== null) values.push([name, value]);
	}
	return Object.fromEntries(values);
}

function builtIn(person: Person, name: string): string | null {
	return name === 'email' || name === 'name' || name === 'email_reason' ? person[name] : null;
}

export function missingVariables(
	own: Readonly<Record<string, string>>,
	used: Used,
	context: Readonly<Record<string, string>>,
): string[] {
	return (used ?? []).filter(
		(name) =>
			!hasDefault(name) &&
			!Object.hasOwn(context, name) &&
			!Object.hasOwn(own, name) &&
			!lateBuiltIns.has(name),
	);
}

export function overlayVariables(
	known: Readonly<Record<string, string>>,
	used: Used,
	given: Readonly<Record<string, string>>,
): Record<string, string> {
	const own = pick(used, given);
	return own.length === 0 ? { ...known } : Object.fromEntries([...Object.entries(known), ...own]);
}

export function joinVariables(
	own: Readonly<Record<string, string>>,
	used: Used,
	context: Readonly<Record<string, string>>,
): Record<string, string> {
	// personVariables left out the variables of the context, so they never collide.
	return Object.fromEntries([...pick(used, context), ...Object.entries(own)]);
}

function pick(used: Used, values: Readonly<Record<string, string>>): [string, string][] {
	return (used === null ? Object.keys(values) : variableNames(used))
		.filter((name) => Object.hasOwn(values, name))
		.map((name): [string, string] => [name, values[name] ?? '']);
}
