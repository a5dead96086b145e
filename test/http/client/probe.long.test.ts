// The client asks `GET /` without a token whether a service is mailctl, until it gets an answer, and then never again.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { need } from '../../../src/api/capabilities.js';
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

describe('the answer to GET /', () => {
	it.each<[string, Act]>([
		['a web page', { kind: 'text', type: 'text/html', text: '<html>Welcome</html>' }],
		['a 401', { kind: 'json', status: 401, body: { detail: 'x' } }],
		['a 404', { kind: 'json', status: 404, body: { detail: 'x' } }],
		['a 403', { kind: 'json', status: 403, body: { detail: 'x' } }],
		['a 405', { kind: 'json', status: 405, body: { detail: 'x' } }],
		['a redirect', { kind: 'empty', status: 302, headers: { location: '/login/' } }],
		['another name', { kind: 'json', body: { service: 'other', extensions: ['imports'] } }],
		['a list', { kind: 'json', body: ['mailctl'] }],
		['null', { kind: 'json', body: null }],
	])('shows that the service is not mailctl, and the client does not ask again: %s', async (_, act) => {
		service.introduce(act);
		const { api } = client({ remote: { retries: 3 } });
		expect(await api.capabilities()).toEqual(nobody);
		expect(await api.capabilities()).toEqual(nobody);
		expect(service.seen).toHaveLength(1);
		await expect(need(api, 'templates')).rejects.toMatchObject({ name: 'MissingExtension' });
	});

	it.each<[string, Act, string, number]>([
		['a 429', { kind: 'json', status: 429, body: { detail: 'x' } }, 'throttled', 2],
		['a 500', { kind: 'text', status: 500, text: '<html>' }, 'server_error', 2],
		['a 502', { kind: 'text', status: 502, text: '<html>' }, 'server_error', 2],
		[
			'a 503 with Retry-After',
			{ kind: 'empty', status: 503, headers: { 'retry-after': '0' } },
			'unavailable',
			2,
		],
		['a 504', { kind: 'text', status: 504, text: '<html>' }, 'server_error', 2],
		['a 408', { kind: 'empty', status: 408 }, 'network', 1],
		['a lost connection', { kind: 'cut' }, 'network', 2],
		['silence', { kind: 'silent' }, 'network', 2],
		['a slow answer', { kind: 'drip' }, 'network', 2],
		['a gzip bomb', { kind: 'bomb', bytes: 65 * 2 ** 20 }, 'bad_answer', 1],
	])('prevents a send, and the client asks again later: %s', async (_, act, code, asked) => {
		service.introduce(act);
		const timeoutMs = act.kind === 'silent' || act.kind === 'drip' ? 1_500 : 60_000;
		const { api } = client({ remote: { retries: 1, timeoutMs } });
		await expect(api.capabilities()).rejects.toMatchObject({ name: 'ApiError', code, unanswered: false });
		expect(service.seen).toHaveLength(asked);
		await expect(
			api.send({ from: 'a@example.com', to: ['b@example.com'], subject: 's', text_body: 't' }),
		).rejects.toMatchObject({ code, unanswered: false });
		expect(service.seen.filter(({ method }) => method !== 'GET')).toEqual([]);
		service.introduce(ours);
		expect((await api.capabilities()).service).toBe('mailctl');
	});

	it.each<[string, unknown, string[]]>([
		['extensions in a list', ['templates', 'imports', 'dancing', 7, '__proto__'], ['imports', 'templates']],
		['extensions in an object', { templates: 1, dancing: 2 }, ['templates']],
		['no extensions', undefined, []],
	])('identifies a mailctl server and its known extensions: %s', async (_, extensions, expected) => {
		service.introduce({ kind: 'json', body: { service: 'mailctl', version: '9', extensions } });
		const { service: name, idempotentSend, ext } = await client().api.capabilities();
		expect({ name, idempotentSend }).toEqual({ name: 'mailctl', idempotentSend: true });
		expect(Object.keys(ext).sort()).toEqual(expected);
	});
});

it('GET / goes to the base URL without a token', async () => {
	service.introduce(ours);
	const { api } = client({ baseUrl: `${service.url}/prefix/` });
	expect((await api.capabilities()).service).toBe('mailctl');
	expect(service.seen.map(({ method, url }) => [method, url])).toEqual([['GET', '/prefix/']]);
	expect(service.seen[0]?.headers).not.toHaveProperty('x-secure-token');
});

it('GET / is sent once per client', async () => {
	service.introduce(ours);
	const { api } = client();
	await api.capabilities();
	service.introduce({ kind: 'json', status: 404, body: { detail: 'x' } });
	expect((await api.capabilities()).service).toBe('mailctl');
	expect(service.seen).toHaveLength(1);
});
