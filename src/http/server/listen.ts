/** The server on its sockets: TLS, limits, one log line a request, and an end that cuts nobody off. */
import { randomUUID } from 'node:crypto';
import {
	createServer as createHttpServer,
	type IncomingMessage,
	type Server,
	type ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type Clock, systemClock } from '../../api/datetime.js';
import type { Handler, HttpResponse, PublicHandler } from '../messages.js';
import { type Connection, type Connections, createConnections, part } from './connections.js';
import { limits as defaults, type Limits } from './limits.js';
import { logLine } from './log.js';
import { refusalOf } from './refuse.js';
import { answerFor } from './serve.js';
import { type Budget, createBudget, createUpload } from './upload.js';
import { send } from './write.js';

export interface ListenOptions {
	handler: Handler;
	/** Asked first for `/o/`, `/c/`, `/u/`, `/v/`; null: there are no such pages. */
	publicPages: PublicHandler | null;
	host: string;
	/** 0 = any free one. */
	port: number;
	/** PEM texts; null: plain HTTP. */
	tls: { cert: string; key: string } | null;
	/** One object a request. */
	log(line: object): void;
	/** A proxy in front says who the client is, last in `X-Forwarded-For`. Absent: nobody is believed. */
	trustProxy?: boolean;
	limits?: Partial<Limits>;
	clock?: Clock;
}

export interface HttpServer {
	/** No slash at the end. */
	url: string;
	/** Takes nothing new, answers what is under way; after `graceMs` cuts the rest. Never throws. */
	close(options: { graceMs: number }): Promise<void>;
}

/** Listens. Rejects with node's error when the address is taken or not ours. */
export async function listen(options: ListenOptions): Promise<HttpServer> {
	const limits = { ...defaults, ...options.limits };
	const server = createServer(options.tls, limits);
	const serving: Serving = {
		...options,
		limits,
		clock: options.clock ?? systemClock,
		connections: createConnections(),
		budget: createBudget(limits.maxBytesInFlight),
		carriers: new Set(),
		isClosing: false,
	};
	attach(server, serving);
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(options.port, options.host, () => {
			server.off('error', reject);
			resolve();
		});
	});
	return { url: urlOf(server, options), close: ({ graceMs }) => close(server, serving, graceMs) };
}

export interface Serving extends ListenOptions {
	limits: Limits;
	clock: Clock;
	connections: Connections;
	budget: Budget;
	/** TCP sockets below TLS. */
	carriers: Set<Socket>;
	/** Answers are the last of their connections. */
	isClosing: boolean;
}

function createServer(tls: ListenOptions['tls'], limits: Limits): Server {
	const settings = {
		maxHeaderSize: limits.maxHeaderBytes,
		headersTimeout: limits.headersTimeoutMs,
		requestTimeout: limits.requestTimeoutMs,
		keepAliveTimeout: limits.keepAliveTimeoutMs,
		connectionsCheckingInterval: limits.checkIntervalMs,
		// Refused by us, in JSON.
		requireHostHeader: false,
		noDelay: true,
	};
	return tls === null
		? createHttpServer(settings)
		: createHttpsServer({ ...settings, ...tls, handshakeTimeout: limits.headersTimeoutMs });
}

function attach(server: Server, serving: Serving): void {
	const { connections } = serving;
	server.maxConnections = serving.limits.maxConnections;
	// Below TLS there is a socket of its own, which is not the one that requests name.
	if (serving.tls !== null) server.on('connection', (socket: Socket) => remember(serving.carriers, socket));
	const opened = serving.tls === null ? 'connection' : 'secureConnection';
	server.on(opened, (socket: Socket) => void connections.of(socket));
	const enqueue = (request: IncomingMessage, response: ServerResponse, isWaiting: boolean) => {
		const connection = connections.of(request.socket);
		const signal = connections.begin(connection, request);
		// The far end going away is no error of ours.
		request.on('error', () => {});
		response.on('error', () => {});
		const one: One = { request, response, connection, isWaiting, signal };
		connection.turn = connection.turn.then(() => answer(serving, one));
	};
	server.on('request', (request, response) => enqueue(request, response, false));
	server.on('checkContinue', (request, response) => enqueue(request, response, true));
	server.on('checkExpectation', (request, response) => enqueue(request, response, false));
	server.on('clientError', (error, socket) => complain(connections.of(socket as Socket), error));
}

export interface One {
	request: IncomingMessage;
	response: ServerResponse;
	connection: Connection;
	/** The client sends its body when it is told to. */
	isWaiting: boolean;
	signal: AbortSignal;
}

/** One request from its head to the end of its answer. */
async function answer(serving: Serving, one: One): Promise<void> {
	const { request, response, connection, signal } = one;
	const began = serving.clock.now();
	const id = randomUUID();
	const upload = createUpload({
		request,
		budget: serving.budget,
		signal,
		onRead: () => {
			if (one.isWaiting) response.writeContinue();
			one.isWaiting = false;
		},
	});
	let answered: HttpResponse | null = null;
	if (!signal.aborted) {
		answered = await answerFor(serving, one, { id, upload });
		// What broke off is answered by the refusal at the end of the connection.
		const isBroken = connection.parting !== null && !request.complete;
		if (connection.socket.writable && !isBroken) await send(serving, one, { answer: answered, id });
	}
	upload.release();
	serving.connections.finish(connection, request);
	serving.log(logLine(serving, one, { id, began, answer: answered }));
	if (connection.parting !== null && connection.requests.size === 0) part(connection, connection.parting);
}

/** What is no HTTP, too long or too slow. Answers that are under way come first. */
function complain(connection: Connection, error: Error): void {
	const { socket, requests } = connection;
	const code = 'code' in error ? String(error.code) : '';
	if (code === 'ECONNRESET' || socket.destroyed) {
		socket.destroy();
		return;
	}
	if (connection.parting !== null) return;
	connection.parting = refusalOf(code);
	const last = [...requests].at(-1);
	if (last === undefined) {
		part(connection, connection.parting);
		return;
	}
	const [request, controller] = last;
	// The broken one is the one that is not whole: it will never be. Its answer is the refusal.
	if (request.complete) return;
	controller.abort();
	if (requests.size === 1 && !hasBegun(socket)) part(connection, connection.parting);
}

/** Whether octets of an answer that is not finished are out already: another answer would be taken for its rest. */
function hasBegun(socket: Socket): boolean {
	const current: unknown = '_httpMessage' in socket ? socket._httpMessage : null;
	return (
		typeof current === 'object' &&
		current !== null &&
		'headersSent' in current &&
		current.headersSent === true
	);
}

function remember(sockets: Set<Socket>, socket: Socket): void {
	sockets.add(socket);
	socket.once('close', () => sockets.delete(socket));
}

async function close(server: Server, serving: Serving, graceMs: number): Promise<void> {
	serving.isClosing = true;
	const closed = new Promise<void>((resolve) => server.close(() => resolve()));
	for (const { socket, requests } of serving.connections.all()) if (requests.size === 0) socket.destroy();
	const timer = setTimeout(() => {
		for (const { socket } of serving.connections.all()) socket.destroy();
		for (const socket of serving.carriers) socket.destroy();
	}, graceMs);
	await closed;
	clearTimeout(timer);
}

function urlOf(server: Server, { tls, host }: ListenOptions): string {
	// Listening on a port, the address is no path.
	const { address, port, family } = server.address() as AddressInfo;
	const anywhere = address === '::' || address === '0.0.0.0';
	const shown = anywhere
		? '127.0.0.1'
		: family === 'IPv6'
			? `[${address}]`
			: host === 'localhost'
				? 'localhost'
				: address;
	return `${tls === null ? 'http' : 'https'}://${shown}:${port}`;
}
