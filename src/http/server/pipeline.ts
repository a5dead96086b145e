import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, steadyOf } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import type { HttpRequest, HttpResponse, PublicHandler, PublicRequest } from '../wire.js';
import { type FileMemory, Upload } from './body.js';
import { type Connection, type Connections, closeLingering, type SocketExchange } from './connection.js';
import { createExchange, type Exchange, type Handler } from './exchange.js';
import type { Budget, Limits, Slots } from './limits.js';
import { originForm } from './match.js';
import { breakOff } from './parser-errors.js';
import {
	asApiError,
	errorResponse,
	isStorageFailure,
	json,
	protocolError,
	type Responder,
} from './respond.js';
import type { Metrics, RequestLog } from './telemetry.js';

export interface ServerParts {
	connections: Connections;
	handler: Handler;
	publicPages: PublicHandler | null;
	responder: Responder;
	limits: Limits;
	slots: Slots;
	budget: Budget;
	files: FileMemory;
	metrics: Metrics | null;
	log: RequestLog;
	clock: Clock;
	isClosing(): boolean;
	endsIdle(): boolean;
}

export type UnknownRequest = Pick<HttpRequest, 'method' | 'target' | 'headers'>;

/** A one-click form is short, and parsing 64 KiB of fields takes milliseconds. */
const maxFormBytes = 4 * 1024;

export class Pipeline {
	readonly #parts: ServerParts;

	constructor(parts: ServerParts) {
		this.#parts = parts;
	}

	enqueue(incoming: IncomingMessage, outgoing: ServerResponse, expectsContinue: boolean): void {
		const { connections } = this.#parts;
		const connection = connections.of(incoming.socket);
		if (connection === null) return;
		const exchange = connections.exchange(connection, { incoming, outgoing, expectsContinue });
		if (!expectsContinue && this.#answerSynchronously(exchange)) return;
		// A client that disconnects is not an error of the server.
		outgoing.on('error', ignore);
		connections.begin(exchange);
		connection.pipeline = connection.pipeline.then(() => this.#answer(exchange));
	}

	/** Half of all requests are for the pixel. Promises would cost more than its answer, so this method uses none. */
	#answerSynchronously(exchange: SocketExchange): boolean {
		const { connections, responder, publicPages, limits, metrics, log, clock, isClosing } = this.#parts;
		const { connection, incoming } = exchange;
		if (publicPages?.synchronously === undefined || isClosing() || !isFree(connection)) return false;
		exchange.began = steadyOf(clock);
		const page = hasBody(incoming) ? null : publicPath(exchange.target);
		if (page === null || refuseEarly(incoming, limits) !== null) return false;
		const response = publicPages.synchronously(publicRequest(exchange, page, exchange.ip));
		if (response === null) return false;
		metrics?.begin()(page.slice(0, 3), response.status);
		exchange.shownPath = maskToken(page);
		exchange.answered = response;
		// The server's shutdown and later requests of this connection wait for this response.
		connections.begin(exchange);
		responder.sendSynchronously(exchange, response, () => {
			connections.finish(exchange);
			log.finished(exchange);
			if (connection.exchanges.size === 0) closeLingering(connection);
		});
		return true;
	}

	/** Never throws, because the connection's next request waits for it. */
	async #answer(exchange: SocketExchange): Promise<void> {
		const { connections, slots, log, clock, endsIdle } = this.#parts;
		const { connection } = exchange;
		exchange.began = steadyOf(clock);
		const upload = new Upload(exchange, this.#parts, () =>
			breakOff(connection, 'ERR_HTTP_REQUEST_TIMEOUT', this.#parts),
		);
		exchange.body = upload.read;
		exchange.answered = await this.#routeAndSend(exchange).catch((error: unknown) => {
			log.failed(exchange, error);
			connection.socket.destroy();
			return null;
		});
		upload.release();
		slots.release(exchange);
		connections.finish(exchange);
		log.finished(exchange);
		// V8 frees most exchanges only in a full garbage collection, so release the response now.
		exchange.answered = null;
		if (connection.exchanges.size > 0) return;
		closeLingering(connection);
		// The response may have begun before the shutdown, without `Connection: close`.
		if (endsIdle() && !connection.isFinalSent) connection.socket.end();
	}

	async #routeAndSend(exchange: SocketExchange): Promise<HttpResponse | null> {
		const { incoming, connection } = exchange;
		if (exchange.abort.aborted) return null;
		const response = await this.#route(exchange);
		this.#parts.slots.release(exchange);
		// `finalResponse` is the answer to a request that did not arrive completely.
		if (connection.finalResponse !== null && !incoming.complete) {
			exchange.error = connection.finalResponse.code;
			return { status: connection.finalResponse.status, headers: {}, body: null };
		}
		if (connection.socket.writable) await this.#parts.responder.send(exchange, response);
		return response;
	}

	async #route(exchange: SocketExchange): Promise<HttpResponse> {
		const { publicPages, limits, slots, metrics, handler } = this.#parts;
		const refused = refuseEarly(exchange.incoming, limits);
		if (refused !== null) return refused;
		const page = publicPages === null ? null : publicPath(exchange.target);
		const full = await slots.acquire(exchange).catch(asApiError);
		if (full instanceof ApiError) return errorResponse(full);
		if (page === null || publicPages === null) return handler(exchange);
		const finish = metrics?.begin();
		const response = await this.#askPages(publicPages, exchange, page);
		finish?.(page.slice(0, 3), response?.status ?? 404);
		if (response === null) return handler(exchange);
		exchange.shownPath = maskToken(page);
		return response;
	}

	async #askPages(
		pages: PublicHandler,
		exchange: SocketExchange,
		page: string,
	): Promise<HttpResponse | null> {
		const { limits, log } = this.#parts;
		const { body: read } = exchange;
		const body = async () => (typeof read === 'function' ? read(maxFormBytes, limits.formTimeoutMs) : read);
		try {
			return await pages({ ...publicRequest(exchange, page, exchange.ip), body });
		} catch (error) {
			const known = asApiError(error);
			if (known === null || isStorageFailure(known)) log.failed(exchange, error, maskToken(page));
			if (known !== null) return errorResponse(known);
			return json(500, { detail: 'A server error occurred.' }, { 'X-Error-Code': 'server_error' });
		}
	}

	async routeUnknown(
		request: UnknownRequest,
		ip: string | null,
	): Promise<Exchange & { answered: HttpResponse }> {
		const { publicPages, handler } = this.#parts;
		const exchange = createExchange({ ...request, body: null });
		const page = publicPath(request.target);
		if (page !== null && publicPages !== null) {
			const answered = await publicPages(publicRequest(request, page, ip)).catch(() => null);
			if (answered !== null) return Object.assign(exchange, { answered, shownPath: maskToken(page) });
		}
		return Object.assign(exchange, { answered: await handler(exchange) });
	}
}

/** False while the client has unread responses, so that further responses do not fill the memory. */
function isFree({ exchanges, finalResponse, socket }: Connection): boolean {
	return exchanges.size === 0 && finalResponse === null && socket.writableLength === 0;
}

function ignore(): void {}

function refuseEarly(request: IncomingMessage, limits: Pick<Limits, 'maxUrlBytes'>): HttpResponse | null {
	if (Buffer.byteLength(request.url ?? '') > limits.maxUrlBytes)
		return protocolError(414, 'too_large', 'The URL of the request is too long.');
	if (request.httpVersion === '1.1' && request.headers.host === undefined)
		return protocolError(400, 'parse_error', 'The Host header is missing.');
	const { expect } = request.headers;
	if (expect !== undefined && expect.toLowerCase() !== '100-continue')
		return protocolError(417, 'invalid', 'The server supports only Expect: 100-continue.');
	return null;
}

function hasBody({ headers }: IncomingMessage): boolean {
	return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

function publicPath(sent: string): string | null {
	const target = originForm(sent);
	if (!/^\/[ocuv]\//.test(target)) return null;
	const at = target.indexOf('?');
	return at < 0 ? target : target.slice(0, at);
}

function publicRequest({ method, headers }: UnknownRequest, path: string, ip: string | null): PublicRequest {
	return { method, path, headers, ip };
}

function maskToken(path: string): string {
	return `${path.slice(0, 3)}…`;
}
