/** The wire itself: one exchange, whatever it answers. */
import type { Exchange } from '../../api/wire.js';
import { headerNames } from '../errors.js';
import { traceAnswer } from './attempt.js';
import { TransportFailure, toApiError } from './failure.js';
import type { Line } from './line.js';
import { quote, secretsOf } from './quote.js';

/** With the line's token unless the request says otherwise; no retries, and redirects are answers. */
export function createExchange(line: Line): Exchange {
	return async (request) => {
		const { method, path, body = null, signal } = request;
		const token = request.token === undefined ? line.token : request.token;
		const secrets = [line.token, token].flatMap((one) => secretsOf(one, null));
		line.trace(`> ${method} ${quote(line.prefix + path, secrets)}`);
		try {
			const answer = await line.transport.exchange({
				method,
				path: line.prefix + path,
				headers: merged(
					{
						Accept: 'application/json',
						'Accept-Encoding': 'gzip',
						...(token !== null && { [headerNames.token]: token }),
					},
					request.headers ?? {},
				),
				body,
				timeoutMs: line.timeoutMs,
				signal,
			});
			traceAnswer(line, answer, secrets);
			return answer;
		} catch (error) {
			if (!(error instanceof TransportFailure)) throw error;
			line.trace(`< nothing: ${error.message}`);
			throw toApiError(error);
		}
	};
}

/** Names are compared without regard to case; what the caller gives wins. */
function merged(
	own: Readonly<Record<string, string>>,
	given: Readonly<Record<string, string>>,
): Record<string, string> {
	const names = new Set(Object.keys(given).map((name) => name.toLowerCase()));
	const kept = Object.entries(own).filter(([name]) => !names.has(name.toLowerCase()));
	return { ...Object.fromEntries(kept), ...given };
}
