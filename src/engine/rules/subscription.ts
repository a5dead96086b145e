/** Who gets mail: activation, reasons, suppressions of an address, and what lifts them. */
import type { FieldErrors } from '../../api/errors.js';
import { type SuppressionReason, suppressionReasons } from '../../api/suppressions.js';

/** These stop transactional mail too. */
const stoppingReasons: ReadonlySet<string> = new Set<SuppressionReason>(['COMPLAINED', 'HARDBOUNCED']);

/** Only somebody who looks after suppressions by name lifts these: activating a subscriber does not. */
const bindingReasons: ReadonlySet<string> = new Set<SuppressionReason>([
	'COMPLAINED',
	'HARDBOUNCED',
	'MANUAL',
]);

export interface Activation {
	is_active: boolean;
	disable_reason: string | null;
}

/** The reason a new subscriber of a suppressed address starts with: the strongest. */
export function strongest(reasons: readonly SuppressionReason[]): SuppressionReason | null {
	return suppressionReasons.find((reason) => reasons.includes(reason)) ?? null;
}

/** Whether mail of this type may go to an address with these suppressions. */
export function mayReceive(type: 'TRANSACTIONAL' | 'BULK', reasons: readonly SuppressionReason[]): boolean {
	return type === 'BULK' ? reasons.length === 0 : !reasons.some((reason) => stoppingReasons.has(reason));
}

/**
 * A subscriber that is created, imported or moved to an address starts inactive where that is suppressed for good. A
 * suppression with an end leaves him as he is: mail passes him over while it stands, and goes to him again after it.
 */
export function startActivation(wanted: boolean, reasons: readonly SuppressionReason[]): Activation {
	const reason = strongest(reasons);
	return reason === null
		? { is_active: wanted, disable_reason: null }
		: { is_active: false, disable_reason: reason };
}

export type ActivationChange =
	| { kind: 'set'; activation: Activation; lift: readonly SuppressionReason[] }
	| { kind: 'refused'; errors: FieldErrors };

/**
 * `is_active: true` clears the reason and lifts what the person asked for or what went away by itself; a hard bounce
 * or a complaint refuses. False keeps the reason of somebody inactive already, and gives none to anybody else.
 */
export function changeActivation(options: {
	stored: Activation;
	wanted: boolean | undefined;
	/** The address becomes another one. */
	isMoved: boolean;
	/** Suppressions that stand against the address after the change. */
	reasons: readonly SuppressionReason[];
	/** Those of them that have no end. */
	lasting: readonly SuppressionReason[];
}): ActivationChange {
	const { stored, wanted, isMoved, reasons, lasting } = options;
	if (wanted === true) return activate(reasons, lasting);
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
	const message = `This address is suppressed (${binding}); it stays inactive until the suppression is removed.`;
	return { kind: 'refused', errors: { is_active: [{ code: 'suppressed', message }] } };
}

/** Soft bounces in a row that disable a subscriber, and over how long at least. */
const softBounceLimit = { count: 5, micros: 7 * 86_400_000_000 };

/** Whether a run of soft bounces has become a reason to stop. */
export function isSoftBounceLimit(run: { count: number; since: number }, now: number): boolean {
	return run.count >= softBounceLimit.count && now - run.since >= softBounceLimit.micros;
}
