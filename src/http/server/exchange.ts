import { randomUUID } from 'node:crypto';
import type { WireExchange } from '../../api/api.js';
import { monotonicMicros } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import type { HttpRequest, HttpResponse } from '../wire.js';
import { headerNames } from '../wire.js';
import type { Principal } from './authenticate.js';
import type { Match } from './match.js';

export interface Exchange extends HttpRequest {
	readonly id: string;
	match: Match | null;
	principal: Principal | null;
	answered: HttpResponse | null;
	shownPath: string;
	error: string | null;
}

export type Handler = (exchange: Exchange) => Promise<HttpResponse>;

export function createExchange(request: HttpRequest): Exchange {
	return {
		...request,
		id: randomUUID(),
		match: null,
		principal: null,
		answered: null,
		shownPath: '',
		error: null,
	};
}

/** Creates the `AbortSignal` on demand, because creating one takes microseconds. */
export class LazyAbortController {
	#aborted = false;
	#controller: AbortController | null = null;
	readonly #listeners: (() => void)[] = [];

	get aborted(): boolean {
		return this.#aborted;
	}

	get signal(): AbortSignal {
		this.#controller ??= new AbortController();
		if (this.#aborted) this.#controller.abort();
		return this.#controller.signal;
	}

	onAbort(listener: () => void): void {
		if (this.#aborted) listener();
		else this.#listeners.push(listener);
	}

	abort(): void {
		if (this.#aborted) return;
		this.#aborted = true;
		for (const listener of this.#listeners.splice(0)) listener();
		this.#controller?.abort();
	}
}

export function exchangeInProcess(handler: Handler, token: string): WireExchange {
	return async ({ method, path, headers = {}, body, token: own, signal }) => {
		assertWanted(signal);
		const began = monotonicMicros();
		const secret = own === undefined ? token : own;
		const sent = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
		const response = await handler(
			createExchange({
				method: method.toUpperCase(),
				target: path,
				headers: {
					...Object.fromEntries(sent),
					...(secret !== null && { [headerNames.token.toLowerCase()]: secret }),
				},
				body: body === undefined ? null : Buffer.from(body),
				...(signal !== undefined && { signal }),
			}),
		);
		assertWanted(signal, { unanswered: true });
		const received = Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]);
		return {
			status: response.status,
			headers: Object.fromEntries(received),
			body: Buffer.from(response.body ?? ''),
			durationMs: Math.round((monotonicMicros() - began) / 1000),
		};
	};
}

function assertWanted(signal: AbortSignal | undefined, how: { unanswered?: true } = {}): void {
	if (signal?.aborted)
		throw new ApiError('network', 'The request was aborted.', { ...how, cause: signal.reason });
}
