import type { Micros } from '../../api/datetime.js';
import type { FieldErrors } from '../../api/errors.js';
import { refusal, suppressedText, unknownVariableText } from '../../api/refusals.js';
import { texts } from '../../api/schema/texts.js';
import { maxMetaBytes } from '../../api/subscribers.js';
import { type SuppressionReason, suppressionReasons } from '../../api/suppressions.js';
import { hasDefault, variableNames } from '../../api/variables.js';
import type { RejectedRow } from './import-rows.js';

const stoppingReasons: ReadonlySet<string> = new Set<SuppressionReason>(['COMPLAINED', 'HARDBOUNCED']);

const bindingReasons: ReadonlySet<string> = new Set<SuppressionReason>([
	'COMPLAINED',
	'HARDBOUNCED',
	'MANUAL',
]);

export interface Activation {
	is_active: boolean;
	disable_reason: string | null;
}

export function strongest(reasons: readonly SuppressionReason[]): SuppressionReason | null {
	return suppressionReasons.find((reason) => reasons.includes(reason)) ?? null;
}

export function stopping(
	type: 'TRANSACTIONAL' | 'BULK',
	reasons: readonly SuppressionReason[],
): SuppressionReason | null {
	return strongest(type === 'BULK' ? reasons : reasons.filter((reason) => stoppingReasons.has(reason)));
}

/** `is_active` is null for a person who is not a subscriber. */
export function isWanted(
	type: 'TRANSACTIONAL' | 'BULK',
	{ reasons, is_active }: { reasons: readonly SuppressionReason[]; is_active: boolean | null },
): boolean {
	return stopping(type, reasons) === null && (type !== 'BULK' || is_active !== false);
}

export function startActivation(wanted: boolean, reasons: readonly SuppressionReason[]): Activation {
	const reason = strongest(reasons);
	return reason === null
		? { is_active: wanted, disable_reason: null }
		: { is_active: false, disable_reason: reason };
}

type ActivationChange =
	| { kind: 'set'; activation: Activation; lift: readonly SuppressionReason[] }
	| { kind: 'refused'; errors: FieldErrors };

/**
 * `is_active: true` lifts the suppressions that unsubscriptions and soft bounces caused. If there is any other
 * suppression, this function refuses the change. A PUT without `is_active` lifts nothing (api-decisions 14).
 */
export function changeActivation(options: {
	stored: Activation;
	wanted: boolean | 'default' | undefined;
	isMoved: boolean;
	reasons: readonly SuppressionReason[];
	lasting: readonly SuppressionReason[];
}): ActivationChange {
	const { stored, wanted, isMoved, reasons, lasting } = options;
	if (wanted === true) return activate(reasons, lasting);
	if (wanted === 'default') return { kind: 'set', activation: startActivation(true, lasting), lift: [] };
	const inherited = isMoved ? strongest(lasting) : null;
	if (wanted === false || !stored.is_active) {
		const kept = stored.is_active ? null : stored.disable_reason;
		return { kind: 'set', activation: { is_active: false, disable_reason: kept ?? inherited }, lift: [] };
	}
	return { kind: 'set', activation: isMoved ? startActivation(true, lasting) : stored, lift: [] };
}

function activate(
	reasons: readonly SuppressionReason[],
	lasting: readonly SuppressionReason[],
): ActivationChange {
	const binding = strongest(lasting.filter((reason) => bindingReasons.has(reason)));
	if (binding === null) {
		const lift = reasons.filter((reason) => !bindingReasons.has(reason));
		return { kind: 'set', activation: { is_active: true, disable_reason: null }, lift };
	}
	const message = suppressedText(binding);
	return { kind: 'refused', errors: { is_active: [{ code: 'suppressed', message }] } };
}

const softBounceLimit = { count: 5, micros: 7 * 86_400_000_000 };

export function isSoftBounceLimit(run: { count: number; since: number }, now: number): boolean {
	return run.count >= softBounceLimit.count && now - run.since >= softBounceLimit.micros;
}

export function mayBeOfOneList(reason: SuppressionReason): boolean {
	return reason === 'UNSUBSCRIBED';
}

export type UnsubscribeScope = 'list' | 'all';

export function suppressedList(
	reason: SuppressionReason,
	list_id: number | null,
	scope: UnsubscribeScope,
): number | null {
	return mayBeOfOneList(reason) && scope === 'list' ? list_id : null;
}

export type Addition = 'created' | 'updated' | 'unchanged';

/** The later expiry counts, so adding never shortens a suppression. */
export function additionOf(
	stored: { expires_at: Micros | null } | null,
	wanted: { expires_at: Micros | null },
	now: Micros,
): Addition {
	if (stored === null || hasEnded(stored, now)) return 'created';
	if (stored.expires_at === null) return 'unchanged';
	return wanted.expires_at === null || wanted.expires_at > stored.expires_at ? 'updated' : 'unchanged';
}

export function refusalOf(row: { expires_at: Micros | null }, now: Micros): RejectedRow | null {
	if (!hasEnded(row, now)) return null;
	return { kind: 'rejected', code: 'expired', error: 'expires_at: This time is in the past.' };
}

export function hasEnded({ expires_at }: { expires_at: Micros | null }, now: Micros): boolean {
	return expires_at !== null && expires_at <= now;
}

/** Nobody can receive mail below `.invalid` (RFC 2606 s.2). */
export const erasedAddress = 'erased@erased.invalid';

export const erasedComplaint: FieldErrors = { email: [refusal('erased')] };

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

interface MetaChange {
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

/** The variables that a mail uses. Null if only the sending service knows them; that service then gets all values. */
type Used = readonly string[] | null;

/**
 * Values in meta override `email`, `name` and `email_reason`. Each submission stores the context variables once, and
 * the composer adds the links. So this function omits both.
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
	// `personVariables` omits context variables, so no key occurs twice.
	return Object.fromEntries([...pick(used, context), ...Object.entries(own)]);
}

function pick(used: Used, values: Readonly<Record<string, string>>): [string, string][] {
	return (used === null ? Object.keys(values) : variableNames(used))
		.filter((name) => Object.hasOwn(values, name))
		.map((name): [string, string] => [name, values[name] ?? '']);
}

/**
 * Folds case, for comparisons and for `includes`. `toLowerCase` alone does not suffice, because it changes Σ to ς at
 * the end of a word and to σ elsewhere.
 */
export function foldCase(text: string): string {
	if (isAscii(text)) return text.toLowerCase();
	return Array.from(text.toLowerCase().toUpperCase(), (character) => character.toLowerCase()).join('');
}

export function foldedColumn(email: string, key: string): string | null {
	const folded = foldCase(email);
	return folded === key ? null : folded;
}

function isAscii(text: string): boolean {
	for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 127) return false;
	return true;
}

export const duplicateAddress: FieldErrors = {
	email: [{ code: 'unique', message: 'Subscriber with this email already exists in this list.' }],
};

export const unverifiedSender: FieldErrors = {
	from: [refusal('not_verified')],
};

export function notUnique(field: string): FieldErrors {
	return { [field]: [{ code: 'unique', message: texts.unique }] };
}

export function noSuch(field: string, key: number | string): FieldErrors {
	const message = `Invalid pk "${key}" - object does not exist.`;
	return { [field]: [{ code: 'does_not_exist', message }] };
}
