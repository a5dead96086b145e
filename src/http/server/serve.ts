/** From a request on a socket to its answer: the protocol's own limits, the public pages, then the API. */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../api/errors.js';
import type { HttpRequest, HttpResponse, PublicHandler, PublicRequest } from '../messages.js';
import { clientIp } from './address.js';
import { asApiError, json, protocolError, refusal } from './answers.js';
import { errorLine } from './log.js';
import type { One, Serving } from './serving.js';
import type { Upload } from './upload.js';

/** Forms of one-click unsubscribing are short. */
const maxPublicBody = 64 * 1024;

/** Never throws. */
export async function answerFor(serving: Serving, one: One, upload: Upload): Promise<HttpResponse> {
	const { request, leaving, id } = one;
	const refused = refuseEarly(serving, request);
	if (refused !== null) return refused;
	const target = request.url ?? '/';
	const method = request.method ?? 'GET';
	const page = serving.publicPages === null ? null : publicPath(target);
	if (page !== null && serving.publicPages !== null) {
		const finish = serving.metrics?.begin();
		const shown = await askPages(serving, serving.publicPages, { one, page, upload });
		finish?.(page.path.slice(0, 3), shown?.status ?? 404);
		if (shown !== null) return { ...shown, about: { path: maskToken(page.path), token: null, error: null } };
	}
	const asked: HttpRequest = {
		method,
		target,
		headers: headersOf(request),
		body: upload.read,
		get signal() {
			return leaving.signal();
		},
		id,
	};
	return serving.handler(asked);
}

/** What is refused whatever it is for; null: nothing speaks against it. */
export function refuseEarly({ limits, connections }: Serving, request: IncomingMessage): HttpResponse | null {
	if (Buffer.byteLength(request.url ?? '') > limits.maxUrlBytes)
		return protocolError(414, 'too_large', 'The URL of the request is too long.');
	if (request.httpVersion === '1.1' && request.headers.host === undefined)
		return protocolError(400, 'parse_error', 'The Host header is missing.');
	const { expect } = request.headers;
	if (expect !== undefined && expect.toLowerCase() !== '100-continue')
		return protocolError(417, 'invalid', 'This expectation cannot be met.');
	if (connections.underWay() > limits.maxRequests)
		return refusal(new ApiError('unavailable', 'Too many requests at once. Try again.'));
	return null;
}

/** The address of a page that mails link to. */
export interface Page {
	path: string;
	/** Without the question mark. */
	search: string;
}

/** Null: it is none. */
export function publicPath(target: string): Page | null {
	if (!/^\/[ocuv]\//.test(target)) return null;
	const at = target.indexOf('?');
	const path = at < 0 ? target : target.slice(0, at);
	return { path, search: at < 0 ? '' : target.slice(at + 1) };
}

/** A request for a page; its body is for who read it to add. */
export function publicRequest(
	serving: Serving,
	{ request, connection }: Pick<One, 'request' | 'connection'>,
	{ path, search }: Page,
): PublicRequest {
	return {
		method: request.method ?? 'GET',
		path,
		get query() {
			return new URLSearchParams(search);
		},
		headers: headersOf(request),
		body: null,
		ip: clientIp(serving, { request, connection }),
	};
}

async function askPages(
	serving: Serving,
	pages: PublicHandler,
	{ one, page, upload }: { one: One; page: Page; upload: Upload },
): Promise<HttpResponse | null> {
	const { request } = one;
	try {
		const body = request.method === 'POST' ? await upload.read(maxPublicBody) : null;
		return await pages(Object.assign(publicRequest(serving, one, page), { body }));
	} catch (error) {
		const known = asApiError(error);
		if (known !== null) return refusal(known);
		serving.log({ ...errorLine(serving, one, error), path: maskToken(page.path) });
		return json(500, { detail: 'A server error occurred.' }, { 'X-Error-Code': 'server_error' });
	}
}

/** Of all headers node gives Set-Cookie alone as a list, and no client sends it. */
function headersOf({ headers }: IncomingMessage): HttpRequest['headers'] {
	if (headers['set-cookie'] === undefined) return headers as HttpRequest['headers'];
	const { 'set-cookie': _, ...rest } = headers;
	return rest as HttpRequest['headers'];
}

/** A path for the log: what follows the first letters is a token. */
export function maskToken(path: string): string {
	return `${path.slice(0, 3)}…`;
}
