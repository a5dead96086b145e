import type { Call, PageRequest } from './api.js';
import type { Page, Uuid, WireDateTime } from './records.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';

/**
 * Every state of a webhook delivery. `pending` waits for its first or next attempt, `sending` is under way, `stopped`
 * waits for a change of the webhook or a replay, because its target answered 410; the others are final.
 */
export const deliveryStates = ['pending', 'sending', 'delivered', 'failed', 'stopped'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

export const WebhookDelivery = t.named(
	'WebhookDelivery',
	t.record({
		/** The header `webhook-id`: the same on each try. */
		id: t.needed(t.uuid),
		webhook_id: t.id,
		type: t.text,
		message_id: t.orNull(t.uuid),
		state: t.needed(t.word(deliveryStates)),
		attempts: t.needed(t.count),
		/** Of the last attempt; null before the first, and where there was no answer. */
		last_status: t.orNull(t.integer),
		/** Why the last attempt had no answer; null where it had one. */
		last_error: t.orNull(t.text),
		/** The beginning of the target's last answer, at most 200 characters. */
		answer_excerpt: t.orNull(t.text),
		/** When it is tried next; null once it is final or stopped. */
		due_at: t.orNull(t.moment),
		date_created: t.moment,
		date_attempted: t.orNull(t.moment),
		date_finished: t.orNull(t.moment),
	}),
);
export type WebhookDelivery = Infer<typeof WebhookDelivery>;

const WebhookAttempt = t.record({
	number: t.count,
	at: t.moment,
	status: t.orNull(t.integer),
	error: t.orNull(t.text),
	duration_ms: t.count,
});
export type WebhookAttempt = Infer<typeof WebhookAttempt>;

export const WebhookDeliveryDetail = t.named(
	'WebhookDeliveryDetail',
	t.record({
		...WebhookDelivery.keys,
		payload: t.needed(t.text),
		answer: t.orNull(t.text),
		delivery_attempts: t.needed(t.listOf(WebhookAttempt)),
	}),
);
export type WebhookDeliveryDetail = Infer<typeof WebhookDeliveryDetail>;

export interface DeliveryFilter {
	state?: DeliveryState;
	since?: WireDateTime;
	ordering?: 'date_created' | '-date_created';
}

/**
 * Selects deliveries for a replay: named ones, or final ones that meet the conditions, or all. At least one must be
 * given.
 */
export interface ReplayRequest {
	deliveries?: readonly Uuid[];
	failed?: boolean;
	since?: WireDateTime;
	all?: boolean;
}

/** A stopped webhook: its target answered 410. */
export const StoppedWebhook = t.record({
	webhook_id: t.needed(t.count),
	date_stopped: t.needed(t.moment),
	waiting: t.needed(t.count),
});
export type StoppedWebhook = Infer<typeof StoppedWebhook>;

export const SigningSecret = t.record({
	secret: t.needed(t.text),
	date_created: t.moment,
	/** When it stops signing; null for the current one. */
	date_retired: t.orNull(t.moment),
});
export type SigningSecret = Infer<typeof SigningSecret>;

export interface Deliveries {
	/** Oldest first. */
	page(webhookId: number, request: DeliveryFilter & PageRequest, call?: Call): Promise<Page<WebhookDelivery>>;
	get(webhookId: number, id: Uuid, call?: Call): Promise<WebhookDeliveryDetail>;
	/**
	 * Sends final deliveries once more, by the whole schedule, under the same ids; returns the number. A stopped webhook
	 * restarts. A named delivery that waits for its next attempt is due at once, and keeps its place in the schedule.
	 * Naming one that does not exist, or is being sent at this moment, is `invalid` and replays none; so is an empty
	 * request.
	 */
	replay(webhookId: number, what: ReplayRequest, call?: Call): Promise<number>;
	/** By id. A change, or a replay of deliveries, restarts the webhook. */
	stopped(call?: Call): Promise<StoppedWebhook[]>;
	/** The secrets that sign every webhook delivery, newest first; the first is created at the first call. */
	secrets(call?: Call): Promise<SigningSecret[]>;
	/** A new secret; the previous one also signs for 24 hours more. */
	rotateSecret(call?: Call): Promise<SigningSecret[]>;
}
