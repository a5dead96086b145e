/** Reads errors of DRF, RFC 7807, other services, and the pages of proxies. */
import {
	ApiError,
	type ApiErrorCode,
	type FieldError,
	type FieldErrors,
	listFieldErrors,
	nonFieldErrors,
} from '../../api/errors.js';
import { isRecord, readJson } from '../../api/json.js';
import { quote } from '../../api/quote.js';
import { codeOfText } from '../../api/refusals.js';
import { codeOf, headerNames, refusedFor, scopesIn, statusOf } from '../errors.js';
import type { Answer } from './transport.js';

export interface Requested {
	method: string;
	path: string;
	secrets: readonly string[];
}

export function errorOf(answer: Answer, requested: Requested, retryAfterMs: number | null): ApiError {
	const { status } = answer;
	const http = { status, method: requested.method, path: requested.path };
	if (status < 400) return new ApiError('bad_answer', redirectText(answer, requested), { http });
	const namedCode = answer.headers[headerNames.errorCode.toLowerCase()] ?? null;
	const body = readJson(answer.body);
	const fields = body.kind === 'valid' ? fieldsOf(body.value, status, { namedCode, requested }) : null;
	const more = { http, ...(retryAfterMs !== null && { retryAfterMs }) };
	const code = apiCode(status, namedCode);
	if (fields !== null)
		return new ApiError(code, quote(firstOf(fields), requested.secrets), { ...more, fields });
	const text = body.kind === 'valid' ? textOf(body.value) : pageText(answer.body);
	const said = quote(text ?? '', requested.secrets);
	if (said === '') return new ApiError(code, `The service answered ${status} without a word.`, more);
	const scopes = status === 403 ? scopesIn(answer.headers) : null;
	if (scopes !== null) return new ApiError(code, refusedFor(said, scopes), { ...more, scopes });
	// The text of an API stands by itself; the text of a page is introduced.
	const message = body.kind === 'valid' && status < 500 ? said : `The service answered ${status}: ${said}`;
	return new ApiError(code, message, more);
}

function redirectText({ status, headers }: Answer, { secrets }: Requested): string {
	const target = quote(headers['location'] ?? '', secrets);
	const where = target === '' ? '' : ` to ${target}`;
	return `The service answered ${status} and redirects${where}; redirects are not followed, check the base URL.`;
}

const refusedByField: ReadonlySet<number> = new Set([400, 409, 422]);

function fieldsOf(
	body: unknown,
	status: number,
	{ namedCode, requested }: { namedCode: string | null; requested: Requested },
): FieldErrors | null {
	const read = refusedByField.has(status) ? readFieldErrors(body) : null;
	if (read === null) return null;
	const fields = mapErrors(read, (error) => ({ ...error, message: quote(error.message, requested.secrets) }));
	return namedCode === null ? fields : withCode(fields, namedCode);
}

function apiCode(status: number, namedCode: string | null): ApiErrorCode {
	const named = namedCodes.find((code) => code === namedCode);
	return named !== undefined && status === statusOf(named) ? named : codeOf(status);
}

const namedCodes = ['parse_error', 'storage_failed', 'not_overwritten'] as const;

function firstOf(fields: FieldErrors): string {
	const first = listFieldErrors(fields)[0];
	return first === undefined ? 'Invalid input.' : `${first.path}: ${first.message}`;
}

function textOf(body: unknown): string | null {
	if (typeof body === 'string') return body;
	if (Array.isArray(body)) return textOf(body[0] ?? null);
	if (!isRecord(body)) return null;
	for (const key of ['detail', 'message', 'error_description', 'title', 'error', 'errors']) {
		const text = textOf(body[key] ?? null);
		if (text !== null) return text;
	}
	return null;
}

export function pageText(bytes: Buffer): string {
	const text = bytes.subarray(0, 16_384).toString('utf8');
	if (!/^\s*(<!doctype html|<html|<head|<body|<h1)/i.test(text)) return text;
	const title = /<(title|h1)[^<>]*>([^<]{1,1000})/i.exec(text)?.[2]?.trim() ?? '';
	if (title !== '') return title;
	return text.replace(/<(style|script)[^<>]*>[^<]*/gi, ' ').replace(/<[^<>]*>/g, ' ');
}

const maxDepth = 8;

/**
 * Items of a list are keyed by index (`{"1": […]}`) or stand in their places (`[[], ["…"]]`). Null: a body
 * without fields.
 */
function readFieldErrors(body: unknown): FieldErrors | null {
	if (Array.isArray(body)) {
		const errors = textsOf(body);
		return errors === null ? null : { [nonFieldErrors]: errors };
	}
	if (!isRecord(body) || isProblem(body)) return null;
	const listed = listedErrors(body['errors']) ?? listedErrors(body['detail']);
	if (listed !== null) return listed;
	if (isRecord(body['errors'])) return readFieldErrors(body['errors']);
	return readFields(body, 0);
}

/** The named code belongs to the only field error. */
function withCode(fields: FieldErrors, code: string): FieldErrors {
	if (listFieldErrors(fields).length !== 1 || !/^[a-z][a-z0-9_]{0,63}$/.test(code)) return fields;
	return mapErrors(fields, (error) => ({ ...error, code }));
}

/** The error is of the whole request: `detail`, or `title` of RFC 7807. */
function isProblem(body: Record<string, unknown>): boolean {
	if ('errors' in body) return false;
	return (
		isRecord(body['error']) ||
		['detail', 'message', 'error', 'title'].some((key) => typeof body[key] === 'string')
	);
}

function readFields(body: Record<string, unknown>, depth: number): FieldErrors | null {
	const fields: [string, FieldErrors[string]][] = [];
	for (const [key, value] of Object.entries(body)) {
		const read = readValue(value, depth + 1);
		if (read !== null) fields.push([key, read]);
	}
	return fields.length === 0 ? null : Object.fromEntries(fields);
}

function readValue(value: unknown, depth: number): FieldErrors[string] | null {
	if (depth > maxDepth) return null;
	if (typeof value === 'string') return [fieldError(value)];
	if (isRecord(value)) return messageOf(value) ?? readFields(value, depth);
	if (!Array.isArray(value) || value.length === 0) return null;
	const texts = textsOf(value);
	if (texts !== null) return texts;
	return readFields({ ...value }, depth);
}

/** `[{"field": "email", "message": "…"}]`, or FastAPI's `[{"loc": […], "msg": "…"}]`. */
function listedErrors(value: unknown): FieldErrors | null {
	if (!Array.isArray(value) || !value.every(isRecord)) return null;
	const fields = new Map<string, FieldError[]>();
	for (const one of value) {
		const text = one['message'] ?? one['detail'] ?? one['msg'] ?? one['title'];
		if (typeof text !== 'string') continue;
		const place: unknown = Array.isArray(one['loc']) ? one['loc'].at(-1) : one['field'];
		const field = typeof place === 'string' ? place : nonFieldErrors;
		const code = typeof one['code'] === 'string' ? one['code'] : codeOfText(text);
		fields.set(field, [...(fields.get(field) ?? []), { code, message: text }]);
	}
	return fields.size === 0 ? null : Object.fromEntries(fields);
}

function messageOf(value: Record<string, unknown>): FieldError[] | null {
	const { message, code } = value as { message?: unknown; code?: unknown }; // checked below
	if (typeof message !== 'string') return null;
	return [{ message, code: typeof code === 'string' ? code : codeOfText(message) }];
}

function textsOf(value: readonly unknown[]): FieldError[] | null {
	const errors: FieldError[] = [];
	for (const one of value) {
		const read = typeof one === 'string' ? [fieldError(one)] : isRecord(one) ? messageOf(one) : null;
		if (read === null) return null;
		errors.push(...read);
	}
	return errors;
}

function fieldError(message: string): FieldError {
	return { code: codeOfText(message), message };
}

function mapErrors(fields: FieldErrors, map: (error: FieldError) => FieldError): FieldErrors {
	return Object.fromEntries(
		Object.entries(fields).map(([key, value]) => [
			key,
			Array.isArray(value) ? value.map(map) : mapErrors(value as FieldErrors, map), // not a list: fields
		]),
	);
}
