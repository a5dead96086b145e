/** An answer that is no success as an `ApiError`: DRF's bodies, RFC 7807, other services' habits, pages of proxies. */
import { ApiError, type ApiErrorCode, type FieldErrors, listFieldErrors } from '../../api/errors.js';
import { codeOf, headerNames, statusOf } from '../errors.js';
import { mapErrors, readComplaints, withCode } from './complaints.js';
import { readJson } from './json-body.js';
import { quote } from './quote.js';
import type { Answer } from './transport.js';

/** What was asked, for the error. */
export interface Asked {
	method: string;
	/** Without query. */
	path: string;
	secrets: readonly string[];
}

/** For any status but 2xx. A redirect is `bad_answer`: it is never followed, so that the token goes nowhere else. */
export function refusalOf(answer: Answer, asked: Asked, retryAfterMs: number | null): ApiError {
	const { status } = answer;
	const http = { status, method: asked.method, path: asked.path };
	if (status < 400) return new ApiError('bad_answer', redirectText(answer, asked), { http });
	const told = answer.headers[headerNames.errorCode.toLowerCase()] ?? null;
	const body = readJson(answer.body);
	const fields = body.kind === 'valid' ? fieldsOf(body.value, status, { told, asked }) : null;
	const more = { http, ...(retryAfterMs !== null && { retryAfterMs }) };
	const code = apiCode(status, told);
	if (fields !== null) return new ApiError(code, quote(firstOf(fields), asked.secrets), { ...more, fields });
	const text = body.kind === 'valid' ? textOf(body.value) : pageText(answer.body);
	const said = quote(text ?? '', asked.secrets);
	if (said === '') return new ApiError(code, `The service answered ${status} without a word.`, more);
	// What the service says in its own API's way stands by itself; what some page says needs to be introduced.
	const message = body.kind === 'valid' && status < 500 ? said : `The service answered ${status}: ${said}`;
	return new ApiError(code, message, more);
}

function redirectText({ status, headers }: Answer, { secrets }: Asked): string {
	const target = quote(headers['location'] ?? '', secrets);
	const where = target === '' ? '' : ` to ${target}`;
	return `The service answered ${status} and redirects${where}; redirects are not followed, check the base URL.`;
}

const refusedByField: ReadonlySet<number> = new Set([400, 409, 422]);

function fieldsOf(
	body: unknown,
	status: number,
	{ told, asked }: { told: string | null; asked: Asked },
): FieldErrors | null {
	const read = refusedByField.has(status) ? readComplaints(body) : null;
	if (read === null) return null;
	const fields = mapErrors(read, (error) => ({ ...error, message: quote(error.message, asked.secrets) }));
	return told === null ? fields : withCode(fields, told);
}

/** The header tells `parse_error` from `invalid`, which share a status. */
function apiCode(status: number, told: string | null): ApiErrorCode {
	const code = codeOf(status);
	return told === 'parse_error' && status === statusOf('parse_error') ? 'parse_error' : code;
}

function firstOf(fields: FieldErrors): string {
	const first = listFieldErrors(fields)[0];
	return first === undefined ? 'Invalid input.' : `${first.path}: ${first.message}`;
}

/** `detail` (DRF, RFC 7807), `title`, `message`, `error`, the first of `errors`; a text is itself. */
function textOf(body: unknown): string | null {
	if (typeof body === 'string') return body;
	if (Array.isArray(body)) return textOf(body[0] ?? null);
	if (typeof body !== 'object' || body === null) return null;
	const record: Record<string, unknown> = { ...body };
	for (const key of ['detail', 'message', 'error_description', 'title', 'error', 'errors']) {
		const text = textOf(record[key] ?? null);
		if (text !== null) return text;
	}
	return null;
}

/** The title of an HTML page, else its text; plain text as it is. */
function pageText(bytes: Buffer): string {
	const text = bytes.subarray(0, 16_384).toString('utf8');
	if (!/^\s*(<!doctype html|<html|<head|<body|<h1)/i.test(text)) return text;
	const title = /<(title|h1)[^<>]*>([^<]{1,1000})/i.exec(text)?.[2]?.trim() ?? '';
	if (title !== '') return title;
	return text.replace(/<(style|script)[^<>]*>[^<]*/gi, ' ').replace(/<[^<>]*>/g, ' ');
}
