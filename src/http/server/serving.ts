/** What the parts of a running server share. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../../api/datetime.js';
import type { Connection, Connections } from './connections.js';
import type { Leaving } from './leaving.js';
import type { Limits } from './limits.js';
import type { ListenOptions } from './listen.js';
import type { Outbox } from './outbox.js';
import type { Budget } from './upload.js';

/** A server and everything it has at hand. */
export interface Serving extends ListenOptions {
	limits: Limits;
	clock: Clock;
	connections: Connections;
	budget: Budget;
	outbox: Outbox;
	/** TCP sockets below TLS. */
	carriers: Set<Socket>;
	/** Answers are the last of their connections. */
	isClosing: boolean;
}

/** One request that is being answered. */
export interface One {
	/** Names it in the log and in its answer. */
	id: string;
	request: IncomingMessage;
	response: ServerResponse;
	connection: Connection;
	/** The client sends its body when it is told to. */
	isWaiting: boolean;
	leaving: Leaving;
}
