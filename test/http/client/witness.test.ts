// The client on a deployment by another hand: Django REST framework with its own defaults, on a real socket.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { need } from '../../../src/api/capabilities.js';
import { ApiError, errorBody, listFieldErrors } from '../../../src/api/errors.js';
import { iterate, take } from '../../../src/api/pages.js';
import { classify } from '../../../src/cli/frame/exit.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { type ClientWishes, clientOptions } from '../../support/client.js';
import { startWitness, type Witness, type WitnessOptions, witnessMissing } from '../../support/drf.js';

const missing = await witnessMissing();
if (missing !== null) describe.skip(missing, () => it('is not there', () => {}));

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?$/;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

async function failure(attempt: Promise<unknown>): Promise<ApiError> {
	const error: unknown = await attempt.then(
		() => new Error('did not fail'),
		(reason) => reason,
	);
	if (error instanceof ApiError) return error;
	throw error;
}

async function refusal(attempt: Promise<unknown>): Promise<[Record<string, unknown>, string[]]> {
	const { fields, code } = await failure(attempt);
	expect(code).toBe('invalid');
	return [errorBody(fields ?? {}), listFieldErrors(fields ?? {}).map((one) => one.code)];
}

interface Deployment {
	witness: Witness;
	client: Client;
	another(wishes: Partial<ClientWishes>): Client;
	stop(): Promise<void>;
}

async function deploy(options: WitnessOptions, wishes: Partial<ClientWishes> = {}): Promise<Deployment> {
	const witness = await startWitness(options);
	const clients: Client[] = [];
	const another = (more: Partial<ClientWishes>) => {
		const made = createClient(
			clientOptions({ baseUrl: witness.baseUrl, token: witness.token, ...wishes, ...more }),
		);
		clients.push(made);
		return made;
	};
	const stop = async () => {
		for (const client of clients) await client.close();
		await witness.stop();
	};
	return { witness, client: another({}), another, stop };
}

describe.skipIf(missing !== null)('the client on a Django deployment', () => {
	let deployment: Deployment;
	let api: Client['api'];
	let counter = 0;
	const unique = (word: string) => `${word}${++counter}`;
	const newList = () => api.lists.create({ name: unique('list'), email_reason: 'You asked' });

	beforeAll(async () => {
		deployment = await deploy({});
		api = deployment.client.api;
	});
	afterAll(() => deployment.stop());

	it('knows that it is not ours, and what that means', async () => {
		expect(await api.capabilities()).toEqual({ service: 'unknown', idempotentSend: false, ext: {} });
		await expect(need(api, 'campaigns')).rejects.toMatchObject({ name: 'MissingExtension' });
	});

	it('creates, reads, changes, replaces and deletes lists', async () => {
		const list = await api.lists.create({ name: 'News', email_reason: 'You asked' });
		expect(list).toEqual({
			id: expect.any(Number),
			name: 'News',
			email_reason: 'You asked',
			active_subscribers_count: 0,
			inactive_subscribers_count: 0,
			overall_subscribers_count: 0,
			date_created: expect.stringMatching(dateTime),
		});
		expect(await api.lists.get(list.id)).toEqual(list);
		expect(await api.lists.patch(list.id, { name: 'Other' })).toEqual({ ...list, name: 'Other' });
		const whole = { name: 'Third', email_reason: 'Because' };
		expect(await api.lists.replace(list.id, whole)).toEqual({ ...list, ...whole });
		await api.lists.delete(list.id);
		expect(await failure(api.lists.get(list.id))).toMatchObject({ code: 'not_found', message: 'Not found.' });
		expect(await failure(api.lists.delete(list.id))).toMatchObject({ code: 'not_found' });
	});

	it('creates, reads, changes, replaces and deletes subscribers, meta as a string', async () => {
		const { id: listId } = await newList();
		const { variable } = await api.fields.create({ variable: unique('city_'), name: 'City' });
		const subscribers = api.subscribers(listId);
		const one = await subscribers.create({
			email: 'ann@example.com',
			name: 'Ann',
			meta: { [variable]: 'Oslo' },
		});
		expect(one).toMatchObject({
			id: expect.any(Number),
			list_id: listId,
			email: 'ann@example.com',
			name: 'Ann',
			is_active: true,
			disable_reason: null,
			meta: { [variable]: 'Oslo' },
			source: 'API',
		});
		expect(await subscribers.patch(one.id, { is_active: false })).toMatchObject({
			is_active: false,
			meta: { [variable]: 'Oslo' },
		});
		// The framework keeps what a PUT leaves out; a replacement is whole all the same.
		expect(await subscribers.replace(one.id, { email: 'ann@example.org', is_active: true })).toMatchObject({
			email: 'ann@example.org',
			name: '',
			is_active: true,
			meta: {},
		});
		expect(await api.lists.get(listId)).toMatchObject({ active_subscribers_count: 1 });
		await subscribers.delete(one.id);
		expect(await failure(subscribers.get(one.id))).toMatchObject({ code: 'not_found' });
		expect(await failure(api.subscribers(999_999).page({}))).toMatchObject({ code: 'not_found' });
	});

	it('creates, changes, replaces and deletes fields', async () => {
		const variable = unique('town_');
		const field = await api.fields.create({ variable, name: 'Town' });
		expect(await api.fields.patch(field.id, { name: 'City' })).toEqual({ ...field, name: 'City' });
		const whole = { variable: unique('place_'), name: 'Place' };
		expect(await api.fields.replace(field.id, whole)).toEqual({ ...field, ...whole });
		await api.fields.delete(field.id);
		expect(await failure(api.fields.get(field.id))).toMatchObject({ code: 'not_found' });
	});

	it('creates, changes, replaces, tests and deletes webhooks', async () => {
		const hook = await api.webhooks.create({
			url: 'https://hooks.example.com/in',
			type: 'OPENED',
			is_auth_enabled: true,
			login: 'ann',
			password: 'hunter2',
		});
		expect(hook).toMatchObject({ type: 'OPENED', is_auth_enabled: true, login: 'ann', password: 'hunter2' });
		expect(await api.webhooks.patch(hook.id, { login: 'bob' })).toEqual({ ...hook, login: 'bob' });
		expect(await api.webhooks.test(hook.id)).toEqual({
			result: true,
			status_code: null,
			error: null,
			duration_ms: null,
		});
		const bare = { url: 'https://hooks.example.com/', type: 'UNSUBSCRIBED' as const };
		expect(await api.webhooks.replace(hook.id, bare)).toEqual({
			...hook,
			...bare,
			is_auth_enabled: false,
			login: '',
		});
		await api.webhooks.delete(hook.id);
		expect(await failure(api.webhooks.test(hook.id))).toMatchObject({ code: 'not_found' });
	});

	it('walks pages of ten, whatever size it wishes for', async () => {
		const { id } = await newList();
		const subscribers = api.subscribers(id);
		for (let i = 0; i < 23; i++) {
			await subscribers.create({ email: `p${i}@${i % 2 ? 'odd' : 'even'}.example` });
		}
		const first = await subscribers.page({ page_size: 1000 });
		expect([first.count, first.results.length, first.previous]).toEqual([23, 10, null]);
		const all = await take(
			iterate((request) => subscribers.page(request), { page_size: 1000 }),
			100,
		);
		expect(all.map(({ email }) => email)).toEqual(
			Array.from({ length: 23 }, (_, i) => `p${i}@${i % 2 ? 'odd' : 'even'}.example`),
		);
		const filter = { email__icontains: 'even' };
		const even = await take(
			iterate((request) => subscribers.page({ ...filter, ...request })),
			100,
		);
		expect(even.map(({ email }) => email)).toHaveLength(12);
		expect(even.every(({ email }) => email.endsWith('@even.example'))).toBe(true);
		expect(await failure(subscribers.page({ page: 9 }))).toMatchObject({ code: 'not_found' });
	});

	it('filters', async () => {
		const subscribers = api.subscribers((await newList()).id);
		await subscribers.create({ email: 'a@example.com' });
		await subscribers.create({ email: 'b@example.com', is_active: false });
		const emails = async (filter: object) =>
			(await subscribers.page(filter)).results.map(({ email }) => email);
		expect(await emails({ is_active: true })).toEqual(['a@example.com']);
		expect(await emails({ is_active: false })).toEqual(['b@example.com']);
		expect(await emails({ email__icontains: 'B@EX' })).toEqual(['b@example.com']);
		expect(await emails({ email__exact: 'a@example.com', is_active: true })).toEqual(['a@example.com']);
	});

	it('understands its complaints', async () => {
		expect(await refusal(api.lists.create({ name: ' ' } as never))).toEqual([
			{ name: ['This field may not be blank.'], email_reason: ['This field is required.'] },
			['blank', 'required'],
		]);
		expect(await refusal(api.lists.create([] as never))).toEqual([
			{ non_field_errors: ['Invalid data. Expected a dictionary, but got list.'] },
			['invalid'],
		]);
		const subscribers = api.subscribers((await newList()).id);
		await subscribers.create({ email: 'a@example.com' });
		const [again] = await refusal(subscribers.create({ email: 'a@example.com' }));
		expect(Object.keys(again)).toHaveLength(1);
		const [unknown] = await refusal(subscribers.create({ email: 'b@example.com', meta: { nothing: 'x' } }));
		expect(Object.keys(unknown)).toEqual(['meta']);
		expect(await refusal(api.webhooks.create({ url: 'nonsense', type: 'CLICKED' as never }))).toEqual([
			{ url: ['Enter a valid URL.'], type: ['"CLICKED" is not a valid choice.'] },
			['invalid', 'invalid_choice'],
		]);
		const message = { from: deployment.witness.sender, subject: 's', text_body: 't' };
		expect(await refusal(api.send({ ...message, to: ['a@example.com', 'nonsense'] }))).toEqual([
			{ to: { 1: ['Enter a valid email address.'] } },
			['invalid'],
		]);
		const [sender] = await refusal(api.send({ ...message, from: 'x@example.com', to: ['a@example.com'] }));
		expect(Object.keys(sender)).toEqual(['from']);
	});

	it('sends to each address once, without keys of ours', async () => {
		const answer = await api.send({
			from: [deployment.witness.sender],
			to: ['a@example.com', 'A@example.com', 'b@example.com'],
			subject: 's',
			text_body: 't',
			context: { name: 'Ann' },
			list_id: 1,
		});
		expect(answer).toEqual({
			messages: [
				{ to: 'a@example.com', id: expect.stringMatching(uuid) },
				{ to: 'b@example.com', id: expect.stringMatching(uuid) },
			],
			result: true,
			messages_created: 2,
		});
	});

	it('reads the report, by days and by events', async () => {
		const { total, data } = await api.report({ date_from: '01.03.2024', date_to: '03.03.2024' });
		expect(total).toMatchObject({ sent: 0, opened: 0, opened_percent: '0' });
		expect(data.map(({ date }) => date)).toEqual(['01.03.2024', '02.03.2024', '03.03.2024']);
		expect((await api.report({ event_types: ['SENT', 'OPENED'] })).data.length).toBeGreaterThanOrEqual(7);
		const [errors] = await refusal(api.report({ date_from: '2024-01-01' }));
		expect(Object.keys(errors)).toEqual(['date_from']);
		const [events] = await refusal(api.report({ event_types: ['X' as never] }));
		expect(Object.keys(events)).toEqual(['event_types']);
	});

	it('is refused without a token, and with a wrong one: exit 4', async () => {
		for (const token of [null, 'wrong']) {
			const error = await failure(deployment.another({ token }).api.lists.page({}));
			expect(error.code).toBe('not_authenticated');
			expect(classify(error).exit).toBe(4);
		}
	});
});

describe.skipIf(missing !== null)('the client on a Django deployment of another make', () => {
	it('gets its wish where page_size is honoured, and 403 counts as 401', async () => {
		const { client, another, stop } = await deploy({ maxPageSize: 50, noChallenge: true });
		for (let i = 0; i < 12; i++) await client.api.fields.create({ variable: `v${i}`, name: 'V' });
		expect((await client.api.fields.page({ page_size: 12 })).results).toHaveLength(12);
		const error = await failure(another({ token: null }).api.lists.page({}));
		expect(error.code).toBe('permission_denied');
		expect(classify(error).exit).toBe(4);
		await stop();
	});

	it('carries on where it is throttled or away for a moment, with nothing lost or made twice', async () => {
		const { client, another, stop } = await deploy({ flaky: true }, { remote: { retries: 3 } });
		const { api } = client;
		for (let i = 0; i < 4; i++) await api.lists.create({ name: `List ${i}`, email_reason: 'r' });
		const names = (
			await take(
				iterate((request) => api.lists.page(request)),
				100,
			)
		).map(({ name }) => name);
		expect(names).toEqual(['List 0', 'List 1', 'List 2', 'List 3']);
		const codes = new Set<string>();
		const impatient = another({ remote: { retries: 0 } }).api;
		for (let i = 0; i < 7; i++) {
			const error = await impatient.lists.page({}).then(
				() => null,
				(reason: unknown) => reason,
			);
			if (error instanceof ApiError) {
				codes.add(`${error.code} ${error.retryAfterMs}`);
				expect(classify(error).exit).toBe(7);
			}
		}
		expect([...codes].sort()).toEqual(['throttled 1000', 'unavailable 1000']);
		await stop();
	});
});
