/** One request and its whole answer over a dispatcher: with one deadline, one size limit, no redirects, no retries. */
import type { Dispatcher } from 'undici';
import { TransportFailure, toFailure, type Way } from './failure.js';

/** What goes out; the path is below the origin, prefix and query included. */
export interface Outgoing {
	method: string;
	path: string;
	headers: Readonly<Record<string, string>>;
	body: string | Uint8Array | null;
	/** From here to the last byte of the answer, connecting and waiting for a connection included. */
	timeoutMs: number;
	signal?: AbortSignal | undefined;
}

/** What came back, still encoded. Header names in lower case, repeated ones joined by `, `. */
export interface Raw {
	status: number;
	headers: Readonly<Record<string, string>>;
	body: Buffer;
}

/** Where it goes, and how much may come back. */
export interface Line extends Way {
	dispatcher: Dispatcher;
	maxBytes: number;
}

/** Node takes a longer one for no time at all. */
const maxTimerMs = 2 ** 31 - 1;

/** Throws `TransportFailure`, and the signal's reason when it fires. */
export function dispatch(line: Line, outgoing: Outgoing): Promise<Raw> {
	const { timeoutMs, signal } = outgoing;
	if (signal?.aborted === true) return Promise.reject(signal.reason);
	return new Promise((resolve, reject) => {
		const run = new Run(line, {
			done: (raw) => {
				stopWaiting();
				resolve(raw);
			},
			failed: (error) => {
				stopWaiting();
				reject(error);
			},
		});
		// undici's own timeouts begin anew with each byte; a server that drips would never meet them.
		const timer = setTimeout(
			() => run.giveUp('timeout', `no whole answer within ${timeoutMs} ms`),
			Math.min(timeoutMs, maxTimerMs),
		);
		const onAbort = () => run.stop(signal?.reason);
		signal?.addEventListener('abort', onAbort, { once: true });
		const stopWaiting = () => {
			clearTimeout(timer);
			signal?.removeEventListener('abort', onAbort);
		};
		run.start(outgoing);
	});
}

interface Ends {
	done(raw: Raw): void;
	failed(error: unknown): void;
}

/** undici tells of an exchange call by call: this gathers them, and ends once. */
class Run implements Dispatcher.DispatchHandler {
	readonly #line: Line;
	readonly #ends: Ends;
	#controller: Dispatcher.DispatchController | null = null;
	#status = 0;
	#headers: Record<string, string> = {};
	#chunks: Buffer[] = [];
	#size = 0;
	#hasEnded = false;

	constructor(line: Line, ends: Ends) {
		this.#line = line;
		this.#ends = ends;
	}

	start({ method, path, headers, body }: Outgoing): void {
		const request: Dispatcher.DispatchOptions = {
			origin: this.#line.origin,
			path,
			// Any upper-case word is a method to the wire.
			method: method as Dispatcher.HttpMethod,
			headers,
			body,
			// One deadline holds over the whole call instead.
			headersTimeout: 0,
			bodyTimeout: 0,
		};
		try {
			this.#line.dispatcher.dispatch(request, this);
		} catch (error) {
			this.onResponseError(null, error instanceof Error ? error : new Error(String(error)));
		}
	}

	giveUp(kind: 'timeout' | 'too_large', what: string): void {
		const written = this.#controller !== null;
		const text = written ? what : `no connection, and ${what}`;
		this.stop(new TransportFailure(kind, `${this.#line.origin}: ${text}`, { written }));
	}

	stop(reason: unknown): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		this.#ends.failed(reason);
		this.#controller?.abort(new Error('given up'));
	}

	/** Called right before the first byte is written. */
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
			Object.entries(headers).map(([name, value]) => [name.toLowerCase(), joined(value)]),
		);
	}

	onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
		this.#size += chunk.length;
		if (this.#size > this.#line.maxBytes) this.giveUp('too_large', tooLarge(this.#line.maxBytes));
		else this.#chunks.push(chunk);
	}

	onResponseEnd(): void {
		if (this.#hasEnded) return;
		this.#hasEnded = true;
		const raw = { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks) };
		// undici frees the connection one turn later: a call made before that would open another one.
		setImmediate(() => setImmediate(() => this.#ends.done(raw)));
	}

	onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
		this.stop(toFailure(error, this.#line, this.#controller !== null));
	}
}

/** How an answer over the limit is told. */
export function tooLarge(maxBytes: number): string {
	return `the answer has more than ${maxBytes} bytes`;
}

function joined(value: string | string[] | undefined): string {
	return Array.isArray(value) ? value.join(', ') : (value ?? '');
}
