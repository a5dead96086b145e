/** One operation of the table as requests: address, tries, pauses. What the answer holds is the caller's. */
import { ApiError } from '../../api/errors.js';
import { pathOf, type Route, routes } from '../routes.js';
import { attempt, type Refused, type Try } from './attempt.js';
import type { Ask, Line, Success } from './line.js';
import { secretsOf } from './quote.js';
import type { Asked } from './refusals.js';
import { nextTry } from './retry.js';
import { pause } from './wait.js';

/** Throws `ApiError`, and the signal's reason. */
export async function send(line: Line, ask: Ask): Promise<Success> {
	const route: Route = routes[ask.operation];
	const path = line.prefix + pathOf(ask.operation, ask.values);
	const asked: Asked = { method: route.method, path, secrets: secretsOf(line.token, ask.body) };
	const isRepeatable = ask.isRepeatable ?? isRepeatableRoute(route);
	let waitedMs = 0;
	let wasUnclear = false;
	for (let tries = 1; ; tries++) {
		const tried = settled(await attempt(line, ask, asked), { ask, wasUnclear });
		if (tried.kind === 'success' || (wasUnclear && isGone(tried, route))) {
			return { answer: tried.answer, asked };
		}
		if (tried.kind === 'refused' && tried.verdict === 'unprocessed' && ask.call?.onThrottled === 'throw')
			throw wasUnclear ? unclear(tried.error) : tried.error;
		const random = line.random();
		const wait = nextTry({ ...tried, tries, waitedMs, isRepeatable, retries: line.retries, random });
		if (wait === null) throw wasUnclear && !isDefinite(tried) ? unclear(tried.error) : tried.error;
		wasUnclear ||= tried.verdict === 'unclear';
		line.trace(`* again in ${wait} ms`);
		await pause(wait, ask.call?.signal);
		waitedMs += wait;
	}
}

/** After a DELETE whose outcome nobody knew, a 404 says that it was carried out. */
function isGone(tried: Exclude<Try, { kind: 'success' }>, { method }: Route): tried is Refused {
	return method === 'DELETE' && tried.kind === 'refused' && tried.status === 404;
}

/** An answer to what is repeatable speaks for the earlier tries too. */
function isDefinite(tried: Exclude<Try, { kind: 'success' }>): boolean {
	return tried.kind === 'refused' && tried.verdict === 'final';
}

/** The last try says nothing about an earlier one that may have been carried out. */
function unclear({ code, message, fields, http, retryAfterMs, cause }: ApiError): ApiError {
	return new ApiError(code, message, {
		cause,
		unanswered: true,
		...(fields !== null && { fields }),
		...(http !== null && { http }),
		...(retryAfterMs !== null && { retryAfterMs }),
	});
}

/** A 409 for a key we sent before: the earlier try is still at work (api-decisions 29), and its answer is what we want. */
function settled(tried: Try, { ask, wasUnclear }: { ask: Ask; wasUnclear: boolean }): Try {
	const isStillRunning =
		ask.operation === 'send' && wasUnclear && tried.kind === 'refused' && tried.status === 409;
	return isStillRunning ? { ...tried, verdict: 'unprocessed' } : tried;
}

function isRepeatableRoute({ method, isUnsafe }: Route): boolean {
	return isUnsafe !== true && (method === 'GET' || method === 'PUT' || method === 'DELETE');
}
