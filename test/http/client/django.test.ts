// The client with another service: Django REST framework with its defaults, on a real socket.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/api/errors.js';
import { iterate, take } from '../../../src/api/pages.js';
import { classify } from '../../../src/cli/frame/exit.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { type ClientWishes, clientOptions, failure } from '../../support/client.js';
import { type DjangoOptions, type DjangoService, djangoMissing, startDjango } from '../../support/drf.js';

const missing = await djangoMissing();
if (missing !== null) describe.skip(missing, () => it('the framework is missing', () => {}));

interface Deployment {
	django: DjangoService;
	client: Client;
	another(wishes: Partial<ClientWishes>): Client;
	stop(): Promise<void>;
}

async function deploy(options: DjangoOptions, wishes: Partial<ClientWishes> = {}): Promise<Deployment> {
	const django = await startDjango(options);
	const clients: Client[] = [];
	const another = (more: Partial<ClientWishes>) => {
		const made = createClient(
			clientOptions({ baseUrl: django.baseUrl, token: django.token, ...wishes, ...more }),
		);
		clients.push(made);
		return made;
	};
	const stop = async () => {
		for (const client of clients) await client.close();
		await django.stop();
	};
	return { django, client: another({}), another, stop };
}

describe.skipIf(missing !== null)('the client on a Django service', () => {
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

	it('reads pages of ten, whatever page_size it requests', async () => {
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
});

describe.skipIf(missing !== null)('the client on a second Django service', () => {
	it('gets the requested page_size, and classifies a 403 as exit 4', async () => {
		const { client, another, stop } = await deploy({ maxPageSize: 50, noChallenge: true });
		for (let i = 0; i < 12; i++) await client.api.fields.create({ variable: `v${i}`, name: 'V' });
		expect((await client.api.fields.page({ page_size: 12 })).results).toHaveLength(12);
		const error = await failure(another({ token: null }).api.lists.page({}));
		expect(error.code).toBe('permission_denied');
		expect(classify(error).exit).toBe(4);
		await stop();
	});

	it('continues through throttling and outages without loss or repetition', async () => {
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
