/**
 * The receiver fails half of the calls with 500 or a lost connection, and the sender is killed twice. Every
 * notification must arrive, with the same id and body in each attempt. MAILCTL_NOTIFICATIONS sets their number.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { microsPerMs } from '../../src/api/datetime.js';
import type { Notice } from '../../src/api/webhook-calls.js';
import { refuseSignature } from '../../src/api/webhook-calls.js';
import { openStore } from '../../src/store/open.js';
import { eventually } from '../support/eventually.js';
import { bundleProgram } from '../support/fault-points.js';
import { createNotifiedDatabase } from '../support/notified-database.js';

const notifications = Number(process.env['MAILCTL_NOTIFICATIONS'] ?? 300);
const timeoutMs = Math.max(300_000, notifications * 600);
const speed = 600;
const mostFailures = 4;
const program = await bundleProgram('sender-program');

interface Seen {
	bodies: Set<string>;
	failures: number;
	taken: number;
}

async function startFailing() {
	const seen = new Map<string, Seen>();
	const state = { calls: 0, failed: 0, taken: 0 };
	const server = createServer(async (request, response) => {
		const chunks: Buffer[] = [];
		for await (const chunk of request) chunks.push(chunk);
		const body = Buffer.concat(chunks);
		const refused = refuseSignature({
			...{ headers: request.headers, body, secrets: [Buffer.alloc(32, 7).toString('base64')] },
			now: Number(request.headers['webhook-timestamp']),
		});
		if (refused !== null) throw new Error(refused);
		const id = String(request.headers['webhook-id']);
		const one = seen.get(id) ?? { bodies: new Set(), failures: 0, taken: 0 };
		seen.set(id, one);
		one.bodies.add(body.toString());
		state.calls += 1;
		if (state.calls % 2 === 0 && one.failures < mostFailures) {
			one.failures += 1;
			state.failed += 1;
			if (state.calls % 4 === 0) request.socket.destroy();
			else response.writeHead(500).end('not now');
			return;
		}
		if (one.taken === 0) state.taken += 1;
		one.taken += 1;
		response.writeHead(204).end();
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
	return {
		...{ seen, state, url },
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	};
}

it(
	`the sender delivers ${notifications} of ${notifications} webhook calls, each with one id, despite faults and kills`,
	async () => {
		const receiver = await startFailing();
		const begin = Date.now();
		const clock = { now: () => Math.round((begin + (Date.now() - begin) * speed) * microsPerMs) };
		const { path, messages } = await createNotifiedDatabase(notifications, [receiver.url], clock);
		const start = (): ChildProcess =>
			spawn(process.execPath, [program, path, String(begin), String(speed)], {
				stdio: ['ignore', 'inherit', 'inherit'],
			});
		const until = (count: number) =>
			eventually(() => expect(receiver.state.taken).toBeGreaterThanOrEqual(count), timeoutMs);

		for (const share of [0.3, 0.6]) {
			const sender = start();
			await until(Math.floor(notifications * share));
			const ended = once(sender, 'exit');
			sender.kill('SIGKILL');
			await ended;
		}
		const sender = start();
		await until(notifications);
		const store = await openStore(path, { clock, mode: 'existing' });
		const page = { webhook_id: 1, since: null, page: 1, page_size: 1 };
		await eventually(async () =>
			expect((await store.reads.pageDeliveries({ ...page, state: 'delivered' })).count).toBe(notifications),
		);
		const ended = once(sender, 'exit');
		sender.kill('SIGTERM');
		expect(await ended).toEqual([0, null]);

		const all = [...receiver.seen];
		const told = all.map(([id, { bodies }]) => {
			const [body = ''] = bodies;
			const said = JSON.parse(body) as Notice; // mailctl signed the body
			return { isOne: bodies.size === 1 && said.id === id, message: said.message.id };
		});
		expect(told.every(({ isOne }) => isOne)).toBe(true);
		expect(told.map(({ message }) => message).sort()).toEqual([...messages].sort());
		expect(receiver.state.failed).toBeGreaterThan(notifications / 3);
		await store.close();
		receiver.close();
		const twice = all.filter(([, { taken }]) => taken > 1).length;
		const { calls, failed } = receiver.state;
		process.stderr.write(
			`${notifications} of ${notifications}, ${calls} calls, ${failed} failed, ${twice} taken twice\n`,
		);
	},
	timeoutMs,
);
