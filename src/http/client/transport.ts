/** How a deployment is reached: straight or through a proxy, with whose certificates. Loads the part of undici it needs. */
import type { Dispatcher } from 'undici';
import { decompress } from './decompress.js';
import { dispatch, type Outgoing } from './dispatch.js';
import { TransportFailure } from './failure.js';
import { isProxyUrl, type ProxyChoice, proxyFor, throughText } from './proxy.js';

/** Of an answer, decoded. */
export const maxAnswerBytes = 64 * 1024 * 1024;
/** Waiting for a connection is cut off sooner than waiting for an answer. */
const maxConnectMs = 10_000;
/** A bulk import keeps 16 requests in flight. */
const connections = 16;

/** Where to, and by which way. */
export interface TransportOptions {
	baseUrl: URL;
	timeoutMs: number;
	/** PEM; added to the system's. */
	caCert: string | null;
	insecure: boolean;
	/** Before what the environment says. */
	proxy: string | null;
	env: Readonly<Record<string, string | undefined>>;
	maxBytes?: number;
}

/** A whole answer, decoded of its content encoding. */
export interface Answer {
	status: number;
	headers: Readonly<Record<string, string>>;
	body: Buffer;
	durationMs: number;
}

/** Whole answers to single requests; no retries, no redirects. */
export interface Transport {
	/** Throws `TransportFailure`, or the signal's reason. */
	exchange(outgoing: Outgoing): Promise<Answer>;
	/** Ends what is under way. */
	close(): Promise<void>;
}

/** Nothing is loaded or opened before the first exchange. */
export function createTransport(options: TransportOptions): Transport {
	const { origin } = options.baseUrl;
	const maxBytes = options.maxBytes ?? maxAnswerBytes;
	const proxy = proxyFor(options);
	const through = proxy === null ? '' : throughText(proxy);
	let opened: Promise<Dispatcher> | null = null;
	return {
		exchange: async (outgoing) => {
			opened ??= openDispatcher(options, proxy);
			const dispatcher = await opened;
			const started = process.hrtime();
			const raw = await dispatch({ dispatcher, origin, through, maxBytes }, outgoing);
			const encoding = raw.headers['content-encoding'] ?? '';
			const body = await decompress(raw.body, encoding, { maxBytes, origin });
			const [seconds, nanos] = process.hrtime(started);
			return { ...raw, body, durationMs: seconds * 1_000 + nanos / 1_000_000 };
		},
		close: async () => {
			// What could not be opened has been told to whoever asked for it.
			const dispatcher = await opened?.catch(() => null);
			await dispatcher?.destroy();
		},
	};
}

async function openDispatcher(options: TransportOptions, proxy: ProxyChoice | null): Promise<Dispatcher> {
	const tls = await tlsOptions(options);
	const shared = {
		connections,
		// The build leaves it out.
		allowH2: false,
		connect: { ...tls, timeout: Math.min(options.timeoutMs, maxConnectMs) },
	};
	if (proxy !== null) return openProxied(proxy, shared, tls);
	const { openPool } = await import('./direct.js');
	return openPool(options.baseUrl.origin, shared);
}

async function openProxied(proxy: ProxyChoice, shared: object, tls: object): Promise<Dispatcher> {
	for (const url of [proxy.httpProxy, proxy.httpsProxy]) {
		if (url === '' || isProxyUrl(url)) continue;
		// Not the text itself: it may hold a password.
		throw new TransportFailure('untrusted', 'the proxy is no URL such as http://host:port', {
			written: false,
		});
	}
	const { openProxyAgent } = await import('./proxied.js');
	return openProxyAgent({ ...shared, ...proxy, requestTls: tls, proxyTls: tls });
}

interface TlsOptions {
	ca?: string[];
	rejectUnauthorized?: false;
}

async function tlsOptions({ caCert, insecure }: TransportOptions): Promise<TlsOptions> {
	const unchecked = insecure ? ({ rejectUnauthorized: false } as const) : {};
	if (caCert === null) return unchecked;
	const { rootCertificates } = await import('node:tls');
	return { ca: [...rootCertificates, caCert], ...unchecked };
}
