/** The wire without a socket: requests of this process, with the answers of a deployment. */
import { monotonicMicros } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import type { WireExchange } from '../../api/wire.js';
import { headerNames } from '../errors.js';
import { createExchange, type Handler } from './exchange.js';

/** Requests carry `token` unless they have their own; with `token: null` they carry none. Aborting rejects. */
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
