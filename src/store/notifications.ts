/** Notifications on their way to their targets: leased by a sender, called outside any transaction, settled. */

import type { Micros } from '../api/datetime.js';
import type { DeliveryState } from '../api/deliveries.js';
import type { Uuid } from '../api/records.js';

/** Names one lease of one delivery: a settle with an older fence is `lost_lease`. */
export interface DeliveryFence {
	delivery: Uuid;
	fence: number;
}

/** A delivery as its sender sees it. */
export interface LeasedDelivery extends DeliveryFence {
	webhook_id: number;
	url: string;
	credentials: { login: string; password: string } | null;
	payload: string;
	/** Made before this lease, since it was made or replayed last. */
	attempts: number;
}

/** Who leases how much. */
export interface LeaseDeliveries {
	/** `host:pid:…`, unique, as for messages. */
	owner: string;
	now: Micros;
	until: Micros;
	/** In all. */
	max: number;
	/** Of one webhook. */
	each: number;
	/** Webhooks that get another share than `each`. */
	shares: readonly { webhook_id: number; max: number }[];
}

/** What is due, and the secrets that sign it: base64url, newest first. */
export interface DeliveryLease {
	deliveries: LeasedDelivery[];
	secrets: string[];
}

/** How a call went; `status` null: there was no answer, and `error` says why. */
export interface DeliveryAnswer {
	status: number | null;
	error: string | null;
	/** At most 64 KiB. */
	answer: string | null;
	duration_ms: number;
}

/** What a call means for its delivery. */
export type DeliveryResult =
	| { kind: 'delivered' | 'failed'; answer: DeliveryAnswer }
	/** Failed, and its webhook is stopped. `url`: that said so; one that leads elsewhere by now goes on there at once. */
	| { kind: 'gone'; answer: DeliveryAnswer; url: string }
	| { kind: 'again'; answer: DeliveryAnswer; due_at: Micros }
	/** It was not called at all. */
	| { kind: 'released' };

export interface DeliverySettlement extends DeliveryFence {
	at: Micros;
	result: DeliveryResult;
}

/** `lost_lease`: nothing was changed. `moved`: by a `gone` of a URL that the webhook has no more. */
export type DeliverySettled = 'recorded' | 'moved' | 'lost_lease';

/** Which deliveries are due again: those that are final, and of those that wait the ones that are named. */
export interface ReplayDeliveries {
	webhook_id: number;
	/** `null`: all that meet the other conditions. */
	deliveries: readonly Uuid[] | null;
	failed: boolean;
	since: Micros | null;
	/** Goes on behind this number; 0 at first. */
	after: number;
	limit: number;
	now: Micros;
}

/** `last`: where the next slice begins; null when this was the last. */
export type Replayed =
	| { kind: 'replayed'; count: number; last: number | null }
	/** The first that is not there, or is being sent at this moment; nothing was changed. */
	| { kind: 'refused'; delivery: Uuid; why: 'unknown' | 'sending' };

export interface DeliveryConditions {
	webhook_id: number;
	state: DeliveryState | null;
	since: Micros | null;
}

/** A signing secret; `retires_at` null for the current one. */
export interface StoredSecret {
	id: number;
	/** base64url */
	secret: string;
	created_at: Micros;
	retires_at: Micros | null;
}

/** What senders of notifications change, and what signs them. */
export interface NotificationWrites {
	/** Takes deliveries that are due, each webhook's share; expired leases are due again. */
	leaseDeliveries(c: LeaseDeliveries): Promise<DeliveryLease>;
	settleDeliveries(c: { settlements: readonly DeliverySettlement[] }): Promise<DeliverySettled[]>;
	/** At most `limit` of them a call, unless they are named. */
	replayDeliveries(c: ReplayDeliveries): Promise<Replayed>;
	/** The secrets that sign at this moment, newest first; `fresh` becomes the first. */
	ensureWebhookSecret(c: { fresh: { id: number; secret: string }; now: Micros }): Promise<StoredSecret[]>;
	/** `fresh` becomes the newest; the one before signs until `retire_at`, any older one no more. */
	rotateWebhookSecret(c: {
		fresh: { id: number; secret: string };
		now: Micros;
		retire_at: Micros;
	}): Promise<StoredSecret[]>;
}
