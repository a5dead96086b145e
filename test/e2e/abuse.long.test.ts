/**
 * Attacks on a server without a proxy. Each test measures the answers and response times of other clients, and the
 * memory of the server. All clients run on one machine, so the attacker and the others share an address.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { observe } from '../support/bystander.js';
import { memoryOf } from '../support/memory.js';
import { type Serving, startServing } from '../support/serving.js';

let serving: Serving;
let calm: Serving;
const sockets: Socket[] = [];

beforeAll(async () => {
	calm = await startServing();
});
afterAll(() => calm.stop('SIGKILL'));
afterEach(async () => {
	for (const socket of sockets.splice(0)) socket.destroy();
	await serving.stop('SIGKILL');
});

async function attacker(from = '127.0.0.1'): Promise<Socket> {
	const { hostname, port } = new URL(serving.url);
	const socket = connect({ host: hostname, port: Number(port), localAddress: from });
	sockets.push(socket);
	socket.on('error', () => {}).resume();
	await new Promise<void>((resolve) => {
		socket.once('connect', resolve).once('close', () => resolve());
	});
	return socket;
}

/** Writes as fast as the other end reads, until `enough` is aborted. */
async function flood(socket: Socket, block: Buffer, enough: AbortSignal): Promise<void> {
	while (!enough.aborted && socket.writable) {
		if (socket.write(block)) await new Promise(setImmediate);
		else {
			const next = new AbortController();
			const events = [once(socket, 'drain', next), once(socket, 'close', next), once(enough, 'abort', next)];
			await Promise.race(events).catch(() => {});
			next.abort();
		}
	}
}

/** Returns the peak of the server's resident memory during `work`. */
async function peakDuring<T>(work: Promise<T>): Promise<{ result: T; peakMb: number }> {
	let peakMb = memoryOf(serving.process.pid).residentMb;
	const timer = setInterval(() => {
		peakMb = Math.max(peakMb, memoryOf(serving.process.pid).residentMb);
	}, 50);
	const result = await work.finally(() => clearInterval(timer));
	return { result, peakMb };
}

/** Attacks while other clients send requests; the attack must not affect them. */
async function attack(carryOut: (enough: AbortSignal) => Promise<unknown>): Promise<void> {
	for (let at = 0; at < 30; at++) await serving.fetch('/sub/lists/').then((answer) => answer.text());
	const before = memoryOf(serving.process.pid).residentMb;
	const { result, peakMb } = await peakDuring(observe({ attacked: serving, calm }, carryOut));
	expect(Object.keys(result.statuses)).toEqual(['200']);
	expect(result.p99).toBeLessThan(result.patience);
	expect(peakMb - before).toBeLessThan(200);
}

const mib = 1024 * 1024;
const pipelined = Buffer.from('GET /sub/lists/ HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2_000));

describe('a server without a proxy', () => {
	it('serves others while fifty connections send requests and read no answer', async () => {
		serving = await startServing();
		const wires = await Promise.all(Array.from({ length: 50 }, () => attacker()));
		for (const socket of wires) socket.pause();
		await attack((enough) => Promise.all(wires.map((socket) => flood(socket, pipelined, enough))));
	});

	it.each([
		'/u/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
		'/sub/lists/',
	])('serves others while 1,100 clients slowly send a form to %s', async (path) => {
		serving = await startServing();
		const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 60000\r\n\r\na`;
		await attack(async (enough) => {
			const wires = await Promise.all(Array.from({ length: 1_100 }, () => attacker()));
			for (const socket of wires) socket.write(head);
			while (!enough.aborted) {
				await new Promise((resolve) => setTimeout(resolve, 200));
				for (const socket of wires) if (socket.writable) socket.write('b');
			}
		});
	});

	it('serves others while 10,100 connections from eleven addresses send nothing', async () => {
		serving = await startServing();
		for (let i = 0; i < 10_100; i += 100)
			await Promise.all(Array.from({ length: 100 }, () => attacker(`127.0.1.${Math.floor(i / 1_000) + 1}`)));
		await attack((enough) => once(enough, 'abort'));
	});

	it('serves others while a client with a token sends 10 MiB of brackets', async () => {
		serving = await startServing();
		const headers = { 'Content-Type': 'application/json' };
		const bodies = ['[', '[],', '{"a":'].map((piece) =>
			`[${piece.repeat(Math.floor((10 * mib - 8) / piece.length))}`.slice(0, 10 * mib),
		);
		await attack(async (enough) => {
			while (!enough.aborted) {
				for (const body of bodies)
					for (const path of ['/message/send/', '/sub/lists/', '/ext/suppressions/check/']) {
						const answer = await serving.fetch(path, { method: 'POST', body, headers });
						expect([400, 413]).toContain(answer.status);
						await answer.text();
					}
			}
		});
	});

	const unknown = '00000000-0000-4000-8000-000000000000';
	const mail = { from: 'news@example.com', to: ['a@example.com'], subject: 'S', text_body: 'T' };
	const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
	const keys = (count: number) => Object.fromEntries(times(count, 'x').map((value, at) => [`k${at}`, value]));
	const json = (value: unknown) => JSON.stringify(value);
	it.each([
		['PUT', `mailings/${unknown}/requests/0/`, json({ requests: times(100_000, { request: {} }) }), 400],
		['PUT', 'mailings/REQUESTS/requests/0/', json({ requests: times(10_000, { request: mail }) }), 200],
		['PUT', 'mailings/REQUESTS/requests/0/', `{"requests":[${'1.0,'.repeat(1_000_000)}1]}`, 400],
		['PUT', `imports/${unknown}/batches/0/`, json({ columns: ['email'], cells: times(800_000, null) }), 413],
		['POST', '../message/send/', json({ ...mail, context: keys(190_000) }), 400],
	])('serves others while a client with a token sends large JSON: %s %s (case %#)', async (method, path, body, status) => {
		serving = await startServing();
		const headers = { 'Content-Type': 'application/json' };
		const opened = await serving.fetch('/ext/mailings/', {
			...{ method: 'POST', headers, body: json({ key: 'k', requests: true }) },
		});
		const { id } = (await opened.json()) as { id: string };
		const place = path.replace('REQUESTS', id);
		await attack(async (enough) => {
			while (!enough.aborted) {
				const answer = await serving.fetch(`/ext/${place}`, { method, headers, body });
				expect([answer.status, (await answer.text()).slice(0, 200)]).toEqual([status, expect.anything()]);
			}
		});
	});
});
