import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WireExchange } from '../../../src/api/api.js';
import { exchangeInProcess } from '../../../src/http/server/exchange.js';
import { createHandler } from '../../../src/http/server/handler.js';
import { ask, type Deployment, deploy } from './serving.js';

let deployment: Deployment;
let exchange: WireExchange;
beforeAll(async () => {
	deployment = await deploy();
	const { engine } = deployment;
	const handler = createHandler({
		api: engine,
		ext: engine.ext,
		encoded: engine.encoded,
		version: '1.2.3',
		extensions: Object.keys(engine.ext).sort(),
		authenticate: async (token) => (token === 'the owner' ? { name: 'owner', scopes: ['admin'] } : null),
	});
	exchange = exchangeInProcess(handler, 'the owner');
});
afterAll(() => deployment.close());

describe('a request without a socket', () => {
	it('is answered like one over HTTP', async () => {
		const body = JSON.stringify({ name: 'Ærø', email_reason: 'x' });
		const headers = { 'Content-Type': 'application/json' };
		const made = await exchange({ method: 'POST', path: '/sub/lists/', headers, body });
		expect(made.status).toBe(201);
		for (const path of ['/sub/lists/', '/sub/lists/1', '/sub/lists/9/', '/nope', '/']) {
			const [local, remote] = [await exchange({ method: 'GET', path }), await ask(deployment, 'GET', path)];
			expect(local.status).toBe(remote.status);
			expect(Buffer.from(local.body).toString()).toBe(remote.text);
			for (const name of ['allow', 'content-type', 'x-error-code'])
				expect(local.headers[name] ?? null).toBe(remote.headers.get(name));
			expect(local.durationMs).toBeGreaterThanOrEqual(0);
		}
	});

	it('can override the token of its client, or omit the token', async () => {
		const request = { method: 'GET', path: '/sub/lists/' };
		expect((await exchange({ ...request, token: 'wrong' })).status).toBe(401);
		const none = await exchange({ ...request, token: null });
		expect(Buffer.from(none.body).toString()).toBe(
			'{"detail":"Authentication credentials were not provided."}',
		);
	});

	it('fails with a network error if it is aborted', async () => {
		const request = { method: 'GET', path: '/sub/lists/', signal: AbortSignal.abort(new Error('enough')) };
		await expect(exchange(request)).rejects.toMatchObject({ code: 'network' });
	});
});
