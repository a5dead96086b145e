import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { need } from '../../../src/api/capabilities.js';
import { type Client, createClient } from '../../../src/http/client/client.js';
import { clientOptions } from '../../support/client.js';
import { type ServedEngine, serveEngine } from '../../support/served-engine.js';

interface Wire {
	url: string;
	lose(start: string, times: number): void;
	lost(): number;
	close(): Promise<void>;
}

async function startWire(to: string): Promise<Wire> {
	let start = '';
	let left = 0;
	let lost = 0;
	const sockets = new Set<Socket>();
	const server = createServer((near) => {
		const far = connect(Number(new URL(to).port), '127.0.0.1');
		let isDoomed = false;
		near.on('data', (chunk: Buffer) => {
			isDoomed ||= left > 0 && chunk.toString('latin1').startsWith(start);
			far.write(chunk);
		});
		far.on('data', (chunk: Buffer) => {
			if (!isDoomed) return near.write(chunk);
			left -= 1;
			lost += 1;
			near.destroy();
			far.destroy();
			return false;
		});
		for (const socket of [near, far]) {
			sockets.add(socket);
			socket.on('error', () => {});
			socket.on('close', () => {
				near.destroy();
				far.destroy();
			});
		}
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	const { port } = server.address() as AddressInfo; // the server listens on TCP
	return {
		url: `http://127.0.0.1:${port}`,
		lose: (text, times) => {
			start = text;
			left = times;
		},
		lost: () => lost,
		close: async () => {
			for (const socket of sockets) socket.destroy();
			await new Promise((resolve) => server.close(resolve));
		},
	};
}

let served: ServedEngine;
let wire: Wire;
let client: Client;

beforeEach(async () => {
	served = await serveEngine();
	wire = await startWire(served.url);
	client = createClient(clientOptions({ baseUrl: wire.url, token: served.token, remote: { retries: 3 } }));
});
afterEach(async () => {
	await client.close();
	await wire.close();
	await served.close();
});

const messagesStored = async () => (await (await need(served.engine, 'messages')).page({})).count;

describe('a lost answer', () => {
	it('to a send makes the client send again, but the server stores only one message', async () => {
		wire.lose('POST /message/send/', 2);
		const replayed: boolean[] = [];
		const { messages } = await client.api.send(
			{ from: served.sender, to: ['a@example.com'], subject: 's', text_body: 't' },
			{ onAccepted: (accepted) => replayed.push(accepted.replayed) },
		);
		expect(wire.lost()).toBe(2);
		expect(replayed).toEqual([true]);
		expect(await messagesStored()).toBe(1);
		const stored = await (await need(served.engine, 'messages')).get(messages[0]?.id ?? '');
		expect(stored.to).toBe('a@example.com');
	});

	it('to an import batch makes the client send again, but the server stores each row once', async () => {
		const list = await client.api.lists.create({ name: 'News', email_reason: 'asked' });
		const imports = await need(client.api, 'imports');
		const spec = { list_id: list.id, on_conflict: 'update' as const, reactivate: false };
		const { id } = await imports.open('key', spec);
		wire.lose('PUT /ext/imports/', 2);
		const ack = await imports.put(id, {
			first: 0,
			columns: ['email'],
			cells: ['a@example.com', 'b@example.com'],
		});
		expect(wire.lost()).toBe(2);
		expect(ack).toMatchObject({ position: 2, counts: { created: 2, updated: 0, unchanged: 0 } });
		expect(await served.engine.lists.get(list.id)).toMatchObject({ overall_subscribers_count: 2 });
	});
});
