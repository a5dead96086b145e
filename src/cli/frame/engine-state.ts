/** The database and its queue, as `engine status` and `engine queue stats` tell them. */
import type { CommonReply } from '../../api/campaigns.js';
import type { LimitName, Message } from '../../api/records.js';
import type { RetentionForecast, Sizes } from '../../store/maintenance.js';

/** The queue as a person looks at it; times as the API writes them. */
export interface QueueStats {
	/** `null`: the queue is open. A `fault` is tried again at `retry_at`; times in the past: as it was met last. */
	paused: {
		kind: 'manual' | 'fault';
		reason: string | null;
		since: string;
		retry_at: string | null;
		/** In a row. */
		faults: number;
	} | null;
	messages: Partial<Record<Message['state'], number>>;
	/** Messages whose time has come. */
	due: number;
	/** How many of those the limits of the settings hold back. */
	held: number;
	/** When the oldest that waits was accepted or released. */
	oldest: string | null;
	next_due: string | null;
	/** `role` is null for a process that has ended; `heard`: its last sign of life, null where that is unknown. */
	workers: readonly {
		role: string | null;
		host: string;
		pid: number;
		messages: number;
		heard: string | null;
	}[];
	/** By domain, the most first, at most 50. */
	deferred: readonly { domain: string; messages: number; next_due: string; last_reply: string | null }[];
	/** The commonest replies to messages of seven days that failed, bounced or are deferred. */
	replies: readonly CommonReply[];
	/** Limits that hold messages back, the most first, at most 50; `last`: the earliest time for the last of them. */
	limits: readonly (LimitName & { messages: number; next: string; last: string })[];
}

/** The contents and the setup of the database, without secrets. */
export interface EngineStatus {
	path: string;
	schema_version: number;
	size_bytes: number;
	lists: number;
	subscribers: number;
	suppressions: number;
	messages: Partial<Record<Message['state'], number>>;
	smtp_url: string | null;
	public_url: string | null;
	time_zone: string;
	senders: number;
	/** `null`: the queue is open. */
	paused: QueueStats['paused'];
	/** `null`: bounces go to the sender of a message. */
	bounce_address: string | null;
	/** Each message has its own return path, which identifies its bounce. */
	verp: boolean;
	/** Whose mail is signed. */
	dkim_domains: readonly string[];
	/** Settings that limit sending, as they were set. */
	limits: Readonly<Record<string, string>>;
	/** Webhooks whose targets answered 410; they get no notifications. */
	webhooks_stopped: readonly { id: number; url: string; since: string }[];
	size: Sizes;
	/** `frees`: what goes next, or what 400 days would delete while nothing is set. */
	retention: {
		keep_messages: string | null;
		keep_events: string | null;
		keep_bodies: string | null;
		frees: RetentionForecast;
	};
}
