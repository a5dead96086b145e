import { lookup as systemLookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { parseRetryAfter } from '../../api/backoff.js';
import { refusalTexts } from '../../api/refusals.js';
import { isPublicAddress, refuseLiteral } from './target.js';

/** Both limits are assumptions. The service document limits neither the time of a call nor the stored answer. */
const defaultTimeoutMs = 15_000;
const maxAnswerBytes = 64 * 1024;

interface NotificationCall {
	url: string;
	body: string;
	headers: Readonly<Record<string, string>>;
	credentials: { login: string; password: string } | null;
	allowPrivate: boolean;
	timeoutMs?: number;
	signal?: AbortSignal;
	lookup?: LookupFunction;
}

export interface NotificationAnswer {
	status: number | null;
	error: string | null;
	text: string | null;
	retryAfterMs: number | null;
	durationMs: number;
}

export async function callWebhook(call: NotificationCall): Promise<NotificationAnswer> {
	const began = performance.now();
	const timed = (answer: Omit<NotificationAnswer, 'durationMs'>): NotificationAnswer => ({
		...answer,
		durationMs: Math.round(performance.now() - began),
	});
	const failed = (error: string) => timed({ status: null, error, text: null, retryAfterMs: null });
	try {
		// Node calls `lookup` only for names, so check a literal address here.
		const refused = call.allowPrivate ? null : refuseLiteral(call.url);
		return refused === null ? timed(await post(call)) : failed(refusalTexts[refused]);
	} catch (error) {
		return failed(whyOf(error));
	}
}

/** If all addresses of a name fail, Node's AggregateError has no message, so join the errors of the addresses. */
function whyOf(error: unknown): string {
	if (error instanceof AggregateError) return error.errors.map(whyOf).join('; ');
	return error instanceof Error ? error.message : String(error);
}

type Answer = Omit<NotificationAnswer, 'durationMs'>;

function post(call: NotificationCall): Promise<Answer> {
	const url = new URL(call.url);
	const timeoutMs = call.timeoutMs ?? defaultTimeoutMs;
	const timeout = AbortSignal.timeout(timeoutMs);
	const options: RequestOptions = {
		method: 'POST',
		agent: false,
		signal: call.signal === undefined ? timeout : AbortSignal.any([timeout, call.signal]),
		headers: {
			...call.headers,
			'content-type': 'application/json',
			'content-length': Buffer.byteLength(call.body),
		},
		...(call.credentials !== null && { auth: `${call.credentials.login}:${call.credentials.password}` }),
		...lookupOf(call),
	};
	return new Promise((resolve, reject) => {
		const fail = (error: Error) =>
			reject(timeout.aborted ? new Error(`no answer within ${timeoutMs} ms`) : error);
		const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options);
		request.once('error', fail);
		request.once('response', (response) => read(response, resolve, fail));
		// Without a listener, Node would close the connection silently, and this call would never end.
		request.once('upgrade', (response, socket) => {
			socket.destroy();
			resolve({ ...headOf(response), text: '' });
		});
		request.end(call.body);
	});
}

function read(
	response: IncomingMessage,
	resolve: (answer: Answer) => void,
	reject: (error: Error) => void,
): void {
	const chunks: Buffer[] = [];
	let bytes = 0;
	const answer = () => {
		const text = Buffer.concat(chunks).subarray(0, maxAnswerBytes).toString('utf8');
		resolve({ ...headOf(response), text });
	};
	response.on('data', (chunk: Buffer) => {
		chunks.push(chunk);
		bytes += chunk.length;
		if (bytes <= maxAnswerBytes) return;
		answer();
		response.destroy();
	});
	response.once('end', answer);
	response.once('error', reject);
}

function headOf({ statusCode, headers }: IncomingMessage): Omit<Answer, 'text'> {
	// A date in `Retry-After` follows the clock of the target, so compare it with the `Date` of the answer.
	const answeredAt = Date.parse(headers.date ?? '');
	return {
		status: statusCode ?? 0,
		error: null,
		retryAfterMs: parseRetryAfter(headers['retry-after'], answeredAt),
	};
}

function lookupOf({ allowPrivate, lookup }: NotificationCall): Pick<RequestOptions, 'lookup'> {
	if (!allowPrivate) return { lookup: publicOnly(lookup ?? systemLookup) };
	return lookup === undefined ? {} : { lookup };
}

// Checks the address that the connection uses, because a separate look-up may return another address.
function publicOnly(lookup: typeof systemLookup | LookupFunction): LookupFunction {
	return (hostname, options, callback) => {
		lookup(hostname, { ...options, all: true }, (error, found) => {
			if (error !== null) return callback(error, '');
			const addresses = typeof found === 'string' ? [{ address: found, family: 4 }] : found;
			const bad = addresses.find(({ address }) => !isPublicAddress(address));
			const [first] = addresses;
			if (bad !== undefined || first === undefined) {
				return callback(new Error(`${hostname} points to a private, loopback or reserved address`), '');
			}
			if (options.all === true) return callback(null, addresses);
			return callback(null, first.address, first.family);
		});
	};
}
