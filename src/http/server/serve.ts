import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay, setImmediate as nextImmediate } from 'node:timers/promises';
import { maxBodyBytes } from '../../api/bodies.js';
import { type Clock, systemClock } from '../../api/datetime.js';
import type { PublicHandler } from '../wire.js';
import { createFileMemory } from './body.js';
import { Connections } from './connection.js';
import type { Handler } from './exchange.js';
import { Budget, limits as defaults, type Limits, Slots } from './limits.js';
import { answerParserError } from './parser-errors.js';
import { Pipeline } from './pipeline.js';
import { createResponder } from './respond.js';
import { createRequestLog, type Metrics } from './telemetry.js';

export interface ServerOptions {
	handler: Handler;
	publicPages: PublicHandler | null;
	host: string;
	port: number;
	tls: { cert: string; key: string } | null;
	log(line: object): void;
	trustProxy?: boolean;
	limits?: Partial<Limits>;
	metrics?: Metrics;
	clock?: Clock;
}

export interface HttpServer {
	url: string;
	/** Answers requests in flight. Closes the connections that remain after `graceMs`. Never throws. */
	close(options: { graceMs: number } & Partial<Leaving>): Promise<void>;
}

/** For a shutdown behind a proxy that keeps connections open. `graceMs` includes both times. */
interface Leaving {
	/** For this long, the server accepts new connections, because the proxy has not noticed the shutdown yet. */
	acceptMs: number;
	/** After `acceptMs`, the server keeps idle connections for this long, because requests may be on their way. */
	idleMs: number;
}

/** Rejects with Node's error if the address is in use. */
export async function serve(options: ServerOptions): Promise<HttpServer> {
	const { handler, publicPages, tls, clock = systemClock, metrics = null } = options;
	const limits = { ...defaults, ...options.limits };
	let hasClosed = false;
	let keepsIdle = false;
	const isClosing = () => hasClosed;
	const log = createRequestLog({ clock, log: options.log });
	const connections = new Connections(limits, { isProxied: options.trustProxy === true });
	const pipeline = new Pipeline({
		...{ connections, handler, publicPages, limits, metrics, log, clock, isClosing },
		responder: createResponder({ limits, isClosing }),
		slots: new Slots(limits),
		budget: new Budget(limits),
		files: createFileMemory({ kept: Math.floor(limits.maxBytesInFlight / maxBodyBytes.file) }),
		endsIdle: () => hasClosed && !keepsIdle,
	});
	const server = createServer(tls, limits);
	server.on('connection', (socket: Socket) => {
		const isAdmitted = connections.admit(socket) !== null;
		if (!isAdmitted) metrics?.begin()('refused', 503);
		else if (tls === null) connections.open(socket);
	});
	// Requests refer to the TLS socket, which is not the TCP socket of the `connection` event.
	if (tls !== null) server.on('secureConnection', (socket: Socket) => connections.open(socket));
	server.on('request', (incoming, outgoing) => pipeline.enqueue(incoming, outgoing, false));
	server.on('checkContinue', (incoming, outgoing) => pipeline.enqueue(incoming, outgoing, true));
	server.on('checkExpectation', (incoming, outgoing) => pipeline.enqueue(incoming, outgoing, false));
	server.on('clientError', (error, socket) => {
		const connection = connections.of(socket as Socket);
		if (connection === null) socket.destroy();
		else answerParserError(connection, error, { pipeline, metrics, log });
	});
	await new Promise<void>((resolve, reject) => {
		server.once('error', reject);
		server.listen(options.port, options.host, () => {
			server.off('error', reject);
			resolve();
		});
	});
	return {
		url: urlOf(server, options),
		close: async ({ graceMs, acceptMs = 0, idleMs = 0 }) => {
			keepsIdle = acceptMs + idleMs > 0;
			const timer = setTimeout(() => cut(connections), graceMs);
			// With `acceptMs`, each answer may close its connection, because the proxy can still open new ones.
			hasClosed = acceptMs > 0 || idleMs === 0;
			if (acceptMs > 0) await delay(Math.min(acceptMs, graceMs));
			const { Server: NetServer } = await import('node:net');
			await queueAccepted();
			// close() of Node's HTTP server would end idle connections.
			const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()));
			hasClosed = true;
			if (idleMs > 0) await Promise.race([closed, delay(idleMs)]);
			keepsIdle = false;
			for (const { socket, exchanges } of connections.all()) if (exchanges.size === 0) socket.destroy();
			await closed;
			clearTimeout(timer);
			server.close();
		},
	};
}

function createServer(tls: ServerOptions['tls'], limits: Limits): Server {
	const settings = {
		maxHeaderSize: limits.maxHeaderBytes,
		headersTimeout: limits.headersTimeoutMs,
		requestTimeout: limits.requestTimeoutMs,
		keepAliveTimeout: limits.keepAliveTimeoutMs,
		connectionsCheckingInterval: limits.checkIntervalMs,
		requireHostHeader: false,
		noDelay: true,
	};
	const server =
		tls === null
			? createHttpServer(settings)
			: createHttpsServer({ ...settings, ...tls, handshakeTimeout: limits.headersTimeoutMs });
	// Node would silently drop excess headers, even `Authorization`. `maxHeaderSize` limits their total size instead.
	server.maxHeadersCount = 0;
	return server;
}

const quietMs = 0.2;
const mostTurns = 100;

/** Lets Node accept the connections in the listen backlog, because closing the server would reset them. */
async function queueAccepted(): Promise<void> {
	for (let turns = 0; turns < mostTurns; turns += 1) {
		const began = performance.now();
		await nextImmediate();
		if (performance.now() - began < quietMs) return;
	}
}

function cut(connections: Connections): void {
	for (const { socket, tcpSocket } of connections.all()) {
		socket.destroy();
		tcpSocket.destroy();
	}
}

function urlOf(server: Server, { tls, host }: ServerOptions): string {
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
