// Whether a deployment is ours: asked without a token until something answers, then never again.
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

describe('a server that', () => {
	it.each<[string, Act]>([
		['a page', { kind: 'text', type: 'text/html', text: '<html>Welcome</html>' }],
		['a 401', { kind: 'json', status: 401, body: { detail: 'x' } }],
		['a 404', { kind: 'json', status: 404, body: { detail: 'x' } }],
		['a 403', { kind: 'json', status: 403, body: { detail: 'x' } }],
		['a 405', { kind: 'json', status: 405, body: { detail: 'x' } }],
		['a redirect', { kind: 'empty', status: 302, headers: { location: '/login/' } }],
		['somebody else', { kind: 'json', body: { service: 'other', extensions: ['imports'] } }],
		['a list', { kind: 'json', body: ['mailctl'] }],
		['null', { kind: 'json', body: null }],
	])('%s is not mailctl, and is asked once', async (_, act) => {
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
			'a 503 that says when',
			{ kind: 'empty', status: 503, headers: { 'retry-after': '0' } },
			'unavailable',
			2,
		],
		['a 504', { kind: 'text', status: 504, text: '<html>' }, 'server_error', 2],
		['a 408', { kind: 'empty', status: 408 }, 'network', 1],
		['a cut', { kind: 'cut' }, 'network', 2],
		['silence', { kind: 'silent' }, 'network', 2],
		['a drip', { kind: 'drip' }, 'network', 2],
		['a bomb', { kind: 'bomb', bytes: 65 * 2 ** 20 }, 'bad_answer', 1],
	])('%s does not tell, is asked like every GET, and never counts as an uncertain send', async (_, act, code, asked) => {
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

it('is asked below the base URL gets no token', async () => {
	service.introduce(ours);
	const { api } = client({ baseUrl: `${service.url}/prefix/` });
	expect((await api.capabilities()).service).toBe('mailctl');
	expect(service.seen.map(({ method, url }) => [method, url])).toEqual([['GET', '/prefix/']]);
	expect(service.seen[0]?.headers).not.toHaveProperty('x-secure-token');
});

it('is asked once during a command', async () => {
	service.introduce(ours);
	const { api } = client();
	await api.capabilities();
	service.introduce({ kind: 'json', status: 404, body: { detail: 'x' } });
	expect((await api.capabilities()).service).toBe('mailctl');
	expect(service.seen).toHaveLength(1);
});
