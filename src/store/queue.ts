import type { EmailKey } from '../api/address.js';
import type { CommonReply } from '../api/campaigns.js';
import type { MessageScope } from '../api/capabilities.js';
import type { Micros } from '../api/datetime.js';
import type { DeliveryState } from '../api/deliveries.js';
import type { LimitName, MessageState, Uuid } from '../api/records.js';
import type { DeliveryOutcome } from '../engine/rules/outcomes.js';

export interface LeaseCommand {
	owner: string;
	now: Micros;
	until: Micros;
	max: number;
	scope: MessageScope | null;
	/** Together, the workers that ask for a rate send at most this many messages a second. */
	perSecond?: number;
	/** No other process sends messages of the scope, so the store ends leases of other owners at once. */
	alone?: true;
}

export interface QueuePause {
	/**
	 * `fault`: the login, TLS or connection failed, or the server refuses all mail. `refusal`: the server refused the
	 * sender. A refusal does not pause the queue. For `fault`, `faults` counts the faults since the last reply; for
	 * `refusal`, it counts the refusals since the last sent message.
	 */
	kind: 'manual' | 'fault' | 'refusal';
	reason: string | null;
	since: Micros;
	retry_at: Micros | null;
	faults: number;
}

export interface QueueState {
	messages: Partial<Record<MessageState, number>>;
	due: number;
	held: number;
	oldest_at: Micros | null;
	next_due_at: Micros | null;
	pauses: readonly QueuePause[];
	workers: readonly QueueWorker[];
	deferred: readonly DeferredDomain[];
	replies: readonly CommonReply[];
	limits: readonly HoldingLimit[];
	/** At most 50 messages that crashed a worker, latest first. Includes failed messages of the last seven days only. */
	unfinished: readonly UnfinishedMessage[];
}

export interface UnfinishedMessage {
	message: Uuid;
	state: MessageState;
	deaths: number;
	due_at: Micros | null;
}

export interface QueueWorker {
	role: string | null;
	host: string;
	pid: number;
	messages: number;
	heard_at: Micros | null;
}

export interface DeferredDomain {
	domain: string;
	messages: number;
	next_due_at: Micros;
	last_reply: string | null;
}

export interface HoldingLimit extends LimitName {
	messages: number;
	next_at: Micros;
	last_at: Micros;
}

export interface LimitHold extends LimitName {
	until_at: Micros;
}

/** `wait`: the least time until this limit lets its last waiting message go; 0 if no message waits. */
export interface LimitWait {
	setting: string;
	limit: string;
	wait: Micros;
}

/** Identifies a lease: each lease adds one to `fence`, so that late outcomes of earlier leases are ignored. */
export interface Fence {
	message: Uuid;
	fence: number;
}

export interface Leased extends Fence {
	submission: Uuid;
	to: string;
	list_id: number | null;
	/** The context overrides the subscriber's meta. The meta overrides `email`, `name` and `email_reason`. */
	variables: Record<string, string>;
	attempts: number;
	/** Suppressed addresses in cc and bcc, which must not get a copy. */
	stopped_copies?: readonly EmailKey[];
	call?: string;
	is_suspect?: true;
	/** The end of the campaign's window: sending must not start later. */
	leave_by?: Micros;
	created_at: Micros;
}

export interface Settlement extends Fence {
	at: Micros;
	outcome: DeliveryOutcome;
}

interface DeliveryFence {
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
	/** Unique, and begins with `HOST:PID:`. */
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

interface DeliveryAnswer {
	status: number | null;
	error: string | null;
	answer: string | null;
	duration_ms: number;
}

export type DeliveryResult =
	| { kind: 'delivered' | 'failed'; answer: DeliveryAnswer }
	/**
	 * The target answered 410: the delivery fails, and its webhook stops. If the webhook has got another `url` since, the
	 * delivery becomes due again instead.
	 */
	| { kind: 'gone'; answer: DeliveryAnswer; url: string }
	| { kind: 'again'; answer: DeliveryAnswer; due_at: Micros }
	| { kind: 'released' };

export interface DeliverySettlement extends DeliveryFence {
	at: Micros;
	result: DeliveryResult;
}

/** `moved`: the webhook no longer has the URL that answered `gone`. */
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
