/**
 * Checks answers as far as the commands rely on them, and returns them unchanged, with unknown keys. Throws `ApiError`
 * `bad_answer` for anything else.
 */
import { ApiError, type Misdirection } from '../../api/errors.js';
import { isRecord, readJson } from '../../api/json.js';
import { quote } from '../../api/quote.js';
import { pageText } from './errors.js';
import type { Success } from './request.js';

/** A check of one value: returns what is missing, or null. */
export type Check = (value: unknown) => string | null;

/** The parsed body, or `bad_answer` when the check fails. `T` is the checked shape. */
export function decode<T>(success: Success, check: Check): T {
	const body = readJson(success.answer.body);
	if (body.kind === 'empty') throw badAnswer(success, 'has no body');
	if (body.kind === 'invalid') assertNoPage(success);
	if (body.kind === 'invalid') throw badAnswer(success, `${body.fault}: ${excerpt(success)}`);
	const fault = check(body.value);
	if (fault !== null) throw badAnswer(success, fault);
	return body.value as T; // checked by `check`
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

/** An object whose named keys have these kinds; other keys are not checked. */
export function record(kinds: Readonly<Record<string, Kind>>): Check {
	const wanted = Object.entries(kinds);
	return (value) => {
		if (!isRecord(value)) return 'is no object';
		const missing = wanted.find(([key, kind]) => !isKind[kind](value[key]));
		return missing === undefined ? null : `has no ${missing[0]} that is ${kindNames[missing[1]]}`;
	};
}

/** Service document, "Paginated list envelope". */
export function pageOf(item: Check): Check {
	const envelope = record({ count: 'count', next: 'link', results: 'array' });
	return (value) => {
		const fault = envelope(value);
		if (fault !== null || !isRecord(value) || !Array.isArray(value['results'])) return fault;
		for (const one of value['results']) {
			const inside = item(one);
			if (inside !== null) return `has a result that ${inside}`;
		}
		return null;
	};
}

/** A value under a key. */
export function within(key: string, inner: Check): Check {
	return (value) => {
		if (!isRecord(value)) return 'is no object';
		const fault = inner(value[key]);
		return fault === null ? null : `has ${key} that ${fault}`;
	};
}

/** A value under a key that may be absent. */
export function optional(key: string, inner: Check): Check {
	const present = within(key, inner);
	return (value) => (isRecord(value) && value[key] === undefined ? null : present(value));
}

/** All of these. */
export function every(...checks: readonly Check[]): Check {
	return (value) => {
		for (const check of checks) {
			const fault = check(value);
			if (fault !== null) return fault;
		}
		return null;
	};
}

/** A list of such values. */
export function listOf(item: Check): Check {
	return (value) => {
		if (!Array.isArray(value)) return 'is no list';
		for (const one of value) {
			const fault = item(one);
			if (fault !== null) return `has an item that ${fault}`;
		}
		return null;
	};
}

type Kind = 'id' | 'count' | 'text' | 'boolean' | 'array' | 'object' | 'link' | 'position' | 'number';

const kindNames: Readonly<Record<Kind, string>> = {
	id: 'an integer',
	count: 'a count',
	text: 'a text',
	boolean: 'true or false',
	array: 'a list',
	object: 'an object',
	link: 'a link or null',
	position: 'an integer or null',
	number: 'a number',
};

const isKind: Readonly<Record<Kind, (value: unknown) => boolean>> = {
	id: (value) => Number.isSafeInteger(value),
	count: (value) => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0,
	text: (value) => typeof value === 'string',
	boolean: (value) => typeof value === 'boolean',
	array: Array.isArray,
	object: isRecord,
	link: (value) => value === null || typeof value === 'string',
	position: (value) => value === null || Number.isSafeInteger(value),
	number: (value) => typeof value === 'number',
};
