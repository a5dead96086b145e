import type { Micros } from '../api/datetime.js';
import type { DeliveryState } from '../api/deliveries.js';
import type { Uuid } from '../api/records.js';

export interface DeliveryFence {
	delivery: Uuid;
	fence: number;
}

export interface LeasedDelivery extends DeliveryFence {
	webhook_id: number;
	url: string;
	credentials: { login: string; password: string } | null;
	payload: string;
	attempts: number;
}

export interface LeaseDeliveries {
	/** `host:pid:…`, unique. */
	owner: string;
	now: Micros;
	until: Micros;
	max: number;
	each: number;
	shares: readonly { webhook_id: number; max: number }[];
}

export interface DeliveryLease {
	deliveries: LeasedDelivery[];
	secrets: string[];
}

/** `status` null: no answer came, and `error` says why. */
export interface DeliveryAnswer {
	status: number | null;
	error: string | null;
	answer: string | null;
	duration_ms: number;
}

export type DeliveryResult =
	| { kind: 'delivered' | 'failed'; answer: DeliveryAnswer }
	/** Failed, and its webhook is stopped. A delivery to another `url` than the webhook has by now is due again. */
	| { kind: 'gone'; answer: DeliveryAnswer; url: string }
	| { kind: 'again'; answer: DeliveryAnswer; due_at: Micros }
	| { kind: 'released' };

export interface DeliverySettlement extends DeliveryFence {
	at: Micros;
	result: DeliveryResult;
}

/** `moved`: `gone` came from a URL that the webhook no longer has. */
export type DeliverySettled = 'recorded' | 'moved' | 'lost_lease';

export interface ReplayDeliveries {
	webhook_id: number;
	deliveries: readonly Uuid[] | null;
	failed: boolean;
	since: Micros | null;
	after: number;
	limit: number;
	now: Micros;
}

export type Replayed =
	| { kind: 'replayed'; count: number; last: number | null }
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
	/** Expired leases are due again. Each webhook gets its share. */
	leaseDeliveries(c: LeaseDeliveries): Promise<DeliveryLease>;
	settleDeliveries(c: { settlements: readonly DeliverySettlement[] }): Promise<DeliverySettled[]>;
	replayDeliveries(c: ReplayDeliveries): Promise<Replayed>;
	ensureWebhookSecret(c: { fresh: { id: number; secret: string }; now: Micros }): Promise<StoredSecret[]>;
	rotateWebhookSecret(c: {
		fresh: { id: number; secret: string };
		now: Micros;
		retire_at: Micros;
	}): Promise<StoredSecret[]>;
}
