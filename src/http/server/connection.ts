import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { HttpRequest } from '../wire.js';
import { type Exchange, LazyAbortController } from './exchange.js';
import type { Limits, Share } from './limits.js';
import { createFeed, createFeedQueue, type Feed } from './parser-feed.js';

export class Connection {
	socket: Socket;
	readonly tcpSocket: Socket;
	/** Stored here, because a closed socket no longer has an address. */
	readonly remoteAddress: string | null;
	readonly peer: Peer;
	readonly exchanges = new Set<SocketExchange>();
	feed: Feed | null = null;
	idleSince = performance.now();
	hasSlot = false;
	pipeline: Promise<void> = Promise.resolve();
	/** True if Node's parser does not support the method of the last request. */
	hasUnknownMethod = false;
	finalResponse: FinalResponse | null = null;
	isFinalSent = false;

	constructor(socket: Socket, { remoteAddress, peer }: Pick<Connection, 'remoteAddress' | 'peer'>) {
		this.socket = socket;
		this.tcpSocket = socket;
		this.remoteAddress = remoteAddress;
		this.peer = peer;
	}
}

export interface FinalResponse {
	status: number;
	code: string;
	text: string;
}

/** One IPv4 address, or one IPv6 /64, because providers assign a /64 to one customer. */
interface Peer extends Share {
	readonly name: string;
	readonly connections: Set<Connection>;
}

interface NodeRequest {
	incoming: IncomingMessage;
	outgoing: ServerResponse;
	expectsContinue: boolean;
}

export class Connections {
	readonly #limits: Pick<Limits, 'maxConnections' | 'maxConnectionsPerAddress' | 'maxPipelined'>;
	readonly #isProxied: boolean;
	readonly #queue = createFeedQueue();
	readonly #peers = new Peers();
	readonly #bySocket = new Map<Socket, Connection>();
	readonly #byFarEnd = new Map<string, Connection>();

	constructor(
		limits: Pick<Limits, 'maxConnections' | 'maxConnectionsPerAddress' | 'maxPipelined'>,
		{ isProxied }: { isProxied: boolean },
	) {
		this.#limits = limits;
		this.#isProxied = isProxied;
	}

	admit(tcpSocket: Socket): Connection | null {
		const { remoteAddress: seen } = tcpSocket;
		const remoteAddress = seen === undefined ? null : plainAddress(seen);
		const peer = this.#peers.of(remoteAddress);
		if (!this.#hasRoom(peer)) {
			tcpSocket.destroy();
			this.#peers.forget(peer);
			return null;
		}
		const connection = new Connection(tcpSocket, { remoteAddress, peer });
		this.#bySocket.set(tcpSocket, connection);
		this.#byFarEnd.set(farEnd(tcpSocket), connection);
		peer.connections.add(connection);
		tcpSocket.once('close', () => this.#forget(connection));
		return connection;
	}

	open(socket: Socket): void {
		const connection = this.#bySocket.get(socket) ?? this.#byFarEnd.get(farEnd(socket));
		if (connection === undefined) return;
		this.#bySocket.delete(connection.socket);
		this.#bySocket.set(socket, connection);
		connection.socket = socket;
		connection.feed = createFeed(socket, this.#queue);
	}

	of(socket: Socket): Connection | null {
		return this.#bySocket.get(socket) ?? null;
	}

	all(): Iterable<Connection> {
		return this.#bySocket.values();
	}

	exchange(connection: Connection, node: NodeRequest): SocketExchange {
		const ip = this.#isProxied ? forwardedAddress(node.incoming, connection) : connection.remoteAddress;
		return new SocketExchange(connection, node, {
			ip,
			peer: this.#isProxied ? this.#peers.of(ip) : connection.peer,
		});
	}

	begin(exchange: SocketExchange): void {
		const { socket, exchanges, feed } = exchange.connection;
		if (socket.destroyed) exchange.abort.abort();
		exchanges.add(exchange);
		this.#queue.count();
		if (exchanges.size >= this.#limits.maxPipelined) feed?.hold();
	}

	finish(exchange: SocketExchange): void {
		this.#peers.forget(exchange.peer);
		const { connection } = exchange;
		const { exchanges, feed, peer } = connection;
		if (!exchanges.delete(exchange)) return;
		if (exchanges.size < this.#limits.maxPipelined) feed?.release();
		if (exchanges.size > 0) return;
		connection.idleSince = performance.now();
		// Reinsert the connection at the end, so that the first idle one has been idle longest.
		if (peer.connections.delete(connection)) peer.connections.add(connection);
	}

	/**
	 * At a limit, closes one connection of the client to make room. Returns false if all of them wait for answers. The
	 * first choice is the connection idle longest, if it has been idle for a second. The second choice is a connection
	 * whose request is still arriving. The last choice is an idle connection, because its next request may be on the way.
	 */
	#hasRoom({ connections }: Peer): boolean {
		const { maxConnections, maxConnectionsPerAddress } = this.#limits;
		const own = this.#isProxied ? 0 : connections.size;
		if (own < maxConnectionsPerAddress && this.#bySocket.size < maxConnections) return true;
		const found = [...connections].filter(({ socket }) => socket.writableLength === 0);
		const idle = found.find(({ exchanges }) => exchanges.size === 0);
		const isLongIdle = idle !== undefined && performance.now() - idle.idleSince > 1_000;
		const arriving = ({ exchanges: [only, next] }: Connection) =>
			only?.incoming.complete === false && next === undefined;
		const connection = isLongIdle ? idle : (found.find(arriving) ?? idle);
		if (connection === undefined) return false;
		connection.tcpSocket.destroy();
		connection.socket.destroy();
		connections.delete(connection);
		return true;
	}

	#forget(connection: Connection): void {
		this.#bySocket.delete(connection.socket);
		this.#byFarEnd.delete(farEnd(connection.tcpSocket));
		connection.peer.connections.delete(connection);
		this.#peers.forget(connection.peer);
		for (const { abort } of connection.exchanges) abort.abort();
	}
}

/** A class, because V8 is slow with getters on plain objects. */
export class SocketExchange implements Exchange {
	readonly id = randomUUID();
	readonly method: string;
	readonly target: string;
	readonly headers: HttpRequest['headers'];
	body: HttpRequest['body'] = null;
	match: Exchange['match'] = null;
	principal: Exchange['principal'] = null;
	answered: Exchange['answered'] = null;
	shownPath = '';
	error: string | null = null;
	readonly incoming: IncomingMessage;
	readonly outgoing: ServerResponse;
	readonly connection: Connection;
	readonly ip: string | null;
	readonly peer: Peer;
	readonly abort = new LazyAbortController();
	expectsContinue: boolean;
	began = 0;

	constructor(connection: Connection, node: NodeRequest, { ip, peer }: Pick<SocketExchange, 'ip' | 'peer'>) {
		const { incoming, outgoing, expectsContinue } = node;
		this.method = incoming.method ?? 'GET';
		this.target = incoming.url ?? '/';
		this.headers = headersOf(incoming);
		this.incoming = incoming;
		this.outgoing = outgoing;
		this.connection = connection;
		this.ip = ip;
		this.peer = peer;
		this.expectsContinue = expectsContinue;
	}

	get signal(): AbortSignal {
		return this.abort.signal;
	}
}

/** Drops Set-Cookie, the only header that Node gives as a list. Clients do not send it. */
function headersOf({ headers }: IncomingMessage): HttpRequest['headers'] {
	if (headers['set-cookie'] === undefined) return headers as HttpRequest['headers'];
	const { 'set-cookie': _, ...rest } = headers;
	return rest as HttpRequest['headers'];
}

/** The proxy adds the last address; the client can forge the others. */
function forwardedAddress({ headers }: IncomingMessage, { remoteAddress }: Connection): string | null {
	const forwarded = String(headers['x-forwarded-for'] ?? '');
	const last = forwarded.split(',').at(-1)?.trim() ?? '';
	return isIP(last) === 0 ? remoteAddress : plainAddress(last);
}

function plainAddress(address: string): string {
	return address.replace(/^::ffff:(?=\d+\.)/, '');
}

class Peers {
	readonly #byName = new Map<string, Peer>();

	of(address: string | null): Peer {
		const name = peerName(address);
		const peer = this.#byName.get(name) ?? {
			...{ name, connections: new Set(), slots: 0, waiting: [] },
			...{ bytes: 0, files: Promise.resolve() },
		};
		this.#byName.set(name, peer);
		return peer;
	}

	forget({ name, connections, slots, bytes }: Peer): void {
		if (connections.size === 0 && slots === 0 && bytes === 0) this.#byName.delete(name);
	}
}

export function peerName(address: string | null): string {
	if (address === null) return '';
	const plain = plainAddress(address);
	if (!plain.includes(':') || !ipaddr.IPv6.isValid(plain)) return plain;
	return ipaddr.IPv6.parse(plain)
		.parts.slice(0, 4)
		.map((part) => part.toString(16))
		.join(':');
}

/** Gives the same key for a TLS socket and its TCP socket, which have the same remote end. */
function farEnd({ remoteAddress, remotePort }: Socket): string {
	return `${remoteAddress} ${remotePort}`;
}

const lingerMs = 1_000;

/** Discards input for a second after the final response. Closing with unread input would lose that response. */
export function closeLingering(connection: Connection): void {
	const { socket, finalResponse, isFinalSent } = connection;
	if (finalResponse === null || isFinalSent) return;
	connection.isFinalSent = true;
	if (!socket.writable) {
		socket.destroy();
		return;
	}
	socket.end(finalResponse.text);
	const timer = setTimeout(() => socket.destroy(), lingerMs);
	socket.once('close', () => clearTimeout(timer));
	socket.resume();
}
