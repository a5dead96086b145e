import {
	ApiError,
	type ApiErrorCode,
	errorStatuses,
	type FieldError,
	type FieldErrors,
	listFieldErrors,
	nonFieldErrors,
	tlsReason,
	whyUnreachable,
} from '../../api/errors.js';
import { isRecord, readJson } from '../../api/json.js';
import { quote } from '../../api/quote.js';
import { codeOfText } from '../../api/refusals.js';
import { codeOf, headerNames, refusedFor, scopesIn } from '../wire.js';
import type { Answer } from './transport.js';

export interface Requested {
	method: string;
	path: string;
	secrets: readonly string[];
}

export function errorOf(answer: Answer, requested: Requested, retryAfterMs: number | null): ApiError {
	const { status, headers } = answer;
	const { method, path, secrets } = requested;
	const more = { http: { status, method, path }, retryAfterMs };
	if (status < 400) {
		const where = headers['location'] === undefined ? '' : ` to ${quote(headers['location'], secrets)}`;
		const text = `The service answered ${status} with a redirect${where}. Redirects are not followed: check the base URL.`;
		return new ApiError('bad_answer', text, more);
	}
	const named = headers[headerNames.errorCode.toLowerCase()] ?? '';
	const code = apiCode(status, named);
	const body = readJson(answer.body);
	const fields = body.kind === 'valid' && [400, 409, 422].includes(status) ? fieldsOf(body.value) : null;
	if (fields !== null) {
		const errors = listFieldErrors(fields);
		const onlyCode = errors.length === 1 && /^[a-z][a-z0-9_]{0,63}$/.test(named) ? named : null;
		const quoted = mapErrors(fields, (error) => ({
			code: onlyCode ?? error.code,
			message: quote(error.message, secrets),
		}));
		const [first] = errors;
		const text = first === undefined ? 'Invalid input.' : `${first.path}: ${first.message}`;
		return new ApiError(code, quote(text, secrets), { ...more, fields: quoted });
	}
	const said = quote((body.kind === 'valid' ? textOf(body.value) : pageText(answer.body)) ?? '', secrets);
	if (said === '') return new ApiError(code, `The service answered ${status} without a message.`, more);
	const scopes = status === 403 ? scopesIn(headers) : null;
	if (scopes !== null) return new ApiError(code, refusedFor(said, scopes), { ...more, scopes });
	// 5xx messages, and texts that are not JSON, are unclear without the status.
	const message = body.kind === 'valid' && status < 500 ? said : `The service answered ${status}: ${said}`;
	return new ApiError(code, message, more);
}

function apiCode(status: number, named: string): ApiErrorCode {
	const code = (['parse_error', 'storage_failed', 'not_overwritten'] as const).find((one) => one === named);
	return code !== undefined && status === errorStatuses[code] ? code : codeOf(status);
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

function fieldsOf(body: unknown): FieldErrors | null {
	if (isRecord(body)) {
		const listed = listedErrors(body['errors']) ?? listedErrors(body['detail']);
		if (listed !== null) return listed;
		if (isRecord(body['errors'])) return fieldsOf(body['errors']);
		const isText = (key: string) => typeof body[key] === 'string';
		if (isRecord(body['error']) || ['detail', 'message', 'error', 'title'].some(isText)) return null;
	}
	const read = typeof body === 'string' ? null : errorsOf(body);
	return Array.isArray(read) ? { [nonFieldErrors]: read } : (read as FieldErrors | null);
}

/** Reads errors of list items by index (`{"1": […]}`) or by position (`[[], ["…"]]`). */
function errorsOf(value: unknown): FieldErrors[string] | null {
	const single = errorIn(value);
	if (single !== null) return [single];
	if (typeof value !== 'object' || value === null) return null;
	const errors = Array.isArray(value) ? value.map(errorIn) : [];
	const all = errors.filter((error) => error !== null);
	if (all.length > 0 && all.length === errors.length) return all;
	const read = Object.entries(value).map(([key, inner]) => [key, errorsOf(inner)] as const);
	const found = read.filter(([, inner]) => inner !== null);
	return found.length === 0 ? null : (Object.fromEntries(found) as FieldErrors); // the filter leaves no null
}

function errorIn(value: unknown): FieldError | null {
	if (typeof value === 'string') return { code: codeOfText(value), message: value };
	if (!isRecord(value) || typeof value['message'] !== 'string') return null;
	const { message, code } = value;
	return { code: typeof code === 'string' ? code : codeOfText(message), message };
}

/** Reads `[{"field": "email", "message": "…"}]` and FastAPI's `[{"loc": […], "msg": "…"}]`. */
function listedErrors(value: unknown): FieldErrors | null {
	if (!Array.isArray(value) || !value.every(isRecord)) return null;
	const fields = new Map<string, FieldError[]>();
	for (const one of value) {
		const error = errorIn({ ...one, message: one['message'] ?? one['detail'] ?? one['msg'] ?? one['title'] });
		if (error === null) continue;
		const place: unknown = Array.isArray(one['loc']) ? one['loc'].at(-1) : one['field'];
		const field = typeof place === 'string' ? place : nonFieldErrors;
		fields.set(field, [...(fields.get(field) ?? []), error]);
	}
	return fields.size === 0 ? null : Object.fromEntries(fields);
}

function mapErrors(fields: FieldErrors, map: (error: FieldError) => FieldError): FieldErrors {
	return Object.fromEntries(
		Object.entries(fields).map(([key, value]) => [
			key,
			Array.isArray(value) ? value.map(map) : mapErrors(value as FieldErrors, map),
		]),
	);
}

/** `untrusted`: TLS failed, or the proxy refused the connection. `garbled`: the answer is not valid HTTP or gzip. */
type FailureKind = 'unsendable' | 'unreachable' | 'untrusted' | 'cut' | 'timeout' | 'too_large' | 'garbled';

export class TransportFailure extends Error {
	override readonly name = 'TransportFailure';
	readonly kind: FailureKind;
	readonly written: boolean;

	constructor(kind: FailureKind, message: string, { written, cause }: { written: boolean; cause?: unknown }) {
		super(message, { cause });
		this.kind = kind;
		this.written = written;
	}
}

export function toApiError({ kind, message, written, cause }: TransportFailure): ApiError {
	const isAnswered = kind === 'garbled' || kind === 'too_large';
	return new ApiError(isAnswered ? 'bad_answer' : 'network', message, { cause, unanswered: written });
}

export interface Way {
	origin: string;
	through: string;
}

export function toFailure(error: Error, { origin, through }: Way, written: boolean): TransportFailure {
	const code = systemCodeOf(error);
	const said = saidByProxy(error);
	const tell = (kind: FailureKind, text: string) =>
		// A proxy that requires a login has not forwarded the request.
		new TransportFailure(kind, text, { written: written && said !== 'authenticate', cause: error });
	if (said === 'authenticate')
		return tell('untrusted', `cannot reach ${origin}${through}: the proxy requires a login (407)`);
	if (code === 'UND_ERR_INVALID_ARG')
		return tell('unsendable', `the request cannot be sent to ${origin}: ${error.message}`);
	if (code === 'UND_ERR_CONNECT_TIMEOUT')
		return tell('unreachable', `connecting to ${origin}${through} timed out`);
	if (code === 'ERR_SSL_WRONG_VERSION_NUMBER')
		return tell('untrusted', `${origin} does not speak TLS: did you mean http://?`);
	if (isTrustProblem(code))
		return tell('untrusted', `no trusted connection to ${origin}: ${tlsReason(error.message)} (${code})`);
	if (code.startsWith('UND_ERR_PRX') || said === 'refused')
		return tell('untrusted', `no connection to ${origin}${through}: ${error.message}`);
	if (/^HPE_|^HTTPParserError$|^UND_ERR_HEADERS_OVERFLOW$/.test(code))
		return tell('garbled', `the answer of ${origin} is not HTTP (${code})`);
	if (written) return tell('cut', `${origin} closed the connection before its answer was complete (${code})`);
	const why = whyUnreachable(code);
	return tell(
		'unreachable',
		`cannot connect to ${origin}${through}${why === null ? '' : `: ${why}`} (${code})`,
	);
}

/** undici 7.30 reports answers of a proxy only by these texts (lib/dispatcher/proxy-agent.js). */
function saidByProxy({ message }: Error): 'authenticate' | 'refused' | null {
	if (message.startsWith('Proxy Authentication Required')) return 'authenticate';
	return message.startsWith('Proxy response') ? 'refused' : null;
}

/** True if a retry would fail too. This includes connection timeouts, because TCP has already retried for 10 s. */
export function isPermanent({ kind, written, cause }: TransportFailure): boolean {
	if (kind === 'timeout') return !written;
	if (kind !== 'unreachable') return kind !== 'cut';
	return cause instanceof Error && ['ENOTFOUND', 'UND_ERR_CONNECT_TIMEOUT'].includes(systemCodeOf(cause));
}

function systemCodeOf(error: Error): string {
	const first = error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
	return 'code' in first && typeof first.code === 'string' ? first.code : first.name;
}

function isTrustProblem(code: string): boolean {
	return /CERT|^ERR_SSL|^ERR_TLS|^UNABLE_TO|^HOSTNAME_MISMATCH$|^EPROTO$/.test(code);
}
