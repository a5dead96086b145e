// The notification sender with a real store and real targets. The clock is fake, so that four days pass at once.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { formatSecret } from '../../../src/api/webhook-calls.js';
import { type SenderEvent, sendNotifications } from '../../../src/delivery/notifications/sender.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	deliver,
	eventOf,
	hour,
	noon,
	recordOf,
	send,
	verify,
} from '../../contract/store/fixture.js';
import { eventually } from '../../support/eventually.js';

interface Called {
	path: string;
	headers: IncomingMessage['headers'];
	body: string;
	at: number;
}

describe('the sender of notifications', () => {
	const clock = { time: noon, now: () => clock.time };
	let store: Store;
	const closers: (() => Promise<void> | void)[] = [];
	beforeEach(async () => {
		clock.time = noon;
		store = await openStore(':memory:', { clock, mode: 'create', eventDelayMs: 0 });
		await verify(store);
		await store.writes.ensureWebhookSecret({ fresh: { id: 1, secret: secretKey }, now: noon });
	});
	afterEach(async () => {
		for (const close of closers.splice(0)) await close();
		await store.close();
	});
	const secretKey = Buffer.alloc(32, 7).toString('base64url');

	async function target(answer: (response: ServerResponse, calls: number) => void) {
		const calls: Called[] = [];
		const server = createServer((request, response) => {
			const chunks: Buffer[] = [];
			request.on('data', (chunk: Buffer) => chunks.push(chunk));
			request.on('end', () => {
				const { headers, url: path = '' } = request;
				calls.push({ path, headers, body: Buffer.concat(chunks).toString(), at: clock.time });
				answer(response, calls.length);
			});
		}).listen(0, '127.0.0.1');
		await once(server, 'listening');
		closers.push(() => {
			server.closeAllConnections();
			server.close();
		});
		return { calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in` };
	}
	const status =
		(code: number, headers = {}) =>
		(response: ServerResponse) => {
			response.writeHead(code, headers).end('said so');
		};
	const hookTo = async (url: string, more = {}) => {
		const input = { url, type: 'OPENED' as const, is_auth_enabled: false, login: '', password: '', ...more };
		return recordOf(await store.writes.createWebhook({ input, now: noon })).id;
	};
	const openedBy = async (to: string) => {
		await send(store, [to]);
		const id = await deliver(store, { kind: 'sent', reply: accepted250 }, clock.time);
		await store.writes.recordEvents({ events: [eventOf(id, 'OPENED', { at: clock.time })] });
	};
	const events: SenderEvent[] = [];
	const work = (more: Partial<Parameters<typeof sendNotifications>[0]> = {}) =>
		sendNotifications(
			{
				...{ writes: store.writes, clock, owner: 'host:1:a', random: () => 0.5, pollMs: 5, pauseMs: 1 },
				allowPrivate: async () => true,
				onEvent: (event) => events.push(event),
				...more,
			},
			{ until: 'settled', signal: new AbortController().signal },
		);
	const log = async (webhook_id: number) => {
		const asked = { webhook_id, state: null, since: null, page: 1, page_size: 100 };
		return (await store.reads.pageDeliveries(asked)).results;
	};

	it('signs each call, and the reference implementation accepts the signature', async () => {
		const { calls, url } = await target(status(204));
		await hookTo(url, { is_auth_enabled: true, login: 'ann', password: 'p' });
		await openedBy('a@example.org');
		clock.time = Date.now() * 1000;
		expect(await work()).toEqual({ delivered: 1, again: 0, failed: 0 });
		const [call] = calls;
		const verified = new Webhook(formatSecret(secretKey)).verify(
			call?.body ?? '',
			call?.headers as Record<string, string>,
		);
		expect(verified).toMatchObject({ id: call?.headers['webhook-id'], type: 'OPENED', test: false });
		expect(call?.headers.authorization).toBe(`Basic ${Buffer.from('ann:p').toString('base64')}`);
	});

	it('makes ten scheduled attempts with the same id and body, then marks the delivery failed', async () => {
		const { calls, url } = await target(status(500));
		const hook = await hookTo(url);
		await openedBy('a@example.org');
		const minutes = [0, 5 / 60, 5, 30, 120, 300, 600, 840, 1200, 1440];
		for (const wait of minutes) {
			clock.time += wait * 60_000_000 - 1;
			if (wait > 0) expect(await work()).toMatchObject({ again: 0, failed: 0 });
			clock.time += 1;
			await work();
		}
		clock.time += 9999 * hour;
		await work();
		expect(calls).toHaveLength(10);
		expect(new Set(calls.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
		expect(new Set(calls.map(({ body }) => body)).size).toBe(1);
		expect(await log(hook)).toMatchObject([
			{ state: 'failed', attempts: 10, last_status: 500, answer_excerpt: 'said so', due_at: null },
		]);
	});

	it('waits longer than the schedule if the target’s Retry-After is later', async () => {
		const { url } = await target(status(429, { 'retry-after': '7200' }));
		const hook = await hookTo(url);
		await openedBy('a@example.org');
		await work();
		expect(await log(hook)).toMatchObject([{ state: 'pending', due_at: '2026-03-10T14:00:00.000000' }]);
	});

	it('treats a redirect as a failure', async () => {
		const elsewhere = await target(status(204));
		const { url } = await target(status(302, { location: elsewhere.url }));
		const hook = await hookTo(url);
		await openedBy('a@example.org');
		await work();
		expect(await log(hook)).toMatchObject([{ state: 'pending', attempts: 1, last_status: 302 }]);
		expect(elsewhere.calls).toEqual([]);
	});

	it('stops a webhook whose target answers 410, and reports the stop', async () => {
		const { calls, url } = await target(status(410));
		const hook = await hookTo(url);
		await openedBy('a@example.org');
		await work();
		await openedBy('b@example.org');
		clock.time += hour;
		await work();
		expect(calls).toHaveLength(1);
		expect(events).toContainEqual({ kind: 'webhook_stopped', webhook_id: hook, url });
	});

	it('uses the new URL if the webhook’s URL changes before the old target answers 410', async () => {
		const fine = await target(status(200));
		const gone = await target((response) => {
			const patched = store.writes.patchWebhook({ id: hook, patch: { url: fine.url } });
			void patched.then(() => status(410)(response));
		});
		const hook = await hookTo(gone.url);
		events.length = 0;
		await openedBy('a@example.org');
		await work();
		expect(fine.calls.map(({ body }) => body)).toEqual(gone.calls.map(({ body }) => body));
		expect(fine.calls).toHaveLength(1);
		expect(events).toEqual([]);
	});

	it('sends a delivery that becomes due while it asks the store for due deliveries', async () => {
		const fine = await target(status(200));
		const asked = withResolvers();
		const recorded = withResolvers();
		const gone = await target((response) => {
			const patched = store.writes.patchWebhook({ id: hook, patch: { url: fine.url } });
			void Promise.all([patched, asked.promise]).then(() => status(410)(response));
		});
		const hook = await hookTo(gone.url);
		await openedBy('a@example.org');
		const writes: Parameters<typeof sendNotifications>[0]['writes'] = {
			leaseDeliveries: async (command) => {
				const leased = await store.writes.leaseDeliveries(command);
				if (leased.deliveries.length > 0) return leased;
				asked.resolve();
				await recorded.promise;
				return leased;
			},
			settleDeliveries: async (command) => {
				const settled = await store.writes.settleDeliveries(command);
				setImmediate(recorded.resolve);
				return settled;
			},
		};
		expect(await work({ writes })).toEqual({ delivered: 1, again: 1, failed: 0 });
		expect(fine.calls).toHaveLength(1);
	});

	it('delivers to a working target while another is silent and a third refuses connections', async () => {
		const held: ServerResponse[] = [];
		const silent = await target((response) => held.push(response));
		const fine = await target(status(200));
		await hookTo('http://127.0.0.1:9/in');
		await hookTo(silent.url);
		await hookTo(fine.url);
		for (let count = 0; count < 60; count++) await openedBy(`p${count}@example.org`);
		const stop = new AbortController();
		const running = sendNotifications(
			{
				...{ writes: store.writes, clock, owner: 'host:1:a', random: () => 0.5, pollMs: 5, drainMs: 5 },
				allowPrivate: async () => true,
			},
			{ until: 'stopped', signal: stop.signal },
		);
		await eventually(() => expect(fine.calls).toHaveLength(60));
		expect(held.length).toBeGreaterThan(0);
		expect(held.length).toBeLessThanOrEqual(8);
		stop.abort();
		expect((await running).delivered).toBe(60);
	});

	it('returns unfinished deliveries without counting an attempt when it is stopped', async () => {
		const silent = await target(() => {});
		const hook = await hookTo(silent.url);
		for (let count = 0; count < 40; count++) await openedBy(`p${count}@example.org`);
		const stop = new AbortController();
		const running = sendNotifications(
			{
				...{ writes: store.writes, clock, owner: 'host:1:a', random: () => 0.5, pollMs: 5, drainMs: 5 },
				allowPrivate: async () => true,
			},
			{ until: 'stopped', signal: stop.signal },
		);
		await eventually(() => expect(silent.calls).toHaveLength(8));
		stop.abort();
		await running;
		const rows = await log(hook);
		expect(new Set(rows.map(({ state, attempts }) => `${state} ${attempts}`))).toEqual(
			new Set(['pending 0']),
		);
	});

	it('continues after the store fails for a while, and calls no target twice', async () => {
		const { calls, url } = await target(status(200));
		const hook = await hookTo(url);
		for (let count = 0; count < 3; count++) await openedBy(`p${count}@example.org`);
		const failing = { lease: 2, settle: 2 };
		const { leaseDeliveries, settleDeliveries } = store.writes;
		const writes = {
			leaseDeliveries: (command: Parameters<typeof leaseDeliveries>[0]) =>
				failing.lease-- > 0 ? Promise.reject(new Error('disk full')) : leaseDeliveries(command),
			settleDeliveries: (command: Parameters<typeof settleDeliveries>[0]) =>
				failing.settle-- > 0 ? Promise.reject(new Error('disk full')) : settleDeliveries(command),
		};
		expect(await work({ writes })).toEqual({ delivered: 3, again: 0, failed: 0 });
		expect(calls).toHaveLength(3);
		expect((await log(hook)).map(({ state }) => state)).toEqual(['delivered', 'delivered', 'delivered']);
	});

	it('does not call a private address if allowPrivate returns false', async () => {
		const { calls, url } = await target(status(200));
		const hook = await hookTo(url);
		await openedBy('a@example.org');
		await work({ allowPrivate: async () => false });
		expect(calls).toEqual([]);
		expect(await log(hook)).toMatchObject([
			{ state: 'pending', last_status: null, last_error: expect.stringMatching(/private/) },
		]);
	});
});

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
	let resolve = () => {};
	const promise = new Promise<void>((done) => {
		resolve = done;
	});
	return { promise, resolve };
}
