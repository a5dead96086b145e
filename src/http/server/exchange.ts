/** The wire without a socket: requests handed to a handler as a deployment would answer them. */
import { monotonicMicros } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import type { Exchange } from '../../api/wire.js';
import { headerNames } from '../errors.js';
import type { Handler } from '../messages.js';

/** Requests carry `token` unless they bring their own; with `token: null` they carry none. Aborting rejects. */
export function createLocalExchange(handler: Handler, token: string): Exchange {
	return async ({ method, path, headers = {}, body, token: own, signal }) => {
		assertWanted(signal);
		const began = monotonicMicros();
		const secret = own === undefined ? token : own;
		const sent = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
		const answer = await handler({
			method: method.toUpperCase(),
			target: path,
			headers: {
				...Object.fromEntries(sent),
				...(secret !== null && { [headerNames.token.toLowerCase()]: secret }),
			},
			body: body === undefined ? null : Buffer.from(body),
			...(signal !== undefined && { signal }),
		});
		assertWanted(signal);
		const received = Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), value]);
		return {
			status: answer.status,
			headers: Object.fromEntries(received),
			body: Buffer.from(answer.body ?? ''),
			durationMs: Math.round((monotonicMicros() - began) / 1000),
		};
	};
}

function assertWanted(signal: AbortSignal | undefined): void {
	if (signal?.aborted) throw new ApiError('network', 'The request was aborted.', { cause: signal.reason });
}
