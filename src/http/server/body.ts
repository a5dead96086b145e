/** The JSON body of a request, as DRF's JSONParser takes it (api-decisions 2). */
import { ApiError } from '../../api/errors.js';
import { parseJsonBody } from '../../api/json.js';
import type { HttpRequest } from '../messages.js';

/**
 * The parsed body; no body at all is `{}`, whatever its type is called. Throws `too_large`, `unsupported_media_type`
 * and `parse_error`.
 */
export async function readJson(request: HttpRequest, maxBytes: number): Promise<unknown> {
	const bytes = typeof request.body === 'function' ? await request.body(maxBytes) : request.body;
	if (bytes === null || bytes.length === 0) return {};
	if (bytes.length > maxBytes) throw tooLarge(maxBytes);
	assertJson(request.headers['content-type'] ?? '');
	assertPlain(request.headers['content-encoding']);
	const parsed = parseJsonBody(decode(bytes));
	if (parsed.kind === 'invalid') throw parseError(parsed.message);
	return parsed.value;
}

/** 413 of a body past its limit. */
export function tooLarge(maxBytes: number): ApiError {
	return new ApiError('too_large', `The request body is larger than ${maxBytes / 1024 / 1024} MiB.`);
}

// As DRF compares media types: parameters do not matter, an asterisk stands for anything, no type is no JSON.
function assertJson(contentType: string): void {
	const [main = '', sub = ''] = (contentType.split(';')[0] ?? '').trim().toLowerCase().split('/');
	const isJson = (main === 'application' || main === '*') && (sub === 'json' || sub === '*');
	if (!isJson) throw unsupported(contentType);
}

function assertPlain(encoding: string | undefined): void {
	if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw unsupported(encoding);
}

function unsupported(type: string): ApiError {
	return new ApiError('unsupported_media_type', `Unsupported media type "${type}" in request.`);
}

function decode(bytes: Uint8Array): string {
	try {
		// A byte order mark stays and is then no JSON, as in DRF.
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch (error) {
		throw parseError('The text is not UTF-8.', error);
	}
}

function parseError(tail: string, cause?: unknown): ApiError {
	return new ApiError('parse_error', `JSON parse error - ${tail}`, { cause });
}
