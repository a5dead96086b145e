/**
 * Answers that nothing has to be waited for, given in the turn their request comes in. The pixel is asked for as often
 * as all else together, and the promises of the usual way cost more than its work.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { About, HttpResponse } from '../messages.js';
import { type Connection, part } from './connections.js';
import { logLine } from './log.js';
import { maskToken, publicPath, publicRequest, refuseEarly } from './serve.js';
import type { Serving } from './serving.js';
import { sendAlone } from './write.js';

interface Come {
	request: IncomingMessage;
	response: ServerResponse;
	connection: Connection;
}

/** False: it is to be answered the usual way, as is all that brings a body or comes behind another request. */
export function answerAtOnce(serving: Serving, come: Come): boolean {
	const { request, connection } = come;
	const pages = serving.publicPages;
	if (pages?.atOnce === undefined || !isAlone(serving, connection) || hasBody(request)) return false;
	const page = publicPath(request.url ?? '/');
	if (page === null || refuseEarly(serving, request) !== null) return false;
	const began = serving.clock.now();
	const shown = pages.atOnce(publicRequest(serving, come, page));
	if (shown === null) return false;
	serving.metrics?.begin()(page.path.slice(0, 3), shown.status);
	write(serving, come, { began, answer: { ...shown, about: aboutPage(page.path) } });
	return true;
}

function aboutPage(path: string): About {
	return { path: maskToken(path), token: null, error: null };
}

function isAlone({ isClosing }: Serving, { requests, parting }: Connection): boolean {
	return !isClosing && requests.size === 0 && parting === null;
}

function hasBody({ headers }: IncomingMessage): boolean {
	return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** Under way until it is written: what comes behind it on the connection, and who stops the server, waits for it. */
function write(
	serving: Serving,
	{ request, response, connection }: Come,
	{ began, answer }: { began: number; answer: HttpResponse },
): void {
	const { connections } = serving;
	const leaving = connections.begin(connection, request, response);
	const one = { id: randomUUID(), request, response, connection, isWaiting: false, leaving };
	sendAlone(serving, one, answer, () => {
		connections.finish(connection, request);
		serving.log(logLine(serving, one, { began, answer }));
		if (connection.requests.size === 0) part(connection);
	});
}
