/** The Api of a deployment over HTTP. Nothing is loaded or requested before the first call. */
import type { Api, WireExchange } from '../../api/api.js';
import type { Wait } from '../../api/backoff.js';
import { type Clock, systemClock } from '../../api/datetime.js';
import { secretsOf } from '../../api/quote.js';
import { isLoopback } from '../../api/schema/url.js';
import { TransportFailure, toApiError } from './failure.js';
import { documented, extensions } from './operations.js';
import { createProbe } from './probe.js';
import { commonHeaders, type Endpoint, exchange } from './request.js';
import { createTransport } from './transport.js';

export interface ClientOptions {
	baseUrl: string;
	token: string | null;
	remote: {
		timeoutMs: number;
		retries: number;
		caCert: string | null;
		insecure: boolean;
		proxy: string | null;
	};
	env: Readonly<Record<string, string | undefined>>;
	trace: ((line: string) => void) | null;
	onWait?: (() => Wait) | null;
	warn: (text: string) => void;
	random?: () => number;
	clock?: Clock;
	signal?: AbortSignal;
}

export interface Client {
	api: Api;
	exchange: WireExchange;
	close(): Promise<void>;
}

export function createClient(options: ClientOptions): Client {
	const { token, remote, trace, onWait = null, clock = systemClock, random = Math.random } = options;
	const baseUrl = new URL(options.baseUrl);
	warnOnce(baseUrl, options);
	const transport = createTransport({ ...remote, baseUrl, env: options.env });
	const prefix = baseUrl.pathname.replace(/(?<!\/)\/+$/, '');
	const { timeoutMs, retries } = remote;
	const endpoint: Endpoint = { transport, prefix, token, timeoutMs, retries, trace, onWait, random, clock };
	const capabilities = createProbe({ endpoint, extensions: extensions(endpoint), signal: options.signal });
	return {
		api: { ...documented(endpoint, capabilities), capabilities, close: transport.close },
		exchange: createExchange(endpoint),
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

function createExchange(endpoint: Endpoint): WireExchange {
	const { prefix, timeoutMs } = endpoint;
	return async ({ method, path, headers = {}, body = null, token = endpoint.token, signal }) => {
		const secrets = [endpoint.token, token].flatMap((one) => secretsOf(one, null));
		const given = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
		const own = Object.entries(commonHeaders(token)).filter(([name]) => !given.has(name.toLowerCase()));
		const sent = { ...Object.fromEntries(own), ...headers };
		const wait = endpoint.onWait?.();
		try {
			const outgoing = { method, path: prefix + path, headers: sent, body, timeoutMs, signal };
			return await exchange(endpoint, outgoing, secrets);
		} catch (error) {
			throw error instanceof TransportFailure ? toApiError(error) : error;
		} finally {
			wait?.end();
		}
	};
}
