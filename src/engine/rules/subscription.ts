import { createHmac } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { FieldErrors } from '../../api/errors.js';
import { refusal, suppressedText } from '../../api/refusals.js';
import { type SuppressionReason, suppressionReasons } from '../../api/suppressions.js';
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

/** `is_active` null: not a subscriber. One made inactive by hand has no suppression, but gets no bulk mail. */
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
 * `is_active: true` lifts an unsubscription; a hard bounce or a complaint refuses it. The default of a PUT is that of
 * a creation, and lifts nothing (api-decisions 14).
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

/** Adding never weakens: the later end counts, and no end is later than any. */
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
	return { kind: 'rejected', code: 'expired', error: 'expires_at: This time is past.' };
}

export function hasEnded({ expires_at }: { expires_at: Micros | null }, now: Micros): boolean {
	return expires_at !== null && expires_at <= now;
}

/** The database's key recognises the address; without the key it cannot be guessed. */
export function erasedHash(secret: string, address: EmailKey): string {
	return createHmac('sha256', Buffer.from(secret, 'base64url'))
		.update('mailctl erased 1\0')
		.update(address)
		.digest('base64url');
}

/** Nothing is delivered below `.invalid` (RFC 2606 s.2). */
export const erasedAddress = 'erased@erased.invalid';

export const erasedComplaint: FieldErrors = { email: [refusal('erased')] };
