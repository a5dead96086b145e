/** Answers to what never became a request, as octets: there is no response object to write them with. */
import { headerNames } from '../errors.js';

interface Refusal {
	status: number;
	reason: string;
	code: string;
	detail: string;
}

const badRequest: Refusal = {
	status: 400,
	reason: 'Bad Request',
	code: 'parse_error',
	detail: 'This is no valid HTTP request.',
};

/** By the parser's code; nothing of what came in is said back. */
const refusals: Readonly<Record<string, Refusal>> = {
	HPE_HEADER_OVERFLOW: {
		status: 431,
		reason: 'Request Header Fields Too Large',
		code: 'too_large',
		detail: 'The headers of the request are too large.',
	},
	ERR_HTTP_REQUEST_TIMEOUT: {
		status: 408,
		reason: 'Request Timeout',
		code: 'timeout',
		detail: 'The request took too long to arrive.',
	},
};

/** A whole HTTP answer, after which the connection ends. */
export interface WrittenRefusal {
	status: number;
	code: string;
	text: string;
}

/** By the parser's code. */
export function refusalOf(parserCode: string): WrittenRefusal {
	const { status, reason, code, detail } = refusals[parserCode] ?? badRequest;
	const body = JSON.stringify({ detail });
	const text = [
		`HTTP/1.1 ${status} ${reason}`,
		'Content-Type: application/json',
		'Cache-Control: no-store',
		'X-Content-Type-Options: nosniff',
		`${headerNames.errorCode}: ${code}`,
		`Content-Length: ${Buffer.byteLength(body)}`,
		'Connection: close',
		'',
		body,
	].join('\r\n');
	return { status, code, text };
}
