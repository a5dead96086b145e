/** Loads undici and connects only at the first call. */

import type { Api, WireExchange } from '../../api/api.js';
import type { Wait } from '../../api/backoff.js';
import type { Capabilities, Extensions } from '../../api/capabilities.js';
import { type Clock, systemClock } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import { readJson } from '../../api/json.js';
import { openPaths } from '../../api/operations.js';
import { secretsOf } from '../../api/quote.js';
import { isLoopback } from '../../api/schema/url.js';
import { TransportFailure, toApiError } from './errors.js';
import { documented, extensions } from './operations.js';
import { commonHeaders, type Endpoint, exchange, type Success, sendRequest } from './request.js';
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
	let asked: Promise<Capabilities> | null = null;
	const capabilities = () => {
		asked ??= askCapabilities(endpoint, options.signal).catch((error: unknown) => {
			asked = null;
			throw error;
		});
		return asked;
	};
	return {
		api: { ...documented(endpoint, capabilities), capabilities, close: transport.close },
		exchange: createExchange(endpoint),
		close: transport.close,
	};
}

function warnOnce(baseUrl: URL, { remote, warn, token }: ClientOptions): void {
	const isPlain = baseUrl.protocol === 'http:' && !isLoopback(baseUrl.hostname);
	const what = token === null ? 'the requests' : 'the token';
	if (isPlain) warn(`${baseUrl.origin} uses plain HTTP: anyone on the network can read ${what}`);
	if (remote.insecure && baseUrl.protocol === 'https:')
		warn(`--insecure: the certificate of ${baseUrl.host} is not verified`);
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

const unknownService: Capabilities = { service: 'unknown', idempotentSend: false, ext: {} };

/** If a proxy may have sent the error, throws it. For `unknownService`, `send` would omit the idempotency key. */
async function askCapabilities(endpoint: Endpoint, signal: AbortSignal | undefined): Promise<Capabilities> {
	const call = signal === undefined ? {} : { signal };
	const root = { method: 'GET', path: openPaths.root, isRepeatable: true, call } as const;
	try {
		return capabilitiesIn(await sendRequest({ ...endpoint, token: null }, root), extensions(endpoint));
	} catch (error) {
		if (!(error instanceof ApiError)) throw error;
		const status = error.http?.status ?? 500;
		if (status < 500 && ![408, 425, 429].includes(status)) return unknownService;
		// This GET changes nothing, so the error is not `unanswered`.
		throw error.with({
			code: error.code === 'invalid' ? 'network' : error.code,
			message: `Cannot tell which service this is: ${error.message}`,
			unanswered: false,
		});
	}
}

function capabilitiesIn({ answer }: Success, extensions: Extensions): Capabilities {
	const json = readJson(answer.body);
	if (json.kind !== 'valid' || typeof json.value !== 'object' || json.value === null) return unknownService;
	if (!('service' in json.value) || json.value.service !== 'mailctl') return unknownService;
	const announced = 'extensions' in json.value ? namesOf(json.value.extensions) : new Set<string>();
	const ext = Object.fromEntries(Object.entries(extensions).filter(([name]) => announced.has(name)));
	return { service: 'mailctl', idempotentSend: true, ext };
}

function namesOf(value: unknown): ReadonlySet<string> {
	if (Array.isArray(value)) return new Set(value.filter((name) => typeof name === 'string'));
	return new Set(typeof value === 'object' && value !== null ? Object.keys(value) : []);
}
