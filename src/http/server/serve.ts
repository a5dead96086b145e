/** From a request on a socket to its answer: the protocol's own limits, the public pages, then the API. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { formatDateTime } from '../../api/datetime.js';
import type { HttpRequest, HttpResponse, PublicHandler } from '../messages.js';
import { asApiError, json, protocolError, refusal } from './answers.js';
import type { One, Serving } from './listen.js';
import type { Upload } from './upload.js';

/** Forms of one-click unsubscribing are short. */
const maxPublicBody = 64 * 1024;

/** Never throws. */
export async function answerFor(
	serving: Serving,
	one: One,
	{ id, upload }: { id: string; upload: Upload },
): Promise<HttpResponse> {
	const { request, signal } = one;
	const refused = refuseEarly(serving, request);
	if (refused !== null) return refused;
	const target = request.url ?? '/';
	const method = request.method ?? 'GET';
	const page = serving.publicPages === null ? null : publicPath(target);
	if (page !== null && serving.publicPages !== null) {
		const shown = await askPages(serving, serving.publicPages, { one, page, upload, id });
		if (shown !== null) return { ...shown, about: { path: maskToken(page.path), token: null, error: null } };
	}
	const asked: HttpRequest = { method, target, headers: headersOf(request), body: upload.read, signal, id };
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
		return json(503, { detail: 'Too many requests at once. Try again.' }, { 'Retry-After': '1' });
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
	{ one, page, upload, id }: { one: One; page: Page; upload: Upload; id: string },
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
		const { message, stack } = error instanceof Error ? error : new Error(String(error));
		const time = `${formatDateTime(serving.clock.now())}Z`;
		serving.log({ time, level: 'error', id, path: maskToken(page.path), error: message, stack });
		return json(500, { detail: 'A server error occurred.' }, { 'X-Error-Code': 'server_error' });
	}
}

/** The socket's address, or what the proxy in front says of it: its last word, the others are the client's own. */
export function clientIp(
	{ trustProxy }: Pick<Serving, 'trustProxy'>,
	{ request, connection }: Pick<One, 'request' | 'connection'>,
): string | null {
	const forwarded = String(request.headers['x-forwarded-for'] ?? '');
	const last = trustProxy === true ? forwarded.split(',').at(-1)?.trim() : undefined;
	const address = last !== undefined && isIP(last) !== 0 ? last : connection.remoteAddress;
	// An IPv4 client of a socket that takes both.
	return address?.replace(/^::ffff:(?=\d+\.)/, '') ?? null;
}

function headersOf({ headers }: IncomingMessage): HttpRequest['headers'] {
	return Object.fromEntries(
		Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
	);
}

function maskToken(path: string): string {
	return `${path.slice(0, 3)}…`;
}
