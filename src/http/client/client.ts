/** The Api of a deployment over HTTP, whoever made it. Nothing is loaded or asked before the first call. */
import type { Api } from '../../api/api.js';
import { type Clock, systemClock } from '../../api/datetime.js';
import type { Exchange } from '../../api/wire.js';
import { createExchange } from './exchange.js';
import { extensions } from './extensions.js';
import { createLearner } from './learn.js';
import type { Line } from './line.js';
import { isLoopback } from './proxy.js';
import { report } from './reports.js';
import { fields, lists, subscribers, webhooks } from './resources.js';
import { sendMessage } from './sending.js';
import { createTransport } from './transport.js';

/** How a deployment is reached, by whom, and who is told of it. */
export interface ClientOptions {
	/** http or https; may have a path, with or without a slash at its end. */
	baseUrl: string;
	/** For `X-Secure-Token`; null sends none. */
	token: string | null;
	remote: {
		/** One request, overall; each try has its own. */
		timeoutMs: number;
		/** Tries after the first. */
		retries: number;
		/** PEM text of further certificate authorities. */
		caCert: string | null;
		/** Certificates are not checked. */
		insecure: boolean;
		/** URL of an HTTP proxy, before what the environment says. */
		proxy: string | null;
	};
	/** HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in upper or lower case. */
	env: Readonly<Record<string, string | undefined>>;
	/** One line for each request and answer, without secrets. */
	trace: (line: string) => void;
	/** What the operator should know, once. */
	warn: (text: string) => void;
	/** 0 ≤ x < 1, for the pauses between tries. */
	random?: () => number;
	clock?: Clock;
}

/** A deployment, opened; `close` it once. */
export interface Client {
	api: Api;
	exchange: Exchange;
	/** Ends what is under way; also `api.close`. */
	close(): Promise<void>;
}

/** Throws `TypeError` for a base URL that is none. */
export function createClient(options: ClientOptions): Client {
	const { token, remote, trace, clock = systemClock, random = Math.random } = options;
	const baseUrl = new URL(options.baseUrl);
	warnOnce(baseUrl, options);
	const transport = createTransport({ ...remote, baseUrl, env: options.env });
	const prefix = baseUrl.pathname.replace(/\/+$/, '');
	const { timeoutMs, retries } = remote;
	const line: Line = { transport, prefix, token, timeoutMs, retries, trace, random, clock };
	const learn = createLearner({ ...line, extensions: extensions(line) });
	return {
		api: {
			lists: lists(line),
			fields: fields(line),
			webhooks: webhooks(line),
			subscribers: (listId) => subscribers(line, listId),
			send: (request, call) => sendMessage(line, learn, { request, call }),
			report: (query, call) => report(line, 'report', { query, call }),
			capabilities: learn,
			close: transport.close,
		},
		exchange: createExchange(line),
		close: transport.close,
	};
}

function warnOnce(baseUrl: URL, { remote, warn, token }: ClientOptions): void {
	const isPlain = baseUrl.protocol === 'http:' && !isLoopback(baseUrl.hostname);
	const what = token === null ? 'what is sent' : 'the token';
	if (isPlain) warn(`${baseUrl.origin} is plain http: anybody on the way can read ${what}`);
	if (remote.insecure && baseUrl.protocol === 'https:')
		warn(`--insecure: the certificate of ${baseUrl.host} is not checked`);
}
