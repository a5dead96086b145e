/** An answer onto its socket. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpResponse } from '../messages.js';
import type { One, Serving } from './serving.js';

/** A rest of a body so short is read to its end for the sake of the next request on the connection. */
const maxDropped = 64 * 1024;

/** Octets of a body that are worth copying. */
const maxJoined = 4 * 1024;

/** Done when the answer is out, or its client gone. */
export async function send(serving: Serving, one: One, answer: HttpResponse): Promise<void> {
	const { request, response } = one;
	const isLast = serving.isClosing || !isSoonRead(one);
	const done = new Promise<void>((resolve) => {
		response.once('close', resolve);
		one.leaving.onLeave(resolve);
	});
	response.writeHead(answer.status, rawHeaders(one, { ...answer, isLast }));
	if (isLast && !request.complete) await linger(serving, { request, response, body: answer.body });
	else serving.outbox(() => finish(serving, one, answer.body));
	await done;
}

/** Without waiting until it is out: for what is short, and comes behind nothing. `written` is called when it is written. */
export function sendAlone(serving: Serving, one: One, answer: HttpResponse, written: () => void): void {
	serving.outbox(() => {
		if (one.connection.socket.writable) {
			// Asked now: a server that was told to stop meanwhile keeps no connection.
			one.response.writeHead(answer.status, rawHeaders(one, { ...answer, isLast: serving.isClosing }));
			finish(serving, one, answer.body);
		}
		written();
	});
}

function finish(
	{ limits }: Serving,
	{ request, response, connection }: One,
	body: HttpResponse['body'],
): void {
	// Node drops a body that nobody began to read; what was begun and stopped is for us to drop.
	if (request.isPaused()) request.resume();
	end(response, body);
	const { socket } = connection;
	// What the system has taken needs no watching.
	if (socket.writableLength > 0) response.setTimeout(limits.writeTimeoutMs, () => socket.destroy());
}

/** Names and values in turn: node takes them as they are. */
function rawHeaders(
	{ id }: One,
	{ status, headers, body, isLast }: HttpResponse & { isLast: boolean },
): string[] {
	const raw: string[] = [];
	for (const name in headers) raw.push(name, headers[name] ?? '');
	if (status !== 204 && status !== 304 && headers['Content-Length'] === undefined)
		raw.push('Content-Length', String(body === null ? 0 : Buffer.byteLength(body)));
	raw.push('X-Request-Id', id);
	if (isLast) raw.push('Connection', 'close');
	return raw;
}

/** Node copies a text into one piece with the head, and hands octets on apart: as a text what is short costs less. */
function end(response: ServerResponse, body: HttpResponse['body']): void {
	if (body === null) response.end();
	else if (typeof body === 'string') response.end(body);
	else if (body.length > maxJoined) response.end(body);
	else response.end(Buffer.from(body.buffer, body.byteOffset, body.length).toString('latin1'), 'latin1');
}

/** Whether the rest of the body is worth reading. Who waits for leave to send it may send it or not: nobody knows. */
function isSoonRead({ request, isWaiting }: One): boolean {
	if (request.complete) return true;
	return !isWaiting && Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY) <= maxDropped;
}

/** The answer goes out whole, then what still comes in is dropped until it ends or time is up: a reset would lose the answer. */
async function linger(
	{ limits }: Serving,
	{
		request,
		response,
		body,
	}: { request: IncomingMessage; response: ServerResponse; body: HttpResponse['body'] },
): Promise<void> {
	if (body === null) response.flushHeaders();
	else response.write(body);
	request.resume();
	await new Promise<void>((resolve) => {
		const timer = setTimeout(resolve, limits.lingerMs);
		const stop = () => {
			clearTimeout(timer);
			resolve();
		};
		request.once('end', stop).once('close', stop);
	});
	response.end();
}
