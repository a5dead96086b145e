import { createHmac } from 'node:crypto';
import type { EmailKey } from '../../api/address.js';
import type { Micros } from '../../api/datetime.js';
import type { FieldErrors } from '../../api/errors.js';
import { refusal, suppressedText } from '../../api/refusals.js';
import { type NewSuppression, type SuppressionReason, suppressionReasons } from '../../api/suppressions.js';
import type { RejectedRow } from './import-rows.js';

const stoppingReasons: ReadonlySet<string> = new Set<SuppressionReason>(['COMPLAINED', 'HARDBOUNCED']);

/** Only removing the suppression by name lifts these: activating a subscriber does not. */
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

/** The strongest of the reasons that stop mail of this type; null: none of them does. */
export function stopping(
	type: 'TRANSACTIONAL' | 'BULK',
	reasons: readonly SuppressionReason[],
): SuppressionReason | null {
	return strongest(type === 'BULK' ? reasons : reasons.filter((reason) => stoppingReasons.has(reason)));
}

/**
 * Whether mail of this type may go to an address: `reasons` are the suppressions that apply, `is_active` is that of the
 * subscriber, null without one. A subscriber made inactive by hand has no suppression, but gets no bulk mail.
 */
export function isWanted(
	type: 'TRANSACTIONAL' | 'BULK',
	{ reasons, is_active }: { reasons: readonly SuppressionReason[]; is_active: boolean | null },
): boolean {
	return stopping(type, reasons) === null && (type !== 'BULK' || is_active !== false);
}

/**
 * A subscriber that is created, imported or moved to an address starts inactive where that is permanently suppressed. A
 * suppression with an end leaves the subscriber unchanged: mail skips it until then, and goes to it again afterwards.
 */
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
 * `is_active: true` clears the reason and lifts an unsubscription or a reason that has passed; a hard bounce or a
 * complaint refuses. False keeps the reason of an inactive subscriber, and gives none to others. The default of a PUT is
 * that of a creation: it lifts no suppression, which takes an explicit `is_active: true` (api-decisions 14).
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

/**
 * The scope of an unsubscription unless the person chooses: the list whose mail carried the link, or all (a setting).
 */
export type UnsubscribeScope = 'list' | 'all';

/**
 * The list of a suppression; `null`: all lists. `list_id`: that of the mail or the import it comes from, `null` where
 * there is none, or no longer.
 */
export function suppressedList(
	reason: SuppressionReason,
	list_id: number | null,
	scope: UnsubscribeScope,
): number | null {
	return mayBeOfOneList(reason) && scope === 'list' ? list_id : null;
}

/** `updated`: it ends later than it did, or not at all. */
export type Addition = 'created' | 'updated' | 'unchanged';

/**
 * Adding never weakens: the later end counts, and no end is later than any. An expired one does not count, even before
 * it is deleted. `stored`: null without a suppression.
 */
export function additionOf(
	stored: { expires_at: Micros | null } | null,
	wanted: { expires_at: Micros | null },
	now: Micros,
): Addition {
	if (stored === null || hasEnded(stored, now)) return 'created';
	if (stored.expires_at === null) return 'unchanged';
	return wanted.expires_at === null || wanted.expires_at > stored.expires_at ? 'updated' : 'unchanged';
}

export function refusalOf(row: NewSuppression, now: Micros): RejectedRow | null {
	if (!hasEnded(row, now)) return null;
	return { kind: 'rejected', code: 'expired', error: 'expires_at: This time is past.' };
}

export function hasEnded({ expires_at }: { expires_at: Micros | null }, now: Micros): boolean {
	return expires_at !== null && expires_at <= now;
}

/**
 * The hash that stays of an erased address: with the database's own key it can be recognised, without it not even
 * guessed. `secret` is base64url.
 */
export function erasedHash(secret: string, address: EmailKey): string {
	return createHmac('sha256', Buffer.from(secret, 'base64url'))
		.update('mailctl erased 1\0')
		.update(address)
		.digest('base64url');
}

/** Replaces the address in messages that were sent; nothing is ever delivered below `.invalid` (RFC 2606 s.2). */
export const erasedAddress = 'erased@erased.invalid';

export const erasedComplaint: FieldErrors = { email: [refusal('erased')] };
