/** Contains almost only types, so that importing this file loads neither the client nor the engine. */
import type { Api, WireExchange } from '../../api/api.js';
import type { Content } from '../../api/messages.js';
import type { ComposedMessage, ComposeRequest, RenderedContent } from '../connect/compose.js';
import type { localEngine } from '../connect/local.js';
import type { ConnectDependencies } from '../connect/parts.js';

export type Target =
	| {
			kind: 'local';
			url: string;
			/** True: create the default database if it is missing. A database named by the user must exist. */
			create: boolean;
	  }
	| { kind: 'remote'; baseUrl: string; token: string | null };

export interface Connection {
	api: Api;
	target: Target;
	/** Sends a raw request without retries. A local database answers in the process, without a socket. */
	exchange: WireExchange;
	/** Composes the message for one recipient, but neither stores nor sends it. */
	compose(request: ComposeRequest): Promise<ComposedMessage>;
	render(content: Content, variables: Readonly<Record<string, string>>): Promise<RenderedContent>;
	local: LocalEngine | null;
	close(): Promise<void>;
}

export type LocalEngine = ReturnType<typeof localEngine>;

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

export type Connect = (target: Target, dependencies: ConnectDependencies) => Promise<Connection>;

export type { IngestCounts, IngestRequest, RecordedBounce } from '../connect/bounces.js';
export type { ComposedMessage, ComposeRequest, FileToSend, RenderedContent } from '../connect/compose.js';
export type { DeliverOptions, DeliveryScope, DeliverySummary } from '../connect/mail.js';
export type { ConnectDependencies } from '../connect/parts.js';
export type { RunningServer, ServeOptions } from '../connect/serve.js';
