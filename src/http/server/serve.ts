/** From a request on a socket to its answer: the protocol's own limits, the public pages, then the API. */
import type { IncomingMessage } from 'node:http';
import { ApiError } from '../../api/errors.js';
import type { HttpRequest, HttpResponse, PublicHandler } from '../messages.js';
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

function refuseEarly({ limits, connections }: Serving, request: IncomingMessage): HttpResponse | null {
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

interface Page {
	path: string;
	query: URLSearchParams;
}

function publicPath(target: string): Page | null {
	if (!/^\/[ocuv]\//.test(target)) return null;
	const at = target.indexOf('?');
	const path = at < 0 ? target : target.slice(0, at);
	return { path, query: new URLSearchParams(at < 0 ? '' : target.slice(at + 1)) };
}

async function askPages(
	serving: Serving,
	pages: PublicHandler,
	{ one, page, upload }: { one: One; page: Page; upload: Upload },
): Promise<HttpResponse | null> {
	const { request } = one;
	try {
		return await pages({
			method: request.method ?? 'GET',
			...page,
			headers: headersOf(request),
			body: request.method === 'POST' ? await upload.read(maxPublicBody) : null,
			ip: clientIp(serving, one),
		});
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

function maskToken(path: string): string {
	return `${path.slice(0, 3)}…`;
}
