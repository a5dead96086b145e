import type { Call, PageRequest } from './api.js';
import type { Page, Uuid, WireDateTime } from './records.js';
import * as t from './schema/record.js';
import type { Infer } from './schema.js';

export const deliveryStates = ['pending', 'sending', 'delivered', 'failed', 'stopped'] as const;
export type DeliveryState = (typeof deliveryStates)[number];

export const WebhookDelivery = t.component('WebhookDelivery', {
	id: t.needed(t.uuid),
	webhook_id: t.id,
	type: t.text,
	message_id: t.orNull(t.uuid),
	state: t.needed(t.word(deliveryStates)),
	attempts: t.needed(t.count),
	last_status: t.orNull(t.integer),
	last_error: t.orNull(t.text),
	answer_excerpt: t.orNull(t.text),
	due_at: t.orNull(t.moment),
	date_created: t.moment,
	date_attempted: t.orNull(t.moment),
	date_finished: t.orNull(t.moment),
});
export type WebhookDelivery = Infer<typeof WebhookDelivery>;

const WebhookAttempt = t.record({
	number: t.count,
	at: t.moment,
	status: t.orNull(t.integer),
	error: t.orNull(t.text),
	duration_ms: t.count,
});
export type WebhookAttempt = Infer<typeof WebhookAttempt>;

export const WebhookDeliveryDetail = t.component('WebhookDeliveryDetail', {
	...WebhookDelivery.keys,
	payload: t.needed(t.text),
	answer: t.orNull(t.text),
	delivery_attempts: t.needed(t.listOf(WebhookAttempt)),
});
export type WebhookDeliveryDetail = Infer<typeof WebhookDeliveryDetail>;

export interface DeliveryFilter {
	state?: DeliveryState;
	since?: WireDateTime;
	ordering?: 'date_created' | '-date_created';
}

export interface ReplayRequest {
	deliveries?: readonly Uuid[];
	failed?: boolean;
	since?: WireDateTime;
	all?: boolean;
}

export const StoppedWebhook = t.record({
	webhook_id: t.needed(t.count),
	date_stopped: t.needed(t.moment),
	waiting: t.needed(t.count),
});
export type StoppedWebhook = Infer<typeof StoppedWebhook>;

export const SigningSecret = t.record({
	secret: t.needed(t.text),
	date_created: t.moment,
	date_retired: t.orNull(t.moment),
});
export type SigningSecret = Infer<typeof SigningSecret>;

export interface Deliveries {
	page(webhookId: number, request: DeliveryFilter & PageRequest, call?: Call): Promise<Page<WebhookDelivery>>;
	get(webhookId: number, id: Uuid, call?: Call): Promise<WebhookDeliveryDetail>;
	/** Sends final or waiting deliveries again with the same ids. Throws `invalid` for unknown ids. */
	replay(webhookId: number, what: ReplayRequest, call?: Call): Promise<number>;
	stopped(call?: Call): Promise<StoppedWebhook[]>;
	secrets(call?: Call): Promise<SigningSecret[]>;
	rotateSecret(call?: Call): Promise<SigningSecret[]>;
}
