/** What is under way on each connection, so that refusals and shutting down cut nothing that is being answered. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createLeaving, type Leaving } from './leaving.js';
import type { WrittenRefusal } from './refuse.js';

/** One connection. Requests of a pipeline are answered one after another, in order. */
export interface Connection {
	readonly socket: Socket;
	/** Kept, for a closed socket no longer knows. */
	readonly remoteAddress: string | null;
	/** Requests begun and not answered yet; aborted when the client leaves. */
	readonly requests: Map<IncomingMessage, Begun>;
	/** Done when the last request of the pipeline is answered. */
	turn: Promise<void>;
	/** Said once everything before it is answered, and then the connection ends. */
	parting: WrittenRefusal | null;
	/** It was said. */
	hasParted: boolean;
}

/** A request that was begun: how to end it, and what it is answered with. */
export interface Begun {
	leaving: Leaving;
	response: ServerResponse;
}

export interface Connections {
	of(socket: Socket): Connection;
	all(): Iterable<Connection>;
	begin(connection: Connection, request: IncomingMessage, response: ServerResponse): Leaving;
	finish(connection: Connection, request: IncomingMessage): void;
	/** Requests under way on all connections. */
	underWay(): number;
}

/** Connections are forgotten, and what was asked on them aborted, when they close. */
export function createConnections(): Connections {
	const known = new Map<Socket, Connection>();
	let underWay = 0;
	const forget = (connection: Connection) => {
		known.delete(connection.socket);
		for (const { leaving } of connection.requests.values()) leaving.leave();
	};
	return {
		of: (socket) => {
			const connection = known.get(socket);
			if (connection !== undefined) return connection;
			const fresh: Connection = {
				socket,
				remoteAddress: socket.remoteAddress ?? null,
				requests: new Map(),
				turn: Promise.resolve(),
				parting: null,
				hasParted: false,
			};
			known.set(socket, fresh);
			socket.once('close', () => forget(fresh));
			return fresh;
		},
		all: () => known.values(),
		begin: ({ socket, requests }, request, response) => {
			const leaving = createLeaving();
			if (socket.destroyed) leaving.leave();
			requests.set(request, { leaving, response });
			underWay += 1;
			return leaving;
		},
		finish: ({ requests }, request) => {
			if (requests.delete(request)) underWay -= 1;
		},
		underWay: () => underWay,
	};
}

/** How long the other side may read what it was told before the connection is destroyed. */
const lingerMs = 1_000;

/**
 * Says what there is to say, once, and ends. What still comes in is read and dropped for a moment: a connection closed
 * with unread octets is reset, and the answer lost with it.
 */
export function part(connection: Connection): void {
	const { socket, parting, hasParted } = connection;
	if (parting === null || hasParted) return;
	connection.hasParted = true;
	if (!socket.writable) {
		socket.destroy();
		return;
	}
	socket.end(parting.text);
	const timer = setTimeout(() => socket.destroy(), lingerMs);
	socket.once('close', () => clearTimeout(timer));
	socket.resume();
}
