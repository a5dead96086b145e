import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { classify } from '../../../src/cli/frame/exit.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { clientOptions, failure } from '../../support/client.js';
import {
	type Act,
	emptyPage,
	type HostileService,
	ours,
	startHostileService,
} from '../../support/hostile-service.js';

let service: HostileService;
let client: Client;

beforeEach(async () => {
	service = await startHostileService();
	client = createClient(clientOptions({ baseUrl: service.url, remote: { retries: 3 } }));
});
afterEach(async () => {
	await client.close();
	await service.close();
});

const list = { id: 1, name: 'News', email_reason: 'asked' };
const fine: Act = { kind: 'json', body: list };
const sent: Act = {
	kind: 'json',
	body: { messages: [{ to: 'a@example.com', id: 'x' }], result: true, messages_created: 1 },
};
const throttled = (retryAfter?: string): Act => ({
	kind: 'json',
	status: 429,
	body: { detail: 'Request was throttled.' },
	headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
});
const unavailable = (retryAfter?: string): Act => ({
	kind: 'empty',
	status: 503,
	headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
});
const broken = (status: number): Act => ({ kind: 'text', status, text: '<html>', type: 'text/html' });
const message = { from: 'n@example.com', to: ['a@example.com'], subject: 's', text_body: 't' };
const input = { name: 'News', email_reason: 'asked' };

const asked = () => service.asked().map(({ method }) => method);

describe('a request that was not processed is repeated', () => {
	it.each<[string, Act]>([
		['a 429 without Retry-After', throttled()],
		['a 429 with Retry-After', throttled('0')],
		['a 429 whose Retry-After is garbage', throttled('soon')],
		['a 429 whose Retry-After is negative', throttled('-5')],
		['a 429 whose Retry-After is a past date', throttled('Fri, 20 Nov 2020 08:00:00 GMT')],
		['a 503 with Retry-After', unavailable('0')],
	])('after %s, whatever its method', async (_, act) => {
		const { api } = client;
		for (const [method, call] of [
			['GET', () => api.lists.get(1)],
			['POST', () => api.lists.create(input)],
			['PATCH', () => api.lists.patch(1, input)],
			['PUT', () => api.lists.replace(1, input)],
		] as const) {
			service.seen.length = 0;
			service.answer(act, fine);
			expect(await call()).toEqual(list);
			expect(asked()).toEqual([method, method]);
		}
		service.answer(act, sent);
		expect(await api.send(message)).toMatchObject({ messages_created: 1 });
	});

	it.each([
		throttled('0'),
		unavailable('0'),
		broken(502),
	])('unless the request tests a webhook: status $status', async (act) => {
		service.answer(act, { kind: 'empty', status: 204 });
		await failure(client.api.webhooks.test(1));
		expect(asked()).toEqual(['GET']);
	});

	it('until no retries are left, and then fails with the service’s message and exit 7', async () => {
		service.answer(throttled('0'));
		const error = await failure(client.api.lists.create(input));
		expect(error).toMatchObject({ code: 'throttled', message: 'Request was throttled.', retryAfterMs: 0 });
		expect(classify(error).exit).toBe(7);
		expect(asked()).toHaveLength(4);
	});

	it.each([
		'61',
		'86400',
		'999999999999',
		'Fri, 20 Nov 2099 08:00:00 GMT',
	])('unless Retry-After asks for more than a minute: %s', async (retryAfter) => {
		service.answer(throttled(retryAfter));
		const error = await failure(client.api.lists.get(1));
		expect(error.retryAfterMs).toBeGreaterThan(60_000);
		expect(asked()).toHaveLength(1);
	});

	it('unless retries are turned off', async () => {
		const patient = createClient(clientOptions({ baseUrl: service.url, remote: { retries: 0 } }));
		service.answer(throttled('0'), fine);
		await failure(patient.api.lists.get(1));
		expect(asked()).toHaveLength(1);
		await patient.close();
	});

	it('until the call is aborted', async () => {
		service.answer(throttled('30'));
		const stop = new AbortController();
		const reason = new Error('enough');
		const lines: string[] = [];
		const traced = createClient(
			clientOptions({
				baseUrl: service.url,
				remote: { retries: 3 },
				trace: (line) => {
					lines.push(line);
					if (line.startsWith('* trying again')) stop.abort(reason);
				},
			}),
		);
		await expect(traced.api.lists.get(1, { signal: stop.signal })).rejects.toBe(reason);
		expect(lines.at(-1)).toBe('* trying again in 30000 ms');
		await traced.close();
	});
});

describe('a request that may have been processed', () => {
	const faults: [string, Act][] = [
		['a 500', broken(500)],
		['a 502', broken(502)],
		['a 503 without Retry-After', unavailable()],
		['a 504', broken(504)],
		['a lost connection', { kind: 'cut' }],
		['a truncated answer', { kind: 'truncated', text: '{' }],
	];

	it.each(faults)('is repeated after %s if it is GET, PUT or DELETE', async (_, act) => {
		const { api } = client;
		service.answer(act, fine);
		expect(await api.lists.get(1)).toEqual(list);
		service.answer(act, fine);
		expect(await api.lists.replace(1, input)).toEqual(list);
		service.answer(act, { kind: 'empty', status: 204 });
		await api.lists.delete(1);
		expect(asked()).toEqual(['GET', 'GET', 'PUT', 'PUT', 'DELETE', 'DELETE']);
	});

	it.each(
		faults,
	)('is not repeated after %s if it is POST, PATCH, a webhook test, or a send to another service', async (_, act) => {
		const { api } = client;
		for (const call of [
			() => api.lists.create(input),
			() => api.lists.patch(1, input),
			() => api.webhooks.test(1),
			() => api.send(message),
		]) {
			service.seen.length = 0;
			service.answer(act, fine);
			await failure(call());
			expect(asked()).toHaveLength(1);
		}
	});

	it.each(
		faults,
	)('is repeated with the same idempotency key after %s if it is a send to mailctl', async (_, act) => {
		service.introduce(ours);
		service.answer(act, act, sent);
		expect(await client.api.send(message)).toMatchObject({ result: true });
		const keys = service.asked().map(({ headers }) => headers['idempotency-key']);
		expect(keys).toHaveLength(3);
		expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
		expect(new Set(keys).size).toBe(1);
	});

	it('is repeated while the server is still processing the first attempt', async () => {
		const running: Act = { kind: 'json', status: 409, body: { detail: 'Still running.' } };
		service.introduce(ours);
		service.answer({ kind: 'cut' }, running, running, sent);
		expect(await client.api.send(message)).toMatchObject({ result: true });
		service.answer(running, sent);
		expect(await failure(client.api.send(message))).toMatchObject({ code: 'conflict' });
	});

	it('stays uncertain if the second attempt gets a 429 or 503, but not if that attempt gets a 400', async () => {
		const { api } = client;
		service.answer({ kind: 'cut' }, throttled('61'));
		expect(await failure(api.lists.delete(1))).toMatchObject({ code: 'throttled', unanswered: true });
		service.answer(broken(502), unavailable('61'));
		expect(await failure(api.lists.replace(1, input))).toMatchObject({
			code: 'unavailable',
			unanswered: true,
		});
		const refused: Act = { kind: 'json', status: 400, body: { to: ['Bad.'] } };
		service.introduce(ours);
		service.answer({ kind: 'cut' }, refused);
		expect(await failure(api.send(message))).toMatchObject({ code: 'invalid', unanswered: false });
		service.answer(throttled('61'));
		expect(await failure(api.send(message))).toMatchObject({ code: 'throttled', unanswered: false });
	});

	it('is repeated with the idempotency key of the caller', async () => {
		service.introduce(ours);
		service.answer({ kind: 'cut' }, sent);
		await client.api.send(message, { idempotencyKey: 'mine' });
		expect(service.asked().map(({ headers }) => headers['idempotency-key'])).toEqual(['mine', 'mine']);
	});

	it('is repeated after a timeout, with a new timeout for each attempt', async () => {
		const hasty = createClient(
			clientOptions({ baseUrl: service.url, remote: { retries: 1, timeoutMs: 2_000 } }),
		);
		service.answer({ kind: 'drip' }, fine);
		expect(await hasty.api.lists.get(1)).toEqual(list);
		service.answer({ kind: 'silent' }, fine);
		expect(await failure(hasty.api.lists.create(input))).toMatchObject({ code: 'network', unanswered: true });
		await hasty.close();
	});

	it('succeeds if it is a DELETE that loses its connection and then gets a 404', async () => {
		const gone: Act = { kind: 'json', status: 404, body: { detail: 'Not found.' } };
		service.answer({ kind: 'cut' }, gone);
		await client.api.lists.delete(1);
		service.answer(throttled('0'), gone);
		expect(await failure(client.api.lists.delete(1))).toMatchObject({ code: 'not_found' });
	});
});

it('an empty page is not requested again', async () => {
	service.answer({ kind: 'json', body: emptyPage });
	await client.api.lists.page({});
	expect(asked()).toEqual(['GET']);
});
