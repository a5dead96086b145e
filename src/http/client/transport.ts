import type { Dispatcher } from 'undici';
import { codeOf } from '../../api/errors.js';
import { canParseUrl, isLoopback } from '../../api/schema/url.js';
import { TransportFailure, toFailure, type Way } from './errors.js';

const maxAnswerBytes = 64 * 1024 * 1024;
const maxConnectMs = 10_000;
/** A bulk import keeps 16 requests in flight. */
const connections = 16;

interface TransportOptions {
	baseUrl: URL;
	timeoutMs: number;
	caCert: string | null;
	insecure: boolean;
	proxy: string | null;
	env: Readonly<Record<string, string | undefined>>;
	maxBytes?: number;
}

export interface Answer {
	status: number;
	headers: Readonly<Record<string, string>>;
	body: Buffer;
	durationMs: number;
}

export interface Transport {
	exchange(outgoing: Outgoing): Promise<Answer>;
	close(): Promise<void>;
}

export function createTransport(options: TransportOptions): Transport {
	const { origin } = options.baseUrl;
	const maxBytes = options.maxBytes ?? maxAnswerBytes;
	const proxy = proxyFor(options);
	const isNamed = proxy !== null && canParseUrl(proxy);
	const through = isNamed ? ` through the proxy ${new URL(proxy).host}` : '';
	let opened: Promise<Dispatcher> | null = null;
	return {
		exchange: async (outgoing) => {
			opened ??= openDispatcher(options, proxy);
			const dispatcher = await opened;
			const started = process.hrtime();
			const raw = await new Run({ dispatcher, origin, through, maxBytes }, outgoing).answer;
			const encoding = raw.headers['content-encoding'] ?? '';
			const body = await decompress(raw.body, encoding, { maxBytes, origin });
			const [seconds, nanos] = process.hrtime(started);
			return { ...raw, body, durationMs: seconds * 1_000 + nanos / 1_000_000 };
		},
		close: async () => {
			const dispatcher = await opened?.catch(() => null);
			await dispatcher?.destroy();
		},
	};
}

async function openDispatcher(options: TransportOptions, proxy: string | null): Promise<Dispatcher> {
	const tls = await tlsOptions(options);
	const shared = {
		connections,
		allowH2: false,
		connect: { ...tls, timeout: Math.min(options.timeoutMs, maxConnectMs) },
	};
	if (proxy === null) {
		const { openPool } = await import('./direct.js');
		return openPool(options.baseUrl.origin, shared);
	}
	if (!canParseUrl(proxy) || !/^(https?|socks5?):/i.test(proxy)) {
		const text = 'the proxy is not a URL such as http://host:port';
		throw new TransportFailure('untrusted', text, { written: false });
	}
	const { openProxyAgent } = await import('./proxied.js');
	return openProxyAgent({ ...shared, uri: proxy, requestTls: tls, proxyTls: tls });
}

async function tlsOptions({ caCert, insecure }: TransportOptions) {
	const unchecked = insecure ? ({ rejectUnauthorized: false } as const) : {};
	if (caCert === null) return unchecked;
	const { rootCertificates } = await import('node:tls');
	return { ca: [...rootCertificates, caCert], ...unchecked };
}

export interface Outgoing {
	method: string;
	path: string;
	headers: Readonly<Record<string, string>>;
	body: string | Uint8Array | null;
	timeoutMs: number;
	signal?: AbortSignal | undefined;
}

type Raw = Omit<Answer, 'durationMs'>;

interface Destination extends Way {
	dispatcher: Dispatcher;
	maxBytes: number;
}

/** Node fires a timer with a longer delay after 1 ms. */
const maxTimerMs = 2 ** 31 - 1;

class Run implements Dispatcher.DispatchHandler {
	readonly answer: Promise<Raw>;
	readonly #destination: Destination;
	#resolve: (raw: Raw) => void = () => undefined;
	#reject: (reason: unknown) => void = () => undefined;
	#controller: Dispatcher.DispatchController | null = null;
	#status = 0;
	#headers: Record<string, string> = {};
	#chunks: Buffer[] = [];
	#size = 0;
	#hasEnded = false;

	constructor(destination: Destination, { method, path, headers, body, timeoutMs, signal }: Outgoing) {
		this.#destination = destination;
		this.answer = new Promise<Raw>((resolve, reject) => {
			this.#resolve = resolve;
			this.#reject = reject;
		});
		// undici's timeouts restart with each byte, so a slow server would never reach them.
		const giveUp = () => this.#giveUp('timeout', `no complete answer within ${timeoutMs} ms`);
		const timer = setTimeout(giveUp, Math.min(timeoutMs, maxTimerMs));
		const onAbort = () => this.#stop(signal?.reason);
		signal?.addEventListener('abort', onAbort, { once: true });
		const stopWaiting = () => {
			clearTimeout(timer);
			signal?.removeEventListener('abort', onAbort);
		};
		this.answer.then(stopWaiting, stopWaiting);
		if (signal?.aborted === true) {
			onAbort();
			return;
		}
		const { origin, dispatcher } = destination;
		const request: Dispatcher.DispatchOptions = {
			origin,
			path,
			method: method as Dispatcher.HttpMethod, // the type lists only common methods
			headers,
			body,
			headersTimeout: 0,
			bodyTimeout: 0,
		};
		try {
			dispatcher.dispatch(request, this);
		} catch (error) {
			this.onResponseError(null, error instanceof Error ? error : new Error(String(error)));
		}
	}

	#giveUp(kind: 'timeout' | 'too_large', what: string): void {
		const written = this.#controller !== null;
		const text = written ? what : `no connection, and ${what}`;
		this.#stop(new TransportFailure(kind, `${this.#destination.origin}: ${text}`, { written }));
	}

	#stop(reason: unknown): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		this.#reject(reason);
		this.#controller?.abort(new Error('given up'));
	}

	onRequestStart(controller: Dispatcher.DispatchController): void {
		this.#controller = controller;
		if (this.#hasEnded) controller.abort(new Error('given up'));
	}

	onResponseStart(
		_: Dispatcher.DispatchController,
		status: number,
		headers: Record<string, string | string[] | undefined>,
	): void {
		this.#status = status;
		this.#headers = Object.fromEntries(
			Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value ?? ''].flat().join(', ')]),
		);
	}

	onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
		this.#size += chunk.length;
		const { maxBytes } = this.#destination;
		if (this.#size > maxBytes) this.#giveUp('too_large', tooLarge(maxBytes));
		else this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		const raw = { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks) };
		// Resolve after undici has freed the connection. Otherwise the next request would open another one.
		setImmediate(() => setImmediate(() => this.#resolve(raw)));
	}

	onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
		this.#stop(toFailure(error, this.#destination, this.#controller !== null));
	}
}

function tooLarge(maxBytes: number): string {
	return `the answer is larger than ${maxBytes} bytes`;
}

/** The limit applies to decoded bytes: 300 KB of gzip can decode to 300 MB. */
async function decompress(body: Buffer, encoding: string, limit: { maxBytes: number; origin: string }) {
	const name = encoding.trim().toLowerCase();
	if (name === '' || name === 'identity' || body.length === 0) return body;
	const refuse = (kind: 'garbled' | 'too_large', text: string, cause?: unknown) =>
		new TransportFailure(kind, `${limit.origin}: ${text}`, { written: true, cause });
	if (name !== 'gzip' && name !== 'x-gzip')
		throw refuse('garbled', 'the answer has an encoding that was not requested');
	const { gunzip } = await import('node:zlib');
	return new Promise<Buffer>((resolve, reject) => {
		gunzip(body, { maxOutputLength: limit.maxBytes }, (error, decoded) => {
			if (error === null) resolve(decoded);
			else if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE')
				reject(refuse('too_large', tooLarge(limit.maxBytes), error));
			else reject(refuse('garbled', `the answer is not valid ${name}`, error));
		});
	});
}

export interface ProxyQuestion {
	baseUrl: URL;
	proxy: string | null;
	env: Readonly<Record<string, string | undefined>>;
}

/** Null: connect directly. `--proxy` overrides NO_PROXY. */
export function proxyFor({ baseUrl, proxy, env }: ProxyQuestion): string | null {
	if (isLoopback(baseUrl.hostname)) return null;
	const read = (name: string) => env[name.toLowerCase()] ?? env[name] ?? '';
	if (proxy === null && isExempt(baseUrl, read('NO_PROXY'))) return null;
	const ofTls = baseUrl.protocol === 'https:' ? read('HTTPS_PROXY') : '';
	const url = proxy ?? (ofTls || read('HTTP_PROXY'));
	if (url === '') return null;
	return url.includes('://') ? url : `http://${url}`;
}

function isExempt({ protocol, hostname, port }: URL, noProxy: string): boolean {
	if (noProxy === '*') return true;
	const own = port === '' ? (protocol === 'https:' ? '443' : '80') : port;
	return noProxy.split(/[,\s]/).some((entry) => {
		const [, named = entry, at = own] = /^(.+):(\d+)$/.exec(entry) ?? [];
		const host = named.replace(/^\*?\./, '').toLowerCase();
		return host !== '' && at === own && (hostname === host || hostname.endsWith(`.${host}`));
	});
}
