/**
 * One error for everything the service refuses or cannot do, in every implementation of `Api`. The HTTP server maps
 * `code` to a status and `fields` to DRF's body; the command line maps `code` to an exit code.
 */
import { homedir } from 'node:os';
import { getSystemErrorMap } from 'node:util';

export type ApiErrorCode =
	| 'invalid' // 400 with field errors
	| 'parse_error' // 400, the body is not JSON
	| 'not_authenticated' // 401
	| 'permission_denied' // 403
	| 'not_found' // 404
	| 'method_not_allowed' // 405
	| 'conflict' // 409
	| 'too_large' // 413
	| 'unsupported_media_type' // 415
	| 'unprocessable' // 422, an idempotency key used for another body
	| 'throttled' // 429
	| 'server_error' // 5xx
	| 'unavailable' // 503, the database is locked too long
	| 'storage_full' // 507
	| 'storage_failed' // 500, the disk or the database failed
	| 'not_overwritten' // 500, done, but the deleted data is still on the disk
	| 'network' // no answer: refused, cut, TLS, proxy, timeout
	| 'bad_answer'; // an answer that is not the contract's

export interface FieldError {
	code: string;
	message: string;
}

/** Errors by field; items of a list are keyed by index, nested as DRF nests them (api-decisions 1). */
export interface FieldErrors {
	[field: string]: readonly FieldError[] | FieldErrors;
}

export const nonFieldErrors = 'non_field_errors';

/** A folder would be made below a home folder that is not there, such as /nonexistent of a system user. */
class HomeMissing extends Error {}

/** Throws where the folder to be made is the home folder itself. */
export function assertNotHome(path: string): void {
	if (path === homedir()) throw new HomeMissing(`the home folder ${path} does not exist`);
}

/** What the operating system says of a failed call, `read-only file system`; its code where it has no words for it. */
export function systemReason(error: unknown): string {
	if (error instanceof HomeMissing) return error.message;
	if (!(error instanceof Error) || !('code' in error)) return String(error);
	const errno = 'errno' in error ? Number(error.errno) : Number.NaN;
	return getSystemErrorMap().get(errno)?.[1] ?? String(error.code);
}

/** The reason in a text of OpenSSL, `wrong version number`; any other text as it is. */
export function tlsReason(text: string): string {
	return /error:[0-9A-F]{8}:[^:\n]*:[^:\n]*:([^:\n]+)/.exec(text)?.[1] ?? text;
}

/** Why there is no connection to a host, by the code of Node's error; null for any other, whose text has to do. */
export function whyUnreachable(code: string): string | null {
	return unreachable.get(code) ?? null;
}

const unreachable: ReadonlyMap<string, string> = new Map([
	['ECONNREFUSED', 'no program takes connections there'],
	['ECONNRESET', 'the connection was broken at once'],
	['ENOTFOUND', 'there is no host of this name'],
	['EAI_AGAIN', 'no name server answers'],
	['ETIMEDOUT', 'there was no answer in time'],
	['EHOSTUNREACH', 'there is no way to this host'],
	['ENETUNREACH', 'there is no way to this network'],
]);

interface ApiErrorOptions {
	fields?: FieldErrors;
	http?: { status: number; method: string; path: string };
	/** The wait that the service asked for, in milliseconds. */
	retryAfterMs?: number;
	/** The request was sent without a complete answer: it may have been carried out. */
	unanswered?: boolean;
	scopes?: Scopes;
	cause?: unknown;
}

/** The scopes that a call takes, all of one of these sets (`admin` is always enough), and those that its token has. */
export interface Scopes {
	accepted: readonly (readonly string[])[];
	held: readonly string[];
}

/** A call that was refused or not answered. `message` contains no token, password or body. */
export class ApiError extends Error {
	override readonly name = 'ApiError';
	readonly code: ApiErrorCode;
	readonly fields: FieldErrors | null;
	readonly http: { status: number; method: string; path: string } | null;
	readonly retryAfterMs: number | null;
	readonly unanswered: boolean;
	readonly scopes: Scopes | null;

	constructor(code: ApiErrorCode, message: string, options: ApiErrorOptions = {}) {
		super(message, 'cause' in options ? { cause: options.cause } : undefined);
		this.code = code;
		this.fields = options.fields ?? null;
		this.http = options.http ?? null;
		this.retryAfterMs = options.retryAfterMs ?? null;
		this.unanswered = options.unanswered ?? false;
		this.scopes = options.scopes ?? null;
	}
}

/** Statuses which mean that a request was not carried out (RFC 9110 s.15.6, RFC 4918 s.11.5). */
const notCarriedOut: ReadonlySet<number> = new Set([501, 505, 507]);

/**
 * Whether a failed send call may nevertheless have been carried out: an incomplete answer, a 408, a 5xx of a gateway or
 * of the service itself, an unreadable 2xx. 429, and 503 with Retry-After, say that nothing was done.
 */
export function mayHaveHappened({ code, unanswered, http, retryAfterMs }: ApiError): boolean {
	if (unanswered) return true;
	if (http === null) return code === 'bad_answer';
	// A question before the call, such as which service it is.
	if (http.method === 'GET') return false;
	if (http.status === 503 && retryAfterMs !== null) return false;
	if (http.status === 408 || http.status < 300) return true;
	return http.status >= 500 && !notCarriedOut.has(http.status);
}

export function isForbidden(error: unknown): boolean {
	return error instanceof ApiError && error.code === 'permission_denied';
}

export function notFound(): ApiError {
	return new ApiError('not_found', 'Not found.');
}

/** A 400 whose message names the first field error, so that a log line is useful without the fields. */
export function invalid(fields: FieldErrors): ApiError {
	const first = listFieldErrors(fields)[0];
	return new ApiError('invalid', first ? `${first.path}: ${first.message}` : 'Invalid input.', { fields });
}

export function listFieldErrors(
	fields: FieldErrors,
	prefix = '',
): { path: string; code: string; message: string }[] {
	return Object.entries(fields).flatMap(([key, value]) => {
		const path = prefix === '' ? key : `${prefix}.${key}`;
		return isErrorList(value) ? value.map((error) => ({ path, ...error })) : listFieldErrors(value, path);
	});
}

export function errorBody(fields: FieldErrors): Record<string, unknown> {
	return Object.fromEntries(
		Object.entries(fields).map(([key, value]) => [
			key,
			isErrorList(value) ? value.map((error) => error.message) : errorBody(value),
		]),
	);
}

function isErrorList(value: readonly FieldError[] | FieldErrors): value is readonly FieldError[] {
	return Array.isArray(value);
}

/**
 * `locked`: another process held the write lock longer than the timeout. `busy_elsewhere`: a running process uses the
 * older schema, so it cannot be migrated now. `key`: secrets are wrapped, and the key is missing or another one. `io`:
 * the disk failed. `unreachable`: the server of the database does not answer, or has not answered whether a write is
 * done. `denied`: it refuses the user. `bad_url`: the URL of the database has a value or parameter that none has. `not_a_database`: what is
 * named is none of mailctl, or cannot be the one that is wanted. `not_overwritten`: the operation is done and durable, but the deleted data can still be read in the
 * file. `stopped`: a signal came while the change was under way, and it is undone. `moved`: another database has taken its place, or it is an unfinished copy.
 */
export type StoreErrorCode =
	| 'not_a_database'
	| 'bad_url'
	| 'newer_schema'
	| 'locked'
	| 'disk_full'
	| 'io'
	| 'damaged'
	| 'read_only'
	| 'not_overwritten'
	| 'busy_elsewhere'
	| 'key'
	| 'denied'
	| 'unreachable'
	| 'stopped'
	| 'moved';

export class StoreError extends Error {
	override readonly name: string = 'StoreError';
	readonly code: StoreErrorCode;
	constructor(code: StoreErrorCode, message: string, options: { cause?: unknown } = {}) {
		super(message, options);
		this.code = code;
	}
}

/** The errors for callers of the API; the store's own message names files. Absent: a fault of this installation. */
const storeFaults: Readonly<Partial<Record<StoreErrorCode, readonly [ApiErrorCode, string]>>> = {
	locked: ['unavailable', 'The database is busy. Try again.'],
	unreachable: ['unavailable', 'The database of the service cannot be reached. Try again.'],
	stopped: ['unavailable', 'The service is being stopped. Try again.'],
	denied: ['storage_failed', 'The database of the service refuses its user.'],
	key: ['unavailable', 'The service lacks the key of its secrets.'],
	disk_full: ['storage_full', 'The disk of the service is full.'],
	io: ['storage_failed', 'The disk of the service failed.'],
	damaged: ['storage_failed', 'The database of the service is damaged.'],
	read_only: ['unavailable', 'The database of the service is read-only. Try again.'],
	moved: ['storage_failed', 'The database of the service was moved to another place.'],
	not_a_database: ['storage_failed', 'The database of the service is not a database.'],
	not_overwritten: [
		'not_overwritten',
		'It is done, but what was deleted is still on the disk of the service: repeat the request to overwrite it.',
	],
};

export function apiErrorOf(code: StoreErrorCode, cause: unknown): ApiError | null {
	const fault = storeFaults[code];
	return fault === undefined ? null : new ApiError(...fault, { cause });
}

export class MissingExtension extends Error {
	override readonly name = 'MissingExtension';
	readonly extension: string;
	/** The user's request: `--tag`, `mailctl templates list`; null: not known yet. */
	readonly wanted: string | null;
	constructor(extension: string, wanted: string | null = null) {
		const what = wanted ?? `the extension "${extension}"`;
		super(`${what} is not for this deployment: only mailctl's own engine and server can do that`);
		this.extension = extension;
		this.wanted = wanted;
	}
}

/** A command needs `/senders/`, which this deployment answers with 404. */
export class NoSenders extends Error {
	override readonly name = 'NoSenders';
	constructor() {
		super('this deployment tells no senders');
	}
}
