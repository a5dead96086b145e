/** The result of `connect`: almost only types, so that an import of this file loads nothing. */
import type { Api, WireExchange } from '../../api/api.js';
import type { Attachment } from '../../api/attachments.js';
import type { Wait } from '../../api/backoff.js';
import type { CommonReply } from '../../api/campaigns.js';
import type { DeliveryCounts } from '../../api/counts.js';
import type { Clock, Micros } from '../../api/datetime.js';
import type { Content } from '../../api/messages.js';
import type { LimitName, Message, Uuid } from '../../api/records.js';
import type { RetentionForecast, Sizes } from '../../store/maintenance.js';

export type Target =
	| {
			kind: 'local';
			url: string;
			/** The default database is made when missing; a named one must exist. */
			create: boolean;
	  }
	| { kind: 'remote'; baseUrl: string; token: string | null };

export interface Connection {
	api: Api;
	target: Target;
	/** The wire itself, without retries; on a database of this machine the server's answers without a socket. */
	exchange: WireExchange;
	/** The finished message for one recipient of a request, made here: nothing is accepted, no server is called. */
	compose(request: ComposeRequest): Promise<ComposedMessage>;
	render(content: Content, variables: Readonly<Record<string, string>>): Promise<RenderedContent>;
	local: LocalEngine | null;
	close(): Promise<void>;
}

export interface RemoteOptions {
	timeoutMs: number;
	retries: number;
	caCert: string | null;
	insecure: boolean;
	proxy: string | null;
}

export interface FirstWrite {
	/** It is about to be made, which may fail; or another process has made it. */
	begin(): void;
	made(path: string): Promise<void>;
}

export interface ConnectDependencies {
	/** `serve` and `worker` keep running: they register for other processes, and `serve` keeps its store in threads. */
	role: 'cli' | 'serve' | 'serve --no-worker' | 'worker';
	isTrial?: boolean;
	/** A missing database is read as an empty one, and made by the first write. Absent: it is made at once. */
	firstWrite?: FirstWrite;
	remote: RemoteOptions;
	env: Readonly<Record<string, string | undefined>>;
	clock: Clock;
	trace: ((line: string) => void) | null;
	/** How long a database that another process holds is waited for, where that is shorter than usual; in milliseconds. */
	lockMs?: number;
	/**
	 * Called for each request, where another process holds the database, where its server takes a while, and for each mail: a
	 * person reads what is waited for. `what`: a mail server; absent: the target.
	 */
	onWait: ((what?: string) => Wait) | null;
	warn: (text: string) => void;
	signal?: AbortSignal;
}

export interface LocalEngine {
	path: string;
	isNew: boolean;
	foreseeSend(request: Parameters<Api['send']>[0]): Promise<void>;
	settings: {
		names: Readonly<Record<string, string>>;
		defaults: Readonly<Record<string, string>>;
		/** Set values by name, secrets masked unless `reveal`. Unlike `status` it counts nothing. */
		get(options?: { reveal: boolean }): Promise<Record<string, string>>;
		whyNot(name: string, value: string): Promise<string | null>;
		normalOf(name: string, value: string): Promise<string>;
		set(values: Readonly<Record<string, string | null>>): Promise<void>;
		foresee(
			values: Readonly<Record<string, string | null>>,
		): Promise<{ before: RetentionForecast; after: RetentionForecast }>;
	};
	tokens: {
		list(): Promise<ApiToken[]>;
		create(input: { name: string; scopes: readonly TokenScope[] }): Promise<NewApiToken | null>;
		revoke(name: string): Promise<boolean>;
	};
	dkim: {
		list(): Promise<DkimKey[]>;
		/** `domain` in ASCII and lower case. `null`: it has a key of this selector. `UsageError` for an invalid key. */
		add(input: {
			domain: string;
			selector: string;
			source: { type: DkimKey['type'] } | { pem: string };
		}): Promise<DkimKey | null>;
		remove(key: { domain: string; selector: string }): Promise<boolean>;
	};
	/** Takes returned mails into the database. Rejects when that fails: unrecorded mails can be ingested again. */
	ingestBounces(request: IngestRequest): Promise<IngestCounts>;
	queue: {
		stats(): Promise<QueueStats>;
		waiting(): Promise<{ queued: number; leased: number; deferred: number; next: number | null }>;
		nextDue(campaign: Uuid | null): Promise<number | null>;
		hasWorker(): Promise<boolean>;
		keepRate(campaign: Uuid, rate: string): Promise<void>;
		pause(reason: string | null): Promise<NonNullable<QueueStats['paused']>>;
		resume(): Promise<boolean>;
	};
	secrets: {
		hasKey: boolean;
		counts(): Promise<SecretCount[]>;
		/** Rewrites all secrets (`isTrial`: none) unless other processes have the database open; returns those. */
		rewrite(c: { as: 'wrapped' | 'plain'; isTrial: boolean }): Promise<readonly OtherProcess[]>;
	};
	counts: { check(): Promise<CountCheck>; repair(): Promise<CountCheck> };
	status(): Promise<EngineStatus>;
	deliver(options: DeliverOptions): Promise<DeliverySummary>;
	testSmtp(signal: AbortSignal): Promise<SmtpTest>;
	serve(options: ServeOptions): Promise<RunningServer>;
}

export interface ServeOptions {
	host: string;
	port: number;
	tls: { cert: string; key: string } | null;
	trustProxy: boolean;
	bounceSmtp: { host: string; port: number } | null;
	sending: Pick<DeliverOptions, 'connections' | 'rate'> | null;
	log: (line: object) => void;
}

export interface RunningServer {
	url: string;
	publicUrl: string | null;
	/** Resolves with the error after which no request is answered; else never. */
	failed: Promise<Error>;
	bounceSmtp: string | null;
	newTokenFile: string | null;
	/** Accepts nothing new, gives work in flight 10 s to end, and returns leases. */
	close(): Promise<void>;
}

export const tokenScopes = ['read', 'send', 'admin'] as const;
export type TokenScope = (typeof tokenScopes)[number];

export interface ApiToken {
	name: string;
	scopes: readonly string[];
	date_created: string;
	date_revoked: string | null;
}

export interface NewApiToken extends Omit<ApiToken, 'date_revoked'> {
	token: string;
}

export interface CountCheck {
	lists: readonly {
		list_id: number;
		name: string;
		active: { kept: number; counted: number };
		inactive: { kept: number; counted: number };
	}[];
	figures: number;
	campaigns: readonly string[];
}

export type OtherProcess = Pick<QueueStats['workers'][number], 'host' | 'pid'> & { role: string };

export interface SecretCount {
	key: string | null;
	secrets: number;
}

export interface DkimKey {
	domain: string;
	selector: string;
	type: 'rsa' | 'ed25519';
	date_created: string;
	dns_name: string;
	dns_value: string;
	dns_record: string;
}

export type DeliveryScope = { submission: Uuid } | { campaign: Uuid } | null;

export interface DeliverOptions {
	scope: DeliveryScope;
	/** `settled`: until no message of the scope is due; `stopped`: until the signal, with messages that come due. */
	until: 'settled' | 'stopped';
	connections?: number;
	rate?: number;
	signal?: AbortSignal;
	leftMs?: number | undefined;
	stallMs?: number;
	onProgress?: (counts: DeliveryCounts) => void;
	onWaiting?: (reason: string, ms: number) => void;
	onHeld?: (reason: string) => void;
	onLimited?: (until: Date) => void;
	onWarning?: (warning: string) => void;
	onReady?: (wake: () => void) => void;
}

export interface DeliverySummary {
	/**
	 * `paused`: by the mail server (login, TLS, connect), or by hand; `stalled`: no outcome within `stallMs`; `closed`: its window.
	 */
	kind: 'settled' | 'stopped' | 'paused' | 'stalled' | 'closed';
	reason: string | null;
	counts: DeliveryCounts;
	warnings: readonly string[];
	isTried?: boolean;
}

export interface SmtpTest {
	host: string;
	port: number;
	security: string;
	user: string | null;
	ok: boolean;
	reply: string | null;
	/** The remedy: a port that speaks TLS, a setting, the login, or the sender; null where it is not known. */
	remedy: 'tls_port' | 'smtp_url' | 'smtp_ca' | 'smtp_ehlo_name' | 'login' | 'sender' | null;
	certificate: { validTo: Micros } | null;
	duration_ms: number;
	ehlo_name: string;
	sender: string | null;
}

export type Connect = (target: Target, dependencies: ConnectDependencies) => Promise<Connection>;

export interface QueueStats {
	/** `null`: the queue is open. A `fault` is tried again at `retry_at`; times in the past: as it was met last. */
	paused: {
		kind: 'manual' | 'fault';
		reason: string | null;
		since: string;
		retry_at: string | null;
		faults: number;
	} | null;
	messages: Partial<Record<Message['state'], number>>;
	due: number;
	held: number;
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
	deferred: readonly { domain: string; messages: number; next_due: string; last_reply: string | null }[];
	replies: readonly CommonReply[];
	limits: readonly (LimitName & { messages: number; next: string; last: string })[];
}

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
	paused: QueueStats['paused'];
	bounce_address: string | null;
	verp: boolean;
	dkim_domains: readonly string[];
	limits: Readonly<Record<string, string>>;
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

export interface FileToSend extends Attachment {
	bytes: Buffer;
}

export interface ComposeRequest {
	from: string;
	to: string;
	subject: string;
	text: string | null;
	html: string | null;
	disable_inline: boolean;
	bulk: boolean;
	reply_to: readonly string[];
	cc: readonly string[];
	headers: Readonly<Record<string, string>>;
	variables: Readonly<Record<string, string>>;
	files?: readonly FileToSend[];
}

export interface RenderedContent {
	subject: string;
	text: string;
	html: string | null;
	missing: readonly string[];
}

export interface ComposedMessage extends RenderedContent {
	from: string;
	to: string;
	raw: Buffer;
	withoutFiles: Buffer;
	warnings: readonly string[];
	/** Names the stand-ins for parts that only the deployment can make; null: the message is final. */
	standsIn: string | null;
	files?: readonly FileToSend[];
}

export interface IngestRequest {
	from: { path: string } | { stream: AsyncIterable<Buffer> };
	dryRun: boolean;
	signal: AbortSignal;
	onRecorded: (recorded: RecordedBounce) => void;
	onUnreadable: (file: string, code: string) => void;
}

export interface IngestCounts {
	read: number;
	bounces: number;
	complaints: number;
	duplicates: number;
	notices: number;
	auto_replies: number;
	unmatched: number;
	not_reports: number;
	/** Their messages are being sent at this moment: to be brought again. */
	in_flight: number;
	/** Files of a folder or a Maildir that could not be read, and are where they were. */
	unreadable: number;
}

export interface RecordedBounce {
	effect: 'hard_bounce' | 'soft_bounce' | 'complaint';
	address: string;
}
