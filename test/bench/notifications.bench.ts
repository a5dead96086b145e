// Webhook deliveries to a healthy receiver, with and without a dead and a slow receiver beside it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '../../src/api/datetime.js';
import { sendNotifications } from '../../src/delivery/notifications/sender.js';
import { openStore } from '../../src/store/open.js';
import { createNotifiedDatabase } from '../support/notified-database.js';
import { type Bench, type BenchRow, median } from './bench.js';
import { syncMs } from './disk.js';

const rounds = 3;
const notifications = 10_000;
const slowMs = 3_000;

export const bench: Bench = {
	subject: `${notifications} notifications to one receiver, all commits FULL, median of ${rounds} in turn`,
	run: async () => {
		const healthy = await listen((request, response) => {
			request.resume();
			request.once('end', () => response.writeHead(204).end());
		});
		const slow = await listen((request, response) => {
			request.resume();
			setTimeout(() => response.writeHead(204).end(), slowMs);
		});
		const silent = await listen(() => {});
		const rows: BenchRow[] = [];
		const alone = await createNotifiedDatabase(notifications, [healthy.url], systemClock);
		for (const dead of [
			{ what: 'a silent', url: silent.url },
			{ what: 'a refusing', url: 'http://127.0.0.1:9/' },
		]) {
			const urls = [dead.url, slow.url, healthy.url];
			const beside = await createNotifiedDatabase(notifications, urls, systemClock);
			const rates: { alone: number[]; beside: number[] } = { alone: [], beside: [] };
			for (let round = 0; round < rounds; round++) {
				rates.alone.push(await measure(alone.path, healthy));
				rates.beside.push(await measure(beside.path, healthy));
			}
			rows.push({
				what: `beside ${dead.what} and a slow one (fdatasync ${syncMs(dirname(beside.path)).toFixed(2)} ms)`,
				limit: 'the same alone',
				limitMedian: `${Math.round(median(rates.alone))}/s`,
				oursMedian: `${Math.round(median(rates.beside))}/s`,
				ratio: median(rates.beside) / median(rates.alone),
				goal: '≥ 0.8',
			});
			rmSync(dirname(beside.path), { recursive: true });
		}
		rmSync(dirname(alone.path), { recursive: true });
		for (const server of [healthy, slow, silent]) server.close();
		return rows;
	},
};

interface Receiver {
	url: string;
	calls: number;
	onCall: () => void;
	close(): void;
}

async function listen(answer: RequestListener): Promise<Receiver> {
	const server = createServer((request, response) => {
		receiver.calls += 1;
		receiver.onCall();
		answer(request, response);
	}).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as AddressInfo;
	const receiver: Receiver = {
		...{ url: `http://127.0.0.1:${port}/`, calls: 0, onCall: () => {} },
		close: () => {
			server.closeAllConnections();
			server.close();
		},
	};
	return receiver;
}

async function measure(database: string, healthy: Receiver): Promise<number> {
	const path = join(dirname(database), `${randomUUID()}.db`);
	copyFileSync(database, path);
	const store = await openStore(path, { clock: systemClock, mode: 'existing', role: 'worker' });
	const stop = new AbortController();
	const goal = healthy.calls + notifications;
	healthy.onCall = () => {
		if (healthy.calls >= goal) stop.abort();
	};
	const began = performance.now();
	const ended = once(stop.signal, 'abort').then(() => performance.now() - began);
	await sendNotifications(
		{
			...{ writes: store.writes, clock: systemClock, random: Math.random, drainMs: 1 },
			owner: `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
			allowPrivate: async () => true,
		},
		{ until: 'stopped', signal: stop.signal },
	);
	await store.close();
	return notifications / ((await ended) / 1000);
}
