import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError, errorBody, listFieldErrors } from '../../../src/api/errors.js';
import { errorOf } from '../../../src/http/client/errors.js';
import { startCpuClock } from '../../support/cpu-clock.js';

const asked = { method: 'POST', path: '/sub/lists/', secrets: ['a-secret-token', 'hunter2'] };

function refusal(status: number, body: unknown, headers: Record<string, string> = {}): ApiError {
	const text = typeof body === 'string' ? body : JSON.stringify(body);
	return errorOf({ status, headers, body: Buffer.from(text), durationMs: 1 }, asked, null);
}

const fieldsOf = ({ fields }: ApiError) => (fields === null ? null : errorBody(fields));
const codes = ({ fields }: ApiError) =>
	fields === null ? [] : listFieldErrors(fields).map(({ path, code }) => [path, code]);

describe('field errors', () => {
	it.each<[string, unknown, Record<string, unknown>]>([
		['lists by name', { name: ['This field is required.'] }, { name: ['This field is required.'] }],
		['a text in place of a list', { name: 'No.' }, { name: ['No.'] }],
		['several fields', { name: ['A.', 'B.'], email: ['C.'] }, { name: ['A.', 'B.'], email: ['C.'] }],
		['items under their index', { to: { 1: ['Bad.'] } }, { to: { 1: ['Bad.'] } }],
		['items at their position', { to: [[], ['Bad.']] }, { to: { 1: ['Bad.'] } }],
		['records at their position', { to: [{}, { email: ['Bad.'] }] }, { to: { 1: { email: ['Bad.'] } } }],
		['nested errors', { a: { b: { c: ['Bad.'] } } }, { a: { b: { c: ['Bad.'] } } }],
		['a list for the whole body', ['Bad.'], { non_field_errors: ['Bad.'] }],
		['errors with message and code', { name: [{ message: 'Bad.', code: 'odd' }] }, { name: ['Bad.'] }],
		['fields under errors', { errors: { name: ['Bad.'] } }, { name: ['Bad.'] }],
		[
			'a list under errors',
			{ message: 'Failed', errors: [{ field: 'name', message: 'Bad.' }, { message: 'Also.' }] },
			{ name: ['Bad.'], non_field_errors: ['Also.'] },
		],
		[
			'a list under detail with locations',
			{ detail: [{ loc: ['body', 'name'], msg: 'Bad.', type: 'x' }] },
			{ name: ['Bad.'] },
		],
		['a field with an empty list', { name: ['Bad.'], email: [] }, { name: ['Bad.'] }],
		['a field with a number', { name: ['Bad.'], status: 400 }, { name: ['Bad.'] }],
	])('are read from %s', (_, body, expected) => {
		const error = refusal(400, body);
		expect(error.code).toBe('invalid');
		expect(fieldsOf(error)).toEqual(expected);
	});

	it('are summarized by the first field’s name and text', () => {
		expect(refusal(400, { to: [[], ['Enter a valid email address.']] }).message).toBe(
			'to.1: Enter a valid email address.',
		);
	});

	it('are read to a limited depth', () => {
		const deep = `${'{"a":'.repeat(10_000)}["Bad."]${'}'.repeat(10_000)}`;
		expect(refusal(400, deep)).toMatchObject({ code: 'invalid', fields: null });
	});

	it('contain the code from X-Error-Code only if the body has a single error', () => {
		const header = { 'x-error-code': 'reserved' };
		expect(codes(refusal(400, { name: ['No.'] }, header))).toEqual([['name', 'reserved']]);
		expect(codes(refusal(400, { name: ['No.', 'Never.'] }, header))).toEqual([
			['name', 'invalid'],
			['name', 'invalid'],
		]);
		expect(codes(refusal(400, { name: ['No.'] }, { 'x-error-code': '<script>' }))).toEqual([
			['name', 'invalid'],
		]);
	});
});

describe('an error for the whole request', () => {
	it.each<[string, unknown]>([
		['detail', { detail: 'No such thing.' }],
		['RFC 7807', { type: 'about:blank', title: 'Gone', status: 404, detail: 'No such thing.' }],
		['RFC 7807 without detail', { type: 'about:blank', title: 'No such thing.' }],
		['message', { message: 'No such thing.', code: 7 }],
		['error', { error: 'No such thing.' }],
		['an error and its message', { error: { code: 'x', message: 'No such thing.' } }],
		['OAuth', { error: 'bad', error_description: 'No such thing.' }],
		['the first of several errors', { errors: ['No such thing.'] }],
		['a text', '"No such thing."'],
	])('takes its message from %s', (_, body) => {
		const error = refusal(404, body);
		expect(error).toMatchObject({ code: 'not_found', message: 'No such thing.', fields: null });
	});

	it.each<[string, string, string]>([
		['plain text', 'upstream timed out\r\n', 'The service answered 502: upstream timed out'],
		[
			'a web page',
			'<!DOCTYPE html><html><head><title>502 Bad\n Gateway</title></head><body>x</body></html>',
			'The service answered 502: 502 Bad Gateway',
		],
		['a page with a heading', '<html><body><h1>Oops</h1><p>x</p>', 'The service answered 502: Oops'],
		['a plain page', '<html><body><p>It <b>broke</b></p>', 'The service answered 502: It broke'],
		['empty', '', 'The service answered 502 without a message.'],
		['JSON of mailctl', '{"detail": "Broken."}', 'The service answered 502: Broken.'],
		['JSON without a message', '{"ok": false}', 'The service answered 502 without a message.'],
	])('from a proxy has a readable message if the body is %s', (_, body, message) => {
		expect(refusal(502, body)).toMatchObject({ code: 'server_error', message });
	});

	it.each([
		[400, 'invalid'],
		[401, 'not_authenticated'],
		[403, 'permission_denied'],
		[404, 'not_found'],
		[405, 'method_not_allowed'],
		[409, 'conflict'],
		[410, 'not_found'],
		[413, 'too_large'],
		[415, 'unsupported_media_type'],
		[418, 'invalid'],
		[422, 'unprocessable'],
		[429, 'throttled'],
		[500, 'server_error'],
		[503, 'unavailable'],
		[507, 'storage_full'],
	])('with status %d has the code %s', (status, code) => {
		expect(refusal(status, { detail: 'x' }).code).toBe(code);
	});

	it('has the code parse_error from X-Error-Code only if the status is 400', () => {
		const header = { 'x-error-code': 'parse_error' };
		expect(refusal(400, { detail: 'JSON parse error - x' }, header).code).toBe('parse_error');
		expect(refusal(404, { detail: 'x' }, header).code).toBe('not_found');
	});

	it.each([
		['read', 'send', 'read, or admin; it has send', [['read']], ['send']],
		['admin', 'read send', 'admin; it has read and send', [['admin']], ['read', 'send']],
		['send read', 'send', 'send and read, or admin; it has send', [['send', 'read']], ['send']],
		['send, read', '', 'send, or read, or admin; it has none', [['send'], ['read']], []],
	])('with status 403 names the scopes from its headers: needed %j, held %j', (accepted, held, told, sets, scopes) => {
		const header = { 'x-accepted-scopes': accepted, 'x-token-scopes': held };
		expect(refusal(403, { detail: 'No.' }, header)).toMatchObject({
			code: 'permission_denied',
			message: `No. The token needs the scope ${told}.`,
			scopes: { accepted: sets, held: scopes },
		});
	});

	it.each<Record<string, string>>([
		{},
		{ 'x-accepted-scopes': 'read' },
		{ 'x-accepted-scopes': '\u001b[2J', 'x-token-scopes': 'send' },
		{ 'x-accepted-scopes': 'owner', 'x-token-scopes': 'send' },
	])('with status 403 is unchanged if its headers name no known scopes: %j', (header) => {
		expect(refusal(403, { detail: 'No.' }, header)).toMatchObject({ message: 'No.', scopes: null });
	});
});

describe('any error answer', () => {
	it('becomes an ApiError with a message, and each field error has a text', () => {
		const status = fc.constantFrom(301, 400, 404, 409, 422, 429, 500, 503);
		fc.assert(
			fc.property(status, fc.oneof(fc.jsonValue(), fc.string()), (code, body) => {
				const error = refusal(code, body as unknown);
				expect(error).toBeInstanceOf(ApiError);
				expect(error.message).not.toBe('');
				for (const one of listFieldErrors(error.fields ?? {})) expect(one.message).toBeTypeOf('string');
			}),
			{ numRuns: 300 },
		);
	});

	it.each([
		'<title',
		'<h1 ',
		'<',
		'<style>',
		'"password":"',
		'\\',
		' ',
		'\u202e',
		'must be unique',
	])('with 100 kB of %j is read quickly', (text) => {
		const body = text.repeat(Math.ceil(100_000 / text.length));
		const cpuMs = startCpuClock();
		refusal(500, `<html>${body}`);
		refusal(400, { a: [body], detail: body });
		expect(cpuMs()).toBeLessThan(2_000);
	});
});

describe('quoted text', () => {
	it('is one short line without control characters', () => {
		const { message } = refusal(500, `a\n\tb \x1b[31m\u202e\u0007${'x'.repeat(100_000)}`);
		expect(message).toMatch(/^The service answered 500: a b \\x1b\[31m\\u\{202e\}\\x07x+…$/);
		expect(message.length).toBeLessThanOrEqual(530);
	});

	it.each<[number, unknown]>([
		[400, { detail: 'bad token a-secret-token' }],
		[400, { password: ['hunter2 is too common'] }],
		[500, 'Request: {"password": "hunter2", "x": 1} X-Secure-Token: a-secret-token'],
		[500, '<html><title>a-secret-token</title>'],
		[403, { a: { b: ['a-secret-token'] } }],
	])('never contains the token or a password: %d %j', (status, body) => {
		const error = refusal(status, body);
		const told = JSON.stringify([error.message, error.fields, error.http]);
		expect(told).not.toMatch(/a-secret-token|hunter2/);
	});
});
