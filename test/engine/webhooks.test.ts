import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { connect } from '../../src/cli/connect.js';
import { dependencies } from '../support/connect.js';
import { refuses } from '../support/refuses.js';

it('sends a test notification at once, and says what the target answered (33)', async () => {
	const bodies: unknown[] = [];
	const server = createServer((request, response) => {
		const chunks: Buffer[] = [];
		request.on('data', (chunk: Buffer) => chunks.push(chunk));
		request.on('end', () => {
			bodies.push(JSON.parse(Buffer.concat(chunks).toString()));
			response.writeHead(bodies.length === 1 ? 204 : 500).end();
		});
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
	const deps = dependencies();
	const { api, local, close } = await connect({ kind: 'local', url: ':memory:', create: true }, deps);
	await local?.settings.set({ allow_private_webhooks: 'true' });
	const hook = await api.webhooks.create({ url, type: 'OPENED' });
	expect(await api.webhooks.test(hook.id)).toEqual({
		result: true,
		status_code: 204,
		error: null,
		duration_ms: expect.any(Number),
	});
	expect(await api.webhooks.test(hook.id)).toMatchObject({ result: false, status_code: 500 });
	expect(bodies[0]).toMatchObject({
		type: 'OPENED',
		test: true,
		message: { campaign_unique_id: null },
		data: { url: null },
	});
	await local?.settings.set({ allow_private_webhooks: 'false' });
	expect(await api.webhooks.test(hook.id)).toMatchObject({ result: false, status_code: null });
	await refuses(api.webhooks.test(999), 'not_found');
	expect(bodies).toHaveLength(2);
	await close();
	server.close();
});
