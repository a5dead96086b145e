/** Answers requests at which Node's parser fails, for example with 405 for an unknown method (RFC 9110 s.9.1). */
import { STATUS_CODES } from 'node:http';
import { codeOf } from '../../api/errors.js';
import type { HttpResponse } from '../wire.js';
import { type Connection, closeLingering, type FinalResponse } from './connection.js';
import type { Pipeline, ServerParts, UnknownRequest } from './pipeline.js';
import { protocolError } from './respond.js';

type Telemetry = Pick<ServerParts, 'metrics' | 'log'>;

export function answerParserError(
	connection: Connection,
	error: Error,
	parts: Telemetry & { pipeline: Pipeline },
): void {
	const { socket } = connection;
	const code = codeOf(error);
	if (code === 'ECONNRESET' || socket.destroyed) {
		socket.destroy();
		return;
	}
	if (connection.hasUnknownMethod) return;
	const isMethod = code === 'HPE_INVALID_METHOD' && connection.finalResponse === null;
	const request = isMethod ? readUnknown(error) : null;
	if (request === null) {
		breakOff(connection, code, parts);
		return;
	}
	connection.hasUnknownMethod = true;
	connection.feed?.drop();
	connection.pipeline = connection.pipeline.then(async () => {
		const { remoteAddress: ip } = connection;
		const { answered, error, shownPath } = await parts.pipeline.routeUnknown(request, ip);
		connection.finalResponse ??= finalResponseOf(answered, error ?? 'method_not_allowed');
		parts.log.refused({ ...connection.finalResponse, ip, method: request.method, path: shownPath });
		closeLingering(connection);
	});
}

export function breakOff(connection: Connection, code: string, { metrics, log }: Telemetry): void {
	const { exchanges } = connection;
	if (connection.finalResponse !== null) return;
	const finalResponse = errorText(code);
	connection.finalResponse = finalResponse;
	connection.feed?.drop();
	const last = [...exchanges].at(-1);
	// If the last request is incomplete, the error response is its answer.
	if (last !== undefined && !last.incoming.complete) {
		last.abort.abort();
		// After a response has begun, the client would read the error response as its continuation.
		if (exchanges.size === 1 && !last.outgoing.headersSent) closeLingering(connection);
		return;
	}
	metrics?.begin()('refused', finalResponse.status);
	log.refused({ ...finalResponse, ip: connection.remoteAddress });
	if (last === undefined) closeLingering(connection);
}

/** Reads the head of the request whose HTTP method the parser rejected. */
function readUnknown(error: Error): UnknownRequest | null {
	const { rawPacket: packet, bytesParsed: stopped } = error as { rawPacket?: unknown; bytesParsed?: unknown };
	if (!Buffer.isBuffer(packet) || typeof stopped !== 'number') return null;
	const [known = ''] = knownSoFar.exec(packet.toString('latin1', 0, stopped)) ?? [];
	const head = packet.subarray(stopped - known.length);
	const end = head.indexOf('\r\n\r\n');
	if (end < 0) return null;
	const [first = '', ...lines] = head.toString('latin1', 0, end).split('\r\n');
	const [, method, target] = requestLine.exec(first) ?? [];
	const headers = readHeaders(lines);
	if (method === undefined || target === undefined || headers?.['host'] === undefined) return null;
	return { method, target, headers };
}

const knownSoFar = /[!#-'*+.^_`|~\w-]{0,11}$/;
const requestLine = /^([!#-'*+.^_`|~\w-]{1,64}) (\/\S*) HTTP\/1\.[01]$/;

function readHeaders(lines: readonly string[]): Record<string, string> | null {
	const headers = new Map<string, string>();
	for (const line of lines) {
		const at = line.indexOf(':');
		const name = line.slice(0, Math.max(0, at)).toLowerCase();
		if (!/^[!#-'*+.^_`|~\w-]+$/.test(name)) return null;
		if (!headers.has(name)) headers.set(name, line.slice(at + 1).trim());
	}
	return Object.fromEntries(headers);
}

const errors: Readonly<Record<string, { status: number; code: string; detail: string }>> = {
	HPE_HEADER_OVERFLOW: {
		status: 431,
		code: 'too_large',
		detail: 'The headers of the request are too large.',
	},
	ERR_HTTP_REQUEST_TIMEOUT: {
		status: 408,
		code: 'timeout',
		detail: 'The request took too long to arrive.',
	},
};
const badRequest = { status: 400, code: 'parse_error', detail: 'This is not a valid HTTP request.' };

function errorText(parserCode: string): FinalResponse {
	const { status, code, detail } = errors[parserCode] ?? badRequest;
	const { headers, body } = protocolError(status, code, detail);
	return finalResponseOf({ status, headers, body }, code);
}

function finalResponseOf({ status, headers, body }: HttpResponse, code: string): FinalResponse {
	const content = body === null ? '' : body.toString();
	const text = [
		`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
		...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
		`Content-Length: ${Buffer.byteLength(content)}`,
		'Connection: close',
		'',
		content,
	].join('\r\n');
	return { status, code, text };
}
