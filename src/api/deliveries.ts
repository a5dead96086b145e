/** Notifications as they were, or are to be, delivered: ours, not the service document's. */
import type { Call, PageRequest } from './api.js';
import type { Page, Uuid, WireDateTime } from './records.js';

/**
 * Every state of a webhook delivery. `pending` waits for its first or next attempt, `sending` is under way, `stopped`
 * waits for somebody to change the webhook or to replay, because its target answered 410; the others are final.
 */
export const deliveryStates = ['pending', 'sending', 'delivered', 'failed', 'stopped'] as const;
/** One of `deliveryStates`. */
export type DeliveryState = (typeof deliveryStates)[number];

/** One notification to one webhook. */
export interface WebhookDelivery {
	/** The header `webhook-id`: the same on each try. */
	id: Uuid;
	webhook_id: number;
	/** Of the event. */
	type: string;
	message_id: Uuid | null;
	state: DeliveryState;
	attempts: number;
	/** Of the last attempt; null before the first, and where there was no answer. */
	last_status: number | null;
	/** Why the last attempt had no answer; null where it had one. */
	last_error: string | null;
	/** The beginning of what the target last answered, at most 200 characters. */
	answer_excerpt: string | null;
	/** When it is tried next; null once it is final or stopped. */
	due_at: WireDateTime | null;
	date_created: WireDateTime;
	date_attempted: WireDateTime | null;
	date_finished: WireDateTime | null;
}

/** One call of a target. */
export interface WebhookAttempt {
	number: number;
	at: WireDateTime;
	status: number | null;
	error: string | null;
	duration_ms: number;
}

/** A delivery with all that is known of it. */
export interface WebhookDeliveryDetail extends WebhookDelivery {
	/** The body, as it is sent. */
	payload: string;
	/** What the target last answered, at most 64 KiB. */
	answer: string | null;
	delivery_attempts: WebhookAttempt[];
}

/** All given conditions must hold; absent = any. */
export interface DeliveryFilter {
	state?: DeliveryState;
	/** Created at or after, `YYYY-MM-DDTHH:MM:SS.ffffff`. */
	since?: WireDateTime;
}

/**
 * Which deliveries are sent again: those named, and of the final ones those that meet the conditions, or all. One of them
 * is to be said.
 */
export interface ReplayRequest {
	deliveries?: readonly Uuid[];
	/** Only those that failed, or were stopped. */
	failed?: boolean;
	since?: WireDateTime;
	/** Whatever became of them. */
	all?: boolean;
}

/** A webhook that nothing is sent to, because its target answered 410. */
export interface StoppedWebhook {
	webhook_id: number;
	date_stopped: WireDateTime;
	/** Notifications that wait for it to go on. */
	waiting: number;
}

/** A secret that signs, as receivers are given it. */
export interface SigningSecret {
	/** `whsec_…` */
	secret: string;
	date_created: WireDateTime;
	/** From when on it signs no more; null for the current one. */
	date_retired: WireDateTime | null;
}

/** The log of notifications of the last 30 days. Throws `not_found` for an unknown webhook or delivery. */
export interface Deliveries {
	/** Oldest first. */
	page(webhookId: number, request: DeliveryFilter & PageRequest, call?: Call): Promise<Page<WebhookDelivery>>;
	get(webhookId: number, id: Uuid, call?: Call): Promise<WebhookDeliveryDetail>;
	/**
	 * Sends what is final once more, by the whole schedule, under the same ids; answers how many. What is stopped goes
	 * on. One that waits for its next attempt and is named is due at once, and goes on in its schedule. Naming one that
	 * does not exist, or is being sent at this moment, is `invalid` and replays none; so is saying nothing.
	 */
	replay(webhookId: number, what: ReplayRequest, call?: Call): Promise<number>;
	/** By id. Each goes on when it is changed, or deliveries of it are replayed. */
	stopped(call?: Call): Promise<StoppedWebhook[]>;
	/** The secrets that sign every notification, newest first; the first is made when it is first asked for. */
	secrets(call?: Call): Promise<SigningSecret[]>;
	/** A new secret; the one before it signs beside it for 24 hours more. */
	rotateSecret(call?: Call): Promise<SigningSecret[]>;
}
