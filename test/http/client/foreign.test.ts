import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { clientOptions } from '../../support/client.js';
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
	client = createClient(clientOptions({ baseUrl: service.url }));
});
afterEach(async () => {
	await client.close();
	await service.close();
});

const json = (body: unknown, status = 200): Act => ({ kind: 'json', body, status });
const last = () => {
	const seen = service.asked().at(-1);
	return [seen?.method, seen?.url, seen?.body === '' ? null : JSON.parse(seen?.body ?? 'null')];
};
const subscriber = { id: 5, email: 'a@example.com', is_active: true, meta: {} };
const hook = { id: 6, url: 'https://a.example/', type: 'OPENED' };
const sent = {
	messages: [{ to: 'a@example.com', id: '6ff3e4d0-0000-4000-8000-000000000001' }],
	result: true,
	messages_created: 1,
};

describe('every request', () => {
	it('has the documented headers, and accepts compression', async () => {
		service.answer(json({ id: 1, name: 'n' }, 201));
		await client.api.lists.create({ name: 'n', email_reason: 'r' });
		expect(service.asked()[0]?.headers).toMatchObject({
			'x-secure-token': 'a-secret-token',
			accept: 'application/json',
			'content-type': 'application/json',
			'accept-encoding': 'gzip',
			'user-agent': expect.stringMatching(/^mailctl\//),
		});
	});

	it('has no token header if the client has no token', async () => {
		const anonymous = createClient(clientOptions({ baseUrl: service.url, token: null }));
		await anonymous.api.lists.page({});
		expect(service.asked()[0]?.headers).not.toHaveProperty('x-secure-token');
		await anonymous.close();
	});

	it('has a path that ends with a slash, and writes booleans as True and False', async () => {
		const { api } = client;
		const subscribers = api.subscribers(3);
		await subscribers.page({ is_active: true, email__icontains: 'a+b&c=d@é', page_size: 10 });
		expect(last()).toEqual([
			'GET',
			'/sub/lists/3/subscribers/?is_active=True&email__icontains=a%2Bb%26c%3Dd%40%C3%A9&page_size=10',
			null,
		]);
		await subscribers.page({ is_active: false, page: 2 });
		expect(last()[1]).toBe('/sub/lists/3/subscribers/?is_active=False&page=2');
		service.answer(json({ results: { total: { sent: 1, opened: 0 }, data: [] } }));
		await api.report({ date_from: '01.11.2026', event_types: ['SENT', 'OPENED'] });
		expect(last()[1]).toBe(
			'/stat/reports/events-report/?date_from=01.11.2026&event_types=SENT&event_types=OPENED',
		);
	});

	it('that gets a 201 with a Location header causes no second request', async () => {
		service.answer({ kind: 'json', status: 201, body: hook, headers: { location: 'http://127.0.0.1:9/' } });
		await client.api.webhooks.create({ url: hook.url, type: 'OPENED' });
		expect(service.asked()).toHaveLength(1);
	});
});

describe('request bodies', () => {
	it('contain meta as JSON text', async () => {
		service.answer(json(subscriber));
		const subscribers = client.api.subscribers(3);
		const input = { email: 'a@example.com', meta: { city: 'Oslo', n: 1 } };
		await subscribers.create(input);
		expect(last()).toEqual([
			'POST',
			'/sub/lists/3/subscribers/',
			{ email: 'a@example.com', meta: '{"city":"Oslo","n":1}' },
		]);
		await subscribers.patch(5, { meta: {} });
		expect(last()).toEqual(['PATCH', '/sub/lists/3/subscribers/5/', { meta: '{}' }]);
		await subscribers.patch(5, { is_active: false });
		expect(last()[2]).toEqual({ is_active: false });
	});

	it('of a PUT contain every field, so that no old value stays', async () => {
		const { api } = client;
		service.answer(json(subscriber));
		await api.subscribers(3).replace(5, { email: 'a@example.com' });
		expect(last()).toEqual([
			'PUT',
			'/sub/lists/3/subscribers/5/',
			{ email: 'a@example.com', name: '', meta: '{}' },
		]);
		await api.subscribers(3).replace(5, { email: 'a@example.com', is_active: false, name: 'Ann' });
		expect(last()[2]).toEqual({ email: 'a@example.com', name: 'Ann', meta: '{}', is_active: false });
		service.answer(json(hook));
		await api.webhooks.replace(6, { url: hook.url, type: 'OPENED' });
		expect(last()[2]).toEqual({
			url: 'https://a.example/',
			type: 'OPENED',
			is_auth_enabled: false,
			login: '',
		});
		await api.webhooks.replace(6, { url: hook.url, type: 'OPENED', password: '' });
		expect(last()[2]).toMatchObject({ login: '', password: '' });
	});

	const message = {
		from: 'n@example.com',
		to: ['a@example.com', 'b@example.com', 'A@EXAMPLE.com', 'a@example.com'],
		subject: 's',
		text_body: 't',
		list_id: 3,
		campaign_unique_id: '6ff3e4d0-0000-4000-8000-000000000002',
	};

	it('of a send to another service contain no repeated recipient, and no keys that only mailctl knows', async () => {
		service.answer(json(sent));
		expect(await client.api.send(message)).toEqual(sent);
		expect(last()).toEqual([
			'POST',
			'/message/send/',
			{ from: 'n@example.com', to: ['a@example.com', 'b@example.com'], subject: 's', text_body: 't' },
		]);
		expect(service.asked()[0]?.headers).not.toHaveProperty('idempotency-key');
	});

	it('of a send to a mailctl server contain the keys that only mailctl knows', async () => {
		service.introduce(ours);
		service.answer(json(sent));
		await client.api.send(message);
		expect(last()[2]).toMatchObject({ list_id: 3, campaign_unique_id: message.campaign_unique_id });
	});
});

describe('answers', () => {
	it('keep keys that the client does not know', async () => {
		const { api } = client;
		const list = { id: 1, name: 'News', colour: 'red', date_created: '2026-11-01T10:00:00' };
		service.answer(json(list));
		expect(await api.lists.get(1)).toEqual(list);
		const page = { ...emptyPage, count: 1, results: [list], facets: {} };
		service.answer(json(page));
		expect(await api.lists.page({})).toEqual(page);
	});

	it('can have any 2xx status if their shape is right', async () => {
		const { api } = client;
		service.answer(json({ id: 1, name: 'n' }, 200));
		expect(await api.lists.create({ name: 'n', email_reason: 'r' })).toEqual({ id: 1, name: 'n' });
		for (const act of [
			{ kind: 'empty', status: 204 },
			{ kind: 'empty', status: 200 },
			json({ deleted: true }, 202),
			{ kind: 'text', text: 'OK' },
		] satisfies Act[]) {
			service.answer(act);
			await api.lists.delete(1);
		}
	});

	it('can begin with a byte order mark', async () => {
		service.answer({ kind: 'text', text: `\ufeff${JSON.stringify({ id: 1, name: 'n' })}` });
		expect(await client.api.lists.get(1)).toEqual({ id: 1, name: 'n' });
	});

	it('keep the digits of integers above 2^53 as text', async () => {
		service.answer({ kind: 'text', text: '{"id":1,"name":"n","ids":[12345678901234567890,7,1.5]}' });
		expect(await client.api.lists.get(1)).toEqual({
			id: 1,
			name: 'n',
			ids: ['12345678901234567890', 7, 1.5],
		});
	});

	it.each([
		[null, {}],
		['{"city": "Oslo"}', { city: 'Oslo' }],
		['', {}],
		['[1]', {}],
	])('with meta %j contain the object %j', async (meta, expected) => {
		const subscribers = client.api.subscribers(3);
		service.answer(json({ ...subscriber, meta }));
		expect((await subscribers.get(5)).meta).toEqual(expected);
		service.answer(json({ ...emptyPage, count: 1, results: [{ ...subscriber, meta }] }));
		expect((await subscribers.page({})).results[0]?.meta).toEqual(expected);
	});

	it.each<[string, unknown]>([
		['no messages', { result: true, messages_created: 1 }],
		['a message without id', { ...sent, messages: [{ to: 'a@example.com' }] }],
		['no count', { messages: [], result: true }],
		['a result that is a text', { ...sent, result: 'ok' }],
	])('to a send cause the error bad_answer and no retry if they have %s', async (_, body) => {
		service.answer(json(body));
		const message = { from: 'n@example.com', to: ['a@example.com'], subject: 's', text_body: 't' };
		await expect(client.api.send(message)).rejects.toMatchObject({ code: 'bad_answer' });
		expect(service.asked()).toHaveLength(1);
	});

	it.each<[string, unknown]>([
		['no results', {}],
		['results that are a list', { results: [] }],
		['no total', { results: { data: [] } }],
		['a day without a date', { results: { total: { sent: 0, opened: 0 }, data: [{ sent: 1, opened: 1 }] } }],
	])('to a report request cause the error bad_answer if they have %s', async (_, body) => {
		service.answer(json(body));
		await expect(client.api.report({})).rejects.toMatchObject({ code: 'bad_answer' });
	});

	it('can name a campaign and a submission in headers, which the client passes to onAccepted', async () => {
		const accepted: unknown[] = [];
		const onAccepted = (one: unknown) => accepted.push(one);
		const message = { from: 'n@example.com', to: ['a@example.com'], subject: 's', text_body: 't' };
		service.answer(json(sent));
		await client.api.send(message, { onAccepted });
		const headers = { 'X-Campaign-Id': 'c', 'X-Submission-Id': 's', 'Idempotency-Replayed': 'true' };
		service.answer({ kind: 'json', body: sent, headers });
		await client.api.send(message, { onAccepted });
		expect(accepted).toEqual([
			{ campaign: null, submission: null, replayed: false },
			{ campaign: 'c', submission: 's', replayed: true },
		]);
	});
});

describe('the answer to a test of a webhook', () => {
	it.each<[string, Act, object]>([
		[
			'no body',
			{ kind: 'empty', status: 204 },
			{ result: null, status_code: null, error: null, duration_ms: null },
		],
		[
			'a text',
			{ kind: 'text', text: 'OK' },
			{ result: null, status_code: null, error: null, duration_ms: null },
		],
		[
			'the bare result',
			json({ result: true }),
			{ result: true, status_code: null, error: null, duration_ms: null },
		],
		[
			'everything',
			json({ result: false, status_code: 500, error: 'x', duration_ms: 3, more: 1 }),
			{ result: false, status_code: 500, error: 'x', duration_ms: 3, more: 1 },
		],
	])('may have %s', async (_, act, expected) => {
		service.answer(act);
		expect(await client.api.webhooks.test(6)).toEqual(expected);
		expect(last()).toEqual(['GET', '/webhooks/6/run_test/', null]);
	});
});
