/** Requests as they come in on connections: queued, answered in turn, logged; and what is no request, refused. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { About, HttpResponse } from '../messages.js';
import { answerAtOnce } from './at-once.js';
import { type Connection, part } from './connections.js';
import { errorLine, logLine, refusalLine } from './log.js';
import { refusalOf } from './refuse.js';
import { answerFor } from './serve.js';
import type { One, Serving } from './serving.js';
import { createUpload, type Upload } from './upload.js';
import { send } from './write.js';

/** Connects a server that does not listen yet. */
export function attach(server: Server, serving: Serving): void {
	const { connections } = serving;
	// Below TLS there is a socket of its own, which is not the one that requests name.
	if (serving.tls !== null) server.on('connection', (socket: Socket) => remember(serving.carriers, socket));
	const opened = serving.tls === null ? 'connection' : 'secureConnection';
	server.on(opened, (socket: Socket) => void connections.of(socket));
	const enqueue = (request: IncomingMessage, response: ServerResponse, isWaiting: boolean) => {
		const connection = connections.of(request.socket);
		if (!isWaiting && answerAtOnce(serving, { request, response, connection })) return;
		const leaving = connections.begin(connection, request, response);
		// The far end going away is no error of ours.
		response.on('error', ignore);
		const one: One = { request, response, connection, isWaiting, leaving, id: randomUUID() };
		connection.turn = connection.turn.then(() => answer(serving, one));
	};
	server.on('request', (request, response) => enqueue(request, response, false));
	server.on('checkContinue', (request, response) => enqueue(request, response, true));
	server.on('checkExpectation', (request, response) => enqueue(request, response, false));
	// A server of sockets gives sockets.
	server.on('clientError', (error, socket) => complain(serving, connections.of(socket as Socket), error));
}

function ignore(): void {}

function remember(sockets: Set<Socket>, socket: Socket): void {
	sockets.add(socket);
	socket.once('close', () => sockets.delete(socket));
}

/** One request from its head to the end of its answer. Never throws: the next of the pipeline waits for it. */
async function answer(serving: Serving, one: One): Promise<void> {
	const { connection, request } = one;
	const began = serving.clock.now();
	const upload = uploadOf(serving, one);
	const answered = await answerAndSend(serving, one, upload).catch((error: unknown) => {
		serving.log(errorLine(serving, one, error));
		connection.socket.destroy();
		return null;
	});
	upload.release();
	serving.connections.finish(connection, request);
	serving.log(logLine(serving, one, { began, answer: answered }));
	if (connection.requests.size > 0) return;
	part(connection);
	// Its head may have been made before the server was told to stop, and promised to keep the connection.
	if (serving.isClosing && !connection.hasParted) connection.socket.end();
}

function uploadOf({ budget }: Serving, one: One): Upload {
	const { request, response, leaving } = one;
	const onRead = () => {
		if (one.isWaiting) response.writeContinue();
		one.isWaiting = false;
	};
	return createUpload({ request, budget, leaving, onRead });
}

/** Null: the client left before it was asked what it wanted. */
async function answerAndSend(serving: Serving, one: One, upload: Upload): Promise<HttpResponse | null> {
	const { request, connection, leaving } = one;
	if (leaving.hasLeft()) return null;
	const answered = await answerFor(serving, one, upload);
	// What broke off is answered by the refusal at the end of the connection.
	if (connection.parting !== null && !request.complete) {
		const about: About = { path: '', token: null, ...answered.about, error: connection.parting.code };
		return { status: connection.parting.status, headers: {}, body: null, about };
	}
	if (connection.socket.writable) await send(serving, one, answered);
	return answered;
}

/** What is no HTTP, too long or too slow. Answers that are under way come first. */
function complain(serving: Serving, connection: Connection, error: Error): void {
	const { socket, requests } = connection;
	const code = 'code' in error ? String(error.code) : '';
	if (code === 'ECONNRESET' || socket.destroyed) {
		socket.destroy();
		return;
	}
	if (connection.parting !== null) return;
	connection.parting = refusalOf(code);
	const last = [...requests].at(-1);
	// The broken one is the one that is not whole: it will never be. Its answer, and its line, is the refusal.
	if (last !== undefined && !last[0].complete) {
		const { leaving, response } = last[1];
		leaving.leave();
		// Octets of an answer that is not finished may be out: another answer would be taken for its rest.
		if (requests.size === 1 && !response.headersSent) part(connection);
		return;
	}
	serving.metrics?.begin()('refused', connection.parting.status);
	serving.log(refusalLine(serving, connection, connection.parting));
	if (last === undefined) part(connection);
}
