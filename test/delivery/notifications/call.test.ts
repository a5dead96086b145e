import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { callWebhook } from '../../../src/delivery/notifications/call.js';

const closers: (() => void)[] = [];
afterEach(() => {
	for (const close of closers.splice(0)) close();
});

async function listen(listener: RequestListener): Promise<string> {
	const server = createServer(listener).listen(0, '127.0.0.1');
	await once(server, 'listening');
	closers.push(
		() => server.closeAllConnections(),
		() => server.close(),
	);
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

const call = (url: string, more = {}) =>
	callWebhook({ url, body: '{}', headers: {}, credentials: null, allowPrivate: true, ...more });

describe('a call to a webhook', () => {
	it('ends at its timeout if the target does not answer', async () => {
		const url = await listen(() => {});
		expect(await call(url, { timeoutMs: 50 })).toMatchObject({
			status: null,
			error: 'no answer within 50 ms',
		});
	});

	it('treats status 101, a switch of protocol, as an ordinary answer', async () => {
		const url = await listen((_request, response) => {
			response.writeHead(101, { connection: 'upgrade', upgrade: 'websocket' }).end();
		});
		expect(await call(url)).toMatchObject({ status: 101, error: null, text: '' });
	});

	it('reports the error for each address to which a name resolves', async () => {
		const url = await listen(() => {});
		for (const close of closers.splice(0)) close();
		const lookup: LookupFunction = (_name, _options, callback) =>
			callback(null, [
				{ address: '127.0.0.1', family: 4 },
				{ address: '127.0.0.2', family: 4 },
			]);
		const { error } = await call(url.replace('127.0.0.1', 'hooks.example.com'), { lookup });
		expect(error).toMatch(/ECONNREFUSED 127\.0\.0\.1:\d+; .*ECONNREFUSED 127\.0\.0\.2:\d+$/);
	});

	it('stops reading an answer that never ends', async () => {
		const url = await listen((_request, response) => {
			const pour = () => {
				while (!response.destroyed && response.write('x'.repeat(65_536)));
			};
			response.on('drain', pour);
			pour();
		});
		expect(await call(url)).toMatchObject({ status: 200 });
	});
});
