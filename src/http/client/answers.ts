/**
 * Checks answers as far as the commands rely on them, and returns them unchanged, with unknown keys. Throws `ApiError`
 * `bad_answer` for anything else.
 */
import { ApiError, type Misdirection } from '../../api/errors.js';
import { isRecord, readJson } from '../../api/json.js';
import { quote } from '../../api/quote.js';
import type { Shape } from '../../api/schema/record.js';
import { pageText } from './errors.js';
import type { Success } from './request.js';

/** The parsed body, or `bad_answer` where something is missing that commands rely on. */
export function decode(success: Success, shape: Shape<unknown>): Readonly<Record<string, unknown>> {
	const body = readJson(success.answer.body);
	if (body.kind === 'empty') throw badAnswer(success, 'has no body');
	if (body.kind === 'invalid') assertNoPage(success);
	if (body.kind === 'invalid') throw badAnswer(success, `${body.fault}: ${excerpt(success)}`);
	if (!isRecord(body.value)) throw badAnswer(success, 'is no object');
	const missing = shape.missing(body.value);
	if (missing !== null) throw badAnswer(success, `has no ${missing.path} that is ${missing.kind}`);
	return body.value;
}

/** Refuses an HTML page, which comes from a program in the service's place. The answer to a deletion is ignored else. */
export function assertNoPage(success: Success): void {
	const { body } = success.answer;
	if (/^\s*</.test(body.toString('utf8', 0, 1_000)))
		throw badAnswer(success, `is a web page, not JSON: ${titleOf(success)}`, 'page');
}

/** Our own servers answer 204 where there is no result; any other success is not theirs. */
export function assertNothing(success: Success): void {
	const { status } = success.answer;
	if (status !== 204) throw badAnswer(success, `is ${status} where nothing was to come: ${excerpt(success)}`);
}

/** `fault` continues "The answer". */
export function badAnswer(
	{ answer, requested }: Success,
	fault: string,
	misdirected?: Misdirection,
): ApiError {
	const { status } = answer;
	return new ApiError('bad_answer', `The answer ${fault} (${requested.method} ${requested.path}).`, {
		http: { status, method: requested.method, path: requested.path },
		...(misdirected !== undefined && { misdirected }),
	});
}

function excerpt({ answer, requested }: Success): string {
	return quote(answer.body.toString('utf8', 0, 400), requested.secrets).slice(0, 80);
}

function titleOf({ answer, requested }: Success): string {
	return `"${quote(pageText(answer.body).slice(0, 400), requested.secrets).slice(0, 80)}"`;
}
