/** The server on its sockets: TLS, limits, one log line a request, and an end that cuts nobody off. */
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../../api/datetime.js';
import type { Handler, PublicHandler } from '../messages.js';
import { attach } from './accept.js';
import { createConnections } from './connections.js';
import { limits as defaults, type Limits } from './limits.js';
import type { Metrics } from './metrics.js';
import { createOutbox } from './outbox.js';
import type { Serving } from './serving.js';
import { createBudget } from './upload.js';

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
	/** Counts the public pages and what never became a request; share it with the handler. Absent: nobody counts. */
	metrics?: Metrics;
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
		outbox: createOutbox(),
		carriers: new Set(),
		isClosing: false,
	};
	server.maxConnections = limits.maxConnections;
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
