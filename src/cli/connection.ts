/** What a command may ask of whoever composed the parts: next to nothing but types, so that naming them loads nothing. */
import type { Api } from '../api/api.js';
import type { Clock } from '../api/datetime.js';
import type { DeliveryCounts } from '../api/delivery-counts.js';
import type { LimitName, Message, Uuid } from '../api/records.js';
import type { Exchange } from '../api/wire.js';
import type { IngestCounts, IngestRequest } from './ingest.js';

/** Where a command goes: a database of this machine, or a base URL. */
export type Target =
	| {
			kind: 'local';
			url: string;
			/** The default database is made when missing; a named one must exist. */
			create: boolean;
	  }
	| { kind: 'remote'; baseUrl: string; token: string | null };

/** An opened target; `close` it once. */
export interface Connection {
	api: Api;
	target: Target;
	/** The wire itself, without retries; on a database of this machine the server's answers without a socket. */
	exchange: Exchange;
	/** The finished message for one recipient of a request, made here: nothing is accepted, nobody is asked. */
	compose(request: ComposeRequest): Promise<ComposedMessage>;
	/** Null on a deployment: what needs the database itself is not to be had there. */
	local: LocalEngine | null;
	close(): Promise<void>;
}

/** How a deployment is reached; of no use to a database of this machine. */
export interface RemoteOptions {
	/** One request, overall; milliseconds. */
	timeoutMs: number;
	/** Tries after the first. */
	retries: number;
	/** PEM text of further certificate authorities. */
	caCert: string | null;
	/** Certificates are not checked. */
	insecure: boolean;
	/** URL of an HTTP proxy, before what the environment says. */
	proxy: string | null;
}

/** What a connection is given by the command line. */
export interface ConnectDependencies {
	/** `serve` and `worker` stay: they are heard of by other processes, and `serve` keeps its store in threads. */
	role: 'cli' | 'serve' | 'worker';
	remote: RemoteOptions;
	env: Readonly<Record<string, string | undefined>>;
	clock: Clock;
	/** Trace lines of `--debug`; secrets are redacted before. */
	trace: (line: string) => void;
	/** Things the operator should know; shown once. */
	warn: (text: string) => void;
}

/** No mail server is configured: nothing can be sent. */
export class NoSmtp extends Error {
	override readonly name = 'NoSmtp';
}

/** What only the machine that owns the database can do. */
export interface LocalEngine {
	/** The database file. */
	path: string;
	/** The database was made just now. */
	isNew: boolean;
	settings: {
		/** Every setting there is, and what it is for. */
		names: Readonly<Record<string, string>>;
		/** What holds while one is not set, as a value; those that are missing have none then. */
		defaults: Readonly<Record<string, string>>;
		/** Set values by name, secrets masked unless `reveal`. */
		get(options?: { reveal: boolean }): Promise<Record<string, string>>;
		/** `null` unsets. Throws `ApiError` invalid naming every bad one. */
		set(values: Readonly<Record<string, string | null>>): Promise<void>;
	};
	/** Who may use the API of this database, once it is served. */
	tokens: {
		/** Revoked ones too, oldest first. */
		list(): Promise<ApiToken[]>;
		/** The only time the secret is told. `null`: a living token has this name. */
		create(input: { name: string; scopes: readonly TokenScope[] }): Promise<NewApiToken | null>;
		/** False: no living token has this name. */
		revoke(name: string): Promise<boolean>;
	};
	/** What signs the mail of a domain. */
	dkim: {
		/** By domain, the oldest of each first; never the private halves. */
		list(): Promise<DkimKey[]>;
		/** `domain` in ASCII and lower case. `null`: it has a key of this selector. Throws `UsageError` for what is no key. */
		add(input: {
			domain: string;
			selector: string;
			source: { type: DkimKey['type'] } | { pem: string };
		}): Promise<DkimKey | null>;
		/** False: there is no such key. */
		remove(key: { domain: string; selector: string }): Promise<boolean>;
	};
	/** Takes mails that came back into the database. Rejects when it fails: what was not recorded can be brought again. */
	ingestBounces(request: IngestRequest): Promise<IngestCounts>;
	/** What waits to be sent, for every process that works on this database. */
	queue: {
		stats(): Promise<QueueStats>;
		/** Nothing is begun from now on; `reason` is for people. Again: the reason changes. */
		pause(reason: string | null): Promise<NonNullable<QueueStats['paused']>>;
		/** The mail server is tried at once, too. False: nothing held it up. */
		resume(): Promise<boolean>;
	};
	status(): Promise<EngineStatus>;
	/** Delivers what is due: the messages of a scope until each has an outcome, or everything until stopped. */
	deliver(options: DeliverOptions): Promise<DeliverySummary>;
	/** Connects, says EHLO and logs in; sends nothing. Throws `NoSmtp` when none is configured. */
	testSmtp(): Promise<SmtpTest>;
	/** Answers the API, the links of mails and, unless told otherwise, sends what is due. Throws when it cannot listen. */
	serve(options: ServeOptions): Promise<RunningServer>;
}

/** Where and how to listen. */
export interface ServeOptions {
	host: string;
	/** 0: any free one. */
	port: number;
	/** PEM texts. */
	tls: { cert: string; key: string } | null;
	/** The address of a client is what the proxy in front says (`X-Forwarded-For`). */
	trustProxy: boolean;
	/** Where mails that come back are taken by SMTP; `null`: nowhere. */
	bounceSmtp: { host: string; port: number } | null;
	/** `null`: another process sends. */
	sending: Pick<DeliverOptions, 'connections' | 'rate'> | null;
	/** Told of each request and of what goes wrong, as one object a line; no secrets. */
	log: (line: object) => void;
}

/** A server that listens; `close` once. */
export interface RunningServer {
	/** Where it listens; no slash at the end. */
	url: string;
	/** Where links of mails begin. */
	publicUrl: string;
	/** Resolves when nothing can be answered any more, and why; else never. */
	failed: Promise<Error>;
	/** `host:port` where mails that come back are taken; `null`: nowhere. */
	bounceSmtp: string | null;
	/** The file with the token that was made because there was none; `null` when there was one. */
	newTokenFile: string | null;
	/** Takes nothing new, lets what is in flight end within 10 s, gives leases back. */
	close(): Promise<void>;
}

/** What a token allows: looking, sending, or everything. */
export const tokenScopes = ['read', 'send', 'admin'] as const;
export type TokenScope = (typeof tokenScopes)[number];

/** A token without its secret, which is stored nowhere. */
export interface ApiToken {
	name: string;
	/** Those of another version may be unknown to this one. */
	scopes: readonly string[];
	date_created: string;
	/** `null`: it is alive. */
	date_revoked: string | null;
}

/** A token that was made just now, with its secret. */
export interface NewApiToken extends Omit<ApiToken, 'date_revoked'> {
	token: string;
}

/** A key that signs the mail of a domain, by its public half. */
export interface DkimKey {
	domain: string;
	selector: string;
	type: 'rsa' | 'ed25519';
	date_created: string;
	/** Where verifiers look it up: `selector._domainkey.domain`. */
	dns_name: string;
	/** The text of that TXT record. */
	dns_value: string;
	/** Both as a line of a zone file, in strings of at most 255 octets. */
	dns_record: string;
}

/** The queue as a person looks at it; times as the API writes them. */
export interface QueueStats {
	/** `null`: nothing holds it up. A `fault` is tried again at `retry_at`; times in the past: as it was met last. */
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
	/** `role` is null for a process that is gone; `heard`: when it was last heard of, null where that is not known any more. */
	workers: readonly {
		role: string | null;
		host: string;
		pid: number;
		messages: number;
		heard: string | null;
	}[];
	/** By domain, the most first, at most 50. */
	deferred: readonly { domain: string; messages: number; next_due: string; last_reply: string | null }[];
	/** Limits that hold messages back, the most first, at most 50; `last`: when the last of them may go at the soonest. */
	limits: readonly (LimitName & { messages: number; next: string; last: string })[];
}

/** What is in the database, and how it is set up; secrets left out. */
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
	/** `null`: nothing holds up the queue. */
	paused: QueueStats['paused'];
	/** `null`: bounces go to the sender of a message. */
	bounce_address: string | null;
	/** Each message has a return path of its own, by which its bounce is known. */
	verp: boolean;
	/** Whose mail is signed. */
	dkim_domains: readonly string[];
	/** Settings that limit sending, as they were set. */
	limits: Readonly<Record<string, string>>;
	/** Told 410 by their targets; nothing is sent to them. */
	webhooks_stopped: readonly { id: number; url: string; since: string }[];
}

/** Which messages: those of one submission, of one mailing, or all. */
export type DeliveryScope = { submission: Uuid } | { mailing: Uuid } | null;

/** What is to be delivered, how fast, and until when. */
export interface DeliverOptions {
	scope: DeliveryScope;
	/** `settled`: until nothing of the scope is due; `stopped`: until the signal, waiting for what comes due. */
	until: 'settled' | 'stopped';
	connections?: number;
	/** Messages a second. */
	rate?: number;
	signal?: AbortSignal;
	/** Without any outcome for so long, it gives up; milliseconds. */
	stallMs?: number;
	onProgress?: (counts: DeliveryCounts) => void;
	/** The mail server takes nothing at the moment; the next try is in so many milliseconds. */
	onWaiting?: (reason: string, ms: number) => void;
	/** Somebody paused the queue: nothing is begun until it is resumed. */
	onHeld?: (reason: string) => void;
	/** Limits hold back all that is left until then. */
	onLimited?: (until: Date) => void;
	/** Once for each content warning, when it is first met: a run may go on for months. */
	onWarning?: (warning: string) => void;
	/** Is given what makes an idle run look at once: something new is due. */
	onReady?: (wake: () => void) => void;
}

/** How a delivery ended. */
export interface DeliverySummary {
	/** `paused`: the mail server refuses everybody (login, TLS, connect), or somebody paused the queue; `stalled`: no outcome within `stallMs`. */
	kind: 'settled' | 'stopped' | 'paused' | 'stalled';
	/** Why, when it is paused, or stalled and somebody knows. */
	reason: string | null;
	counts: DeliveryCounts;
	/** Content warnings, such as CSS that could not be inlined. */
	warnings: readonly string[];
}

/** What trying the mail server came to; milliseconds. */
export interface SmtpTest {
	host: string;
	port: number;
	/** `never`, `opportunistic`, `required` or `implicit` TLS. */
	security: string;
	user: string | null;
	/** False: `reply` says why not. */
	ok: boolean;
	reply: string | null;
	duration_ms: number;
}

/** A message to look at: nothing of it is stored. */
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
}

/** A finished message: its bytes (RFC 5322), and its parts as a person reads them. */
export interface ComposedMessage {
	raw: Buffer;
	subject: string;
	text: string;
	html: string | null;
	/** Variables used that have no value. */
	missing: readonly string[];
	warnings: readonly string[];
}
