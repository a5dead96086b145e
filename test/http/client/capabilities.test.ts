// Whether a deployment is ours: asked once, without a token, and never an error.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { need } from '../../../src/api/capabilities.js';
import { microsPerSecond } from '../../../src/api/datetime.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { type ClientWishes, clientOptions } from '../../support/client.js';
import { type Act, type HostileService, ours, startHostileService } from '../../support/hostile-service.js';

let service: HostileService;
const clients: Client[] = [];

beforeEach(async () => {
	service = await startHostileService();
});
afterEach(async () => {
	for (const client of clients.splice(0)) await client.close();
	await service.close();
});

function client(wishes: Partial<ClientWishes> = {}): Client {
	const made = createClient(clientOptions({ baseUrl: service.url, ...wishes }));
	clients.push(made);
	return made;
}

const nobody = { service: 'unknown', idempotentSend: false, ext: {} };

describe('a deployment that is', () => {
	it.each<[string, Act]>([
		['a page', { kind: 'text', type: 'text/html', text: '<html>Welcome</html>' }],
		['a 401', { kind: 'json', status: 401, body: { detail: 'x' } }],
		['a 404', { kind: 'json', status: 404, body: { detail: 'x' } }],
		['a redirect', { kind: 'empty', status: 302, headers: { location: '/login/' } }],
		['a 500', { kind: 'text', status: 500, text: '<html>' }],
		['a 503 that says when', { kind: 'empty', status: 503, headers: { 'retry-after': '0' } }],
		['a cut', { kind: 'cut' }],
		['silence', { kind: 'silent' }],
		['a drip', { kind: 'drip' }],
		['a bomb', { kind: 'bomb', encoding: 'gzip', bytes: 65 * 2 ** 20 }],
		['somebody else', { kind: 'json', body: { service: 'other', extensions: ['imports'] } }],
		['a list', { kind: 'json', body: ['mailctl'] }],
		['null', { kind: 'json', body: null }],
	])('%s is unknown, and asked once', async (_, act) => {
		service.introduce(act);
		const { api } = client({ remote: { retries: 3, timeoutMs: 300 } });
		expect(await api.capabilities()).toEqual(nobody);
		expect(await api.capabilities()).toEqual(nobody);
		expect(service.seen).toHaveLength(1);
		await expect(need(api, 'templates')).rejects.toMatchObject({ name: 'MissingExtension' });
	});

	it('not there at all is unknown', async () => {
		const url = service.url;
		await service.close();
		expect(await client({ baseUrl: url }).api.capabilities()).toEqual(nobody);
		service = await startHostileService();
	});

	it.each<[string, unknown, string[]]>([
		['ours has what it names', ['templates', 'imports', 'dancing', 7, '__proto__'], ['imports', 'templates']],
		['ours may number what it names', { templates: 1, dancing: 2 }, ['templates']],
		['ours may name nothing', undefined, []],
	])('%s', async (_, extensions, expected) => {
		service.introduce({ kind: 'json', body: { service: 'mailctl', version: '9', extensions } });
		const { service: name, idempotentSend, ext } = await client().api.capabilities();
		expect({ name, idempotentSend }).toEqual({ name: 'mailctl', idempotentSend: true });
		expect(Object.keys(ext).sort()).toEqual(expected);
	});
});

it('is asked below the base URL, and gets no token', async () => {
	service.introduce(ours);
	const { api } = client({ baseUrl: `${service.url}/prefix/` });
	expect((await api.capabilities()).service).toBe('mailctl');
	expect(service.seen.map(({ method, url }) => [method, url])).toEqual([['GET', '/prefix/']]);
	expect(service.seen[0]?.headers).not.toHaveProperty('x-secure-token');
});

it('is asked by nothing that can do without', async () => {
	await client().api.lists.page({});
	expect(service.seen.map(({ url }) => url)).toEqual(['/sub/lists/']);
});

it('is asked again after an hour', async () => {
	let now = 1_000_000 * microsPerSecond;
	const { api } = client({ clock: { now: () => now } });
	await api.capabilities();
	service.introduce(ours);
	now += 3_599 * microsPerSecond;
	expect((await api.capabilities()).service).toBe('unknown');
	now += 2 * microsPerSecond;
	expect((await api.capabilities()).service).toBe('mailctl');
	expect(service.seen).toHaveLength(2);
});
