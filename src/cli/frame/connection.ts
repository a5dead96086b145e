/** The result of `connect`: almost only types, so that an import of this file loads nothing. */
import type { Api, WireExchange } from '../../api/api.js';
import type { Attachment } from '../../api/attachments.js';
import type { Wait } from '../../api/backoff.js';
import type { DeliveryCounts } from '../../api/counts.js';
import type { Clock } from '../../api/datetime.js';
import type { Content } from '../../api/messages.js';
import type { Uuid } from '../../api/records.js';
import type { localEngine } from '../connect/local.js';

export type Target =
	| {
			kind: 'local';
			url: string;
			/** A missing default database is created; a named one must exist. */
			create: boolean;
	  }
	| { kind: 'remote'; baseUrl: string; token: string | null };

export interface Connection {
	api: Api;
	target: Target;
	/** A raw request, without retries. A local database answers as the server would, without a socket. */
	exchange: WireExchange;
	/** Composes the message for one recipient. Nothing is stored or sent. */
	compose(request: ComposeRequest): Promise<ComposedMessage>;
	render(content: Content, variables: Readonly<Record<string, string>>): Promise<RenderedContent>;
	local: LocalEngine | null;
	close(): Promise<void>;
}

interface RemoteOptions {
	timeoutMs: number;
	retries: number;
	caCert: string | null;
	insecure: boolean;
	proxy: string | null;
}

interface FirstWrite {
	/** The database is about to be created, or another process has created it. */
	begin(): void;
	made(path: string): Promise<void>;
}

export interface ConnectDependencies {
	/** `serve` and `worker` keep running: they register for other processes, and `serve` keeps its store in threads. */
	role: 'cli' | 'serve' | 'serve --no-worker' | 'worker';
	isTrial?: boolean;
	/** A missing database counts as empty, and the first write creates it. Absent: it is created at once. */
	firstWrite?: FirstWrite;
	remote: RemoteOptions;
	env: Readonly<Record<string, string | undefined>>;
	clock: Clock;
	trace: ((line: string) => void) | null;
	/** Milliseconds to wait for a database that another process holds, if shorter than usual. */
	lockMs?: number;
	/** Called for each wait that a person may see. `what`: a mail server; absent: the target. */
	onWait: ((what?: string) => Wait) | null;
	warn: (text: string) => void;
	signal?: AbortSignal;
}

export type LocalEngine = ReturnType<typeof localEngine>;

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

export type ApiToken = Awaited<ReturnType<LocalEngine['tokens']['list']>>[number];
export type NewApiToken = NonNullable<Awaited<ReturnType<LocalEngine['tokens']['create']>>>;
export type CountCheck = Awaited<ReturnType<LocalEngine['counts']['check']>>;
export type SecretCount = Awaited<ReturnType<LocalEngine['secrets']['counts']>>[number];
export type OtherProcess = Awaited<ReturnType<LocalEngine['secrets']['rewrite']>>[number];
export type DkimKey = Awaited<ReturnType<LocalEngine['dkim']['list']>>[number];
export type QueueStats = Awaited<ReturnType<LocalEngine['queue']['stats']>>;
export type EngineStatus = Awaited<ReturnType<LocalEngine['status']>>;
export type SmtpTest = Awaited<ReturnType<LocalEngine['testSmtp']>>;

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
}

export type Connect = (target: Target, dependencies: ConnectDependencies) => Promise<Connection>;

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
	/** Explains placeholders for parts that only the server makes; null: the message is final. */
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

/** `in_flight`: bounces of messages that are being sent; `unreadable`: files that stay in place. */
export type IngestCounts = Record<
	| ('read' | 'bounces' | 'complaints' | 'duplicates' | 'notices' | 'auto_replies')
	| ('unmatched' | 'not_reports' | 'in_flight' | 'unreadable'),
	number
>;

export interface RecordedBounce {
	effect: 'hard_bounce' | 'soft_bounce' | 'complaint';
	address: string;
}
