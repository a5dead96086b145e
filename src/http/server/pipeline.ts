/** Passes a request through the limits of the protocol, the public pages, then the API. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, steadyOf } from '../../api/datetime.js';
import { ApiError } from '../../api/errors.js';
import type { HttpRequest, HttpResponse, PublicHandler, PublicRequest } from '../wire.js';
import type { FileMemory } from './body.js';
import { createUpload, type Upload } from './body.js';
import { type Connection, type Connections, closeLingering, type SocketExchange } from './connection.js';
import { createExchange, type Exchange, type Handler } from './exchange.js';
import type { Budget, Limits, Slots } from './limits.js';
import { originForm } from './match.js';
import type { ParserErrors } from './parser-errors.js';
import {
	asApiError,
	errorResponse,
	isStorageFailure,
	json,
	protocolError,
	type Responder,
} from './respond.js';
import type { Metrics, RequestLog } from './telemetry.js';

interface PipelineOptions {
	connections: Connections;
	router: Router;
	responder: Responder;
	parserErrors: ParserErrors;
	slots: Slots;
	budget: Budget;
	files: FileMemory;
	log: RequestLog;
	clock: Clock;
	isClosing(): boolean;
	endsIdle(): boolean;
}

type Enqueue = (incoming: IncomingMessage, outgoing: ServerResponse, expectsContinue: boolean) => void;

export function createPipeline(options: PipelineOptions): Enqueue {
	const { connections, router, responder, parserErrors, slots, log, clock } = options;

	/** Never throws, because the connection's next request waits for it. */
	const answer = async (exchange: SocketExchange) => {
		const { connection } = exchange;
		exchange.began = steadyOf(clock);
		const upload = uploadOf(exchange);
		exchange.body = upload.read;
		exchange.answered = await routeAndSend(exchange).catch((error: unknown) => {
			log.failed(exchange, error);
			connection.socket.destroy();
			return null;
		});
		upload.release();
		slots.release(exchange);
		connections.finish(exchange);
		log.finished(exchange);
		// V8 frees most exchanges only in a full collection, so release their texts now.
		exchange.answered = null;
		if (connection.exchanges.size > 0) return;
		closeLingering(connection);
		// The response may have been started before the signal to stop, without `Connection: close`.
		if (options.endsIdle() && !connection.isFinalSent) connection.socket.end();
	};

	const uploadOf = (exchange: SocketExchange): Upload => {
		const { incoming, outgoing, abort, peer, connection } = exchange;
		const onRead = () => {
			if (exchange.expectsContinue) outgoing.writeContinue();
			exchange.expectsContinue = false;
			slots.release(exchange);
		};
		const onWhole = () => slots.acquire(exchange);
		const onLate = () => parserErrors.breakOff(connection, 'ERR_HTTP_REQUEST_TIMEOUT');
		return createUpload({
			incoming,
			budget: options.budget,
			files: options.files,
			abort,
			peer,
			onRead,
			onWhole,
			onLate,
		});
	};

	const routeAndSend = async (exchange: SocketExchange): Promise<HttpResponse | null> => {
		const { incoming, connection } = exchange;
		if (exchange.abort.aborted) return null;
		const response = await router.route(exchange);
		slots.release(exchange);
		// The connection's final response answers an interrupted request.
		if (connection.finalResponse !== null && !incoming.complete) {
			exchange.error = connection.finalResponse.code;
			return { status: connection.finalResponse.status, headers: {}, body: null };
		}
		if (connection.socket.writable) await responder.send(exchange, response);
		return response;
	};

	/** Half of all requests are for the pixel, and promises would cost more than its work. */
	const answerSynchronously = (exchange: SocketExchange): boolean => {
		const { connection } = exchange;
		if (options.isClosing() || !isFree(connection)) return false;
		exchange.began = steadyOf(clock);
		const response = router.routeSynchronously(exchange);
		if (response === null) return false;
		exchange.answered = response;
		// The connection's later requests and the server's end wait for this response.
		connections.begin(exchange);
		responder.sendSynchronously(exchange, response, () => {
			connections.finish(exchange);
			log.finished(exchange);
			if (connection.exchanges.size === 0) closeLingering(connection);
		});
		return true;
	};

	return (incoming, outgoing, expectsContinue) => {
		const connection = connections.of(incoming.socket);
		if (connection === null) return;
		const exchange = connections.exchange(connection, { incoming, outgoing, expectsContinue });
		if (!expectsContinue && answerSynchronously(exchange)) return;
		// A client that disconnects is not an error of the server.
		outgoing.on('error', ignore);
		connections.begin(exchange);
		connection.pipeline = connection.pipeline.then(() => answer(exchange));
	};
}

/** False while the client has unread responses, because more of them would pile up. */
function isFree({ exchanges, finalResponse, socket }: Connection): boolean {
	return exchanges.size === 0 && finalResponse === null && socket.writableLength === 0;
}

function ignore(): void {}

interface RouterOptions {
	handler: Handler;
	publicPages: PublicHandler | null;
	limits: Pick<Limits, 'maxUrlBytes' | 'formTimeoutMs'>;
	slots: Slots;
	metrics: Metrics | null;
	log: RequestLog;
}

export interface Router {
	route(exchange: SocketExchange): Promise<HttpResponse>;
	routeUnknown(request: UnknownRequest, ip: string | null): Promise<Exchange & { answered: HttpResponse }>;
	routeSynchronously(exchange: SocketExchange): HttpResponse | null;
}

export type UnknownRequest = Pick<HttpRequest, 'method' | 'target' | 'headers'>;

/** A one-click form is short, and parsing 64 KiB of fields takes milliseconds. */
const maxFormBytes = 4 * 1024;

export function createRouter({ handler, publicPages, limits, slots, metrics, log }: RouterOptions): Router {
	const askPages = async (pages: PublicHandler, exchange: SocketExchange, page: string) => {
		const { body: read } = exchange;
		const body = async () => (typeof read === 'function' ? read(maxFormBytes, limits.formTimeoutMs) : read);
		try {
			return await pages({ ...publicRequest(exchange, page, exchange.ip), body });
		} catch (error) {
			const known = asApiError(error);
			if (known === null || isStorageFailure(known)) log.failed(exchange, error, { path: maskToken(page) });
			if (known !== null) return errorResponse(known);
			return json(500, { detail: 'A server error occurred.' }, { 'X-Error-Code': 'server_error' });
		}
	};
	return {
		route: async (exchange) => {
			const refused = refuseEarly(exchange.incoming, limits);
			if (refused !== null) return refused;
			const page = publicPages === null ? null : publicPath(exchange.target);
			const full = await slots.acquire(exchange).catch(asApiError);
			if (full instanceof ApiError) return errorResponse(full);
			if (page !== null && publicPages !== null) {
				const finish = metrics?.begin();
				const response = await askPages(publicPages, exchange, page);
				finish?.(page.slice(0, 3), response?.status ?? 404);
				if (response !== null) {
					exchange.shownPath = maskToken(page);
					return response;
				}
			}
			return handler(exchange);
		},
		routeUnknown: async (request, ip) => {
			const exchange = createExchange({ ...request, body: null });
			const page = publicPath(request.target);
			if (page !== null && publicPages !== null) {
				const answered = await publicPages(publicRequest(request, page, ip)).catch(() => null);
				if (answered !== null) return Object.assign(exchange, { answered, shownPath: maskToken(page) });
			}
			return Object.assign(exchange, { answered: await handler(exchange) });
		},
		routeSynchronously: (exchange) => {
			const { incoming } = exchange;
			if (publicPages?.synchronously === undefined || hasBody(incoming)) return null;
			const page = publicPath(exchange.target);
			if (page === null || refuseEarly(incoming, limits) !== null) return null;
			const response = publicPages.synchronously(publicRequest(exchange, page, exchange.ip));
			if (response === null) return null;
			metrics?.begin()(page.slice(0, 3), response.status);
			exchange.shownPath = maskToken(page);
			return response;
		},
	};
}

function refuseEarly(request: IncomingMessage, limits: Pick<Limits, 'maxUrlBytes'>): HttpResponse | null {
	if (Buffer.byteLength(request.url ?? '') > limits.maxUrlBytes)
		return protocolError(414, 'too_large', 'The URL of the request is too long.');
	if (request.httpVersion === '1.1' && request.headers.host === undefined)
		return protocolError(400, 'parse_error', 'The Host header is missing.');
	const { expect } = request.headers;
	if (expect !== undefined && expect.toLowerCase() !== '100-continue')
		return protocolError(417, 'invalid', 'This expectation cannot be met.');
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

/** The token follows the first three characters of the path. */
function maskToken(path: string): string {
	return `${path.slice(0, 3)}…`;
}
