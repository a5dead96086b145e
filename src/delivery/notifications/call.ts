/** One HTTP call to a webhook's URL: guarded, bounded, never following a redirect. */
import { lookup as systemLookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import { isPublicAddress, refuseTarget } from './target.js';

/** Assumption: 15 s a call, 64 KiB of answer kept; the service document shows neither. */
const defaultTimeoutMs = 15_000;
const maxAnswerBytes = 64 * 1024;

export interface NotificationCall {
	url: string;
	body: string;
	headers: Readonly<Record<string, string>>;
	/** Basic authorization, when the webhook has it enabled. */
	credentials: { login: string; password: string } | null;
	/** True only by the engine setting of that name. */
	allowPrivate: boolean;
	timeoutMs?: number;
}

/** `status` null: there was no answer, `error` says why. Never throws. */
export interface NotificationAnswer {
	status: number | null;
	error: string | null;
	durationMs: number;
}

export async function callWebhook(call: NotificationCall): Promise<NotificationAnswer> {
	const began = performance.now();
	const answer = (status: number | null, error: string | null): NotificationAnswer => ({
		status,
		error,
		durationMs: Math.round(performance.now() - began),
	});
	try {
		// Node resolves only names through `lookup`: a literal address has to be looked at here.
		const refused = call.allowPrivate ? null : await refuseTarget(call.url);
		if (refused !== null) return answer(null, refused);
		return answer(await post(call), null);
	} catch (error) {
		return answer(null, error instanceof Error ? error.message : String(error));
	}
}

function post(call: NotificationCall): Promise<number> {
	const url = new URL(call.url);
	const timeoutMs = call.timeoutMs ?? defaultTimeoutMs;
	const options: RequestOptions = {
		method: 'POST',
		agent: false,
		signal: AbortSignal.timeout(timeoutMs),
		headers: {
			...call.headers,
			'content-type': 'application/json',
			'content-length': Buffer.byteLength(call.body),
		},
		...(call.credentials !== null && { auth: `${call.credentials.login}:${call.credentials.password}` }),
		...(!call.allowPrivate && { lookup: publicLookup }),
	};
	return new Promise((resolve, reject) => {
		const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, options);
		request.once('error', (error) =>
			reject(
				error.name === 'AbortError' || error.name === 'TimeoutError'
					? new Error(`no answer within ${timeoutMs} ms`)
					: error,
			),
		);
		request.once('response', (response) => drain(response, resolve, reject));
		request.end(call.body);
	});
}

/** Reads the answer to its end or to the cap, so that a target that pours for ever costs nothing. */
function drain(
	response: IncomingMessage,
	resolve: (status: number) => void,
	reject: (error: Error) => void,
): void {
	const status = response.statusCode ?? 0;
	let bytes = 0;
	response.on('data', (chunk: Buffer) => {
		bytes += chunk.length;
		if (bytes <= maxAnswerBytes) return;
		response.destroy();
		resolve(status);
	});
	response.once('end', () => resolve(status));
	response.once('error', reject);
}

// The address that is connected to is the one that is checked: a name may answer differently the second time.
const publicLookup: LookupFunction = (hostname, options, callback) => {
	systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
		if (error !== null) return callback(error, '');
		const bad = addresses.find(({ address }) => !isPublicAddress(address));
		const [first] = addresses;
		if (bad !== undefined || first === undefined) {
			return callback(new Error(`${hostname} points to a private, loopback or reserved address`), '');
		}
		if (options.all === true) return callback(null, addresses);
		return callback(null, first.address, first.family);
	});
};
