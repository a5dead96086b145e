import type { Micros } from '../api/datetime.js';
import type { DeliveryState } from '../api/deliveries.js';
import type { Uuid } from '../api/records.js';

/** Names one lease of one delivery: a settle with an older fence is `lost_lease`. */
export interface DeliveryFence {
	delivery: Uuid;
	fence: number;
}

export interface LeasedDelivery extends DeliveryFence {
	webhook_id: number;
	url: string;
	credentials: { login: string; password: string } | null;
	payload: string;
	/** Attempts before this lease, since the delivery was created or last replayed. */
	attempts: number;
}

export interface LeaseDeliveries {
	/** `host:pid:…`, unique, as for messages. */
	owner: string;
	now: Micros;
	until: Micros;
	max: number;
	each: number;
	shares: readonly { webhook_id: number; max: number }[];
}

/** Due deliveries, and the secrets that sign them: base64url, newest first. */
export interface DeliveryLease {
	deliveries: LeasedDelivery[];
	secrets: string[];
}

/** The result of a call; `status` null: there was no answer, and `error` says why. */
export interface DeliveryAnswer {
	status: number | null;
	error: string | null;
	/** At most 64 KiB. */
	answer: string | null;
	duration_ms: number;
}

export type DeliveryResult =
	| { kind: 'delivered' | 'failed'; answer: DeliveryAnswer }
	/**
	 * Failed, and its webhook is stopped. `url`: the URL that was called; where the webhook has another one by now, the
	 * delivery goes there at once.
	 */
	| { kind: 'gone'; answer: DeliveryAnswer; url: string }
	| { kind: 'again'; answer: DeliveryAnswer; due_at: Micros }
	| { kind: 'released' };

export interface DeliverySettlement extends DeliveryFence {
	at: Micros;
	result: DeliveryResult;
}

/** `lost_lease`: nothing was changed. `moved`: by a `gone` of a URL that the webhook no longer has. */
export type DeliverySettled = 'recorded' | 'moved' | 'lost_lease';

/** Selects deliveries for a replay: final ones, and waiting ones where they are named. */
export interface ReplayDeliveries {
	webhook_id: number;
	deliveries: readonly Uuid[] | null;
	failed: boolean;
	since: Micros | null;
	after: number;
	limit: number;
	now: Micros;
}

/** `last`: where the next slice begins; null after the last one. */
export type Replayed =
	| { kind: 'replayed'; count: number; last: number | null }
	/** The first that does not exist, or is being sent at this moment; nothing was changed. */
	| { kind: 'refused'; delivery: Uuid; why: 'unknown' | 'sending' };

export interface DeliveryConditions {
	webhook_id: number;
	state: DeliveryState | null;
	since: Micros | null;
}

export interface StoredSecret {
	id: number;
	secret: string;
	created_at: Micros;
	retires_at: Micros | null;
}

export interface NotificationWrites {
	/** Takes due deliveries, each webhook's share; deliveries with expired leases are due again. */
	leaseDeliveries(c: LeaseDeliveries): Promise<DeliveryLease>;
	settleDeliveries(c: { settlements: readonly DeliverySettlement[] }): Promise<DeliverySettled[]>;
	/** Replays at most `limit` deliveries a call, unless they are named. */
	replayDeliveries(c: ReplayDeliveries): Promise<Replayed>;
	/** The current secrets, newest first; `fresh` becomes the first where there is none. */
	ensureWebhookSecret(c: { fresh: { id: number; secret: string }; now: Micros }): Promise<StoredSecret[]>;
	/** `fresh` becomes the newest; the previous one signs until `retire_at`, older ones no more. */
	rotateWebhookSecret(c: {
		fresh: { id: number; secret: string };
		now: Micros;
		retire_at: Micros;
	}): Promise<StoredSecret[]>;
}
