import { setTimeout as delay, setImmediate as setImmediatePromise } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { Breaker } from '../../src/delivery/breaker.js';
import type { WorkerEvent } from '../../src/delivery/run.js';
import type { SmtpPool } from '../../src/delivery/smtp/pool.js';
import type { Queue } from '../../src/store/operations.js';
import { endless, testPool, testWorker } from '../support/delivery.js';
import { eventually } from '../support/eventually.js';
import { createMemoryQueue, type MemoryQueue } from '../support/memory-queue.js';
import {
	type FaultPhase,
	type FaultScript,
	type FaultServer,
	startFaultServer,
} from '../support/smtp-fault.js';

let server: FaultServer | undefined;
let pool: SmtpPool | undefined;

afterEach(async () => {
	pool?.abort();
	await server?.close();
});

const addresses = (count: number) => Array.from({ length: count }, (_, index) => `r${index}@example.net`);

async function start(script: FaultScript, count: number) {
	server = await startFaultServer(script);
	pool = testPool(server.port);
	return { server, pool, memory: createMemoryQueue({ to: addresses(count) }) };
}

/** Starts a worker whose sleeps return at once, and collects its events. */
function waitless(memory: MemoryQueue, options: Parameters<typeof testWorker>[2] = {}) {
	const events: WorkerEvent[] = [];
	if (pool === undefined) throw new Error('no pool');
	const onEvent = (event: WorkerEvent) => events.push(event);
	const run = endless(memory, pool, { sleep: () => setImmediatePromise(), onEvent, ...options });
	return { events, ...run };
}

const hold = (memory: MemoryQueue, reason: string | null) =>
	memory.queue.pause({ kind: 'manual', reason, retry_at: null, now: systemClock.now() });

describe('a queue paused by a person', () => {
	it('ends a run, which reports the reason and sends nothing', async () => {
		const { memory, pool: own } = await start({}, 3);
		await hold(memory, 'moving house');
		const result = await testWorker(memory, own).run({ scope: null, until: 'settled' });
		expect(result).toMatchObject({ kind: 'paused', reason: 'the queue is paused (moving house)' });
		expect(memory.states()).toEqual({ queued: 3 });
		expect(server?.connections).toBe(0);
	});

	it('makes a worker return leased messages, and continue when the queue is resumed', async () => {
		const { memory, server: own } = await start({}, 150);
		const { events, stop } = waitless(memory, { rate: 30 });
		await eventually(() => expect(own.bodies.length).toBeGreaterThan(3));
		await hold(memory, null);
		await eventually(() => expect(events).toEqual([{ kind: 'held', reason: 'the queue is paused' }]));
		const { sent = 0, queued = 0 } = memory.states();
		expect([sent + queued, sent, sent < 100]).toEqual([150, own.bodies.length, true]);
		expect(
			memory.rows.filter(({ state }) => state === 'queued').every((row) => row.message.attempts === 0),
		).toBe(true);
		await memory.queue.resume({ kinds: ['manual'] });
		await eventually(() => expect(own.bodies.length).toBeGreaterThan(sent));
		await stop();
	});
});

describe('a mail server that refuses the sender', () => {
	const ways: [string, FaultPhase, string][] = [
		['mail', 'MAIL', '553 5.7.1 Sender address rejected: not owned by user'],
		['rcpt', 'RCPT', '554 Relay access denied'],
		['rcpt', 'RCPT', '554 Service unavailable; Client host blocked using zen.spamhaus.org'],
		['answer', 'dot', '554 Message rejected: Email address is not verified'],
		['answer', 'dot', '554 5.2.252 SendAsDenied'],
	];
	it.each(ways)('pauses the queue until it accepts mail (phase %s): %s %s', async (name, phase, answer) => {
		let isRefusing = true;
		const { memory, pool: own } = await start(
			{ on: (at) => (at === phase && isRefusing ? { answer } : undefined) },
			60,
		);
		const run = () => testWorker(memory, own).run({ scope: null, until: 'settled' });
		const reason = `the mail server refuses the sender news@example.com: ${name}: ${answer}`;
		expect(await run()).toMatchObject({ kind: 'paused', reason });
		expect(memory.pauses.get('fault')).toMatchObject({ reason, faults: 1 });
		const { deferred = 0, queued = 0 } = memory.states();
		expect([deferred + queued, deferred >= 5, deferred <= 20]).toEqual([60, true, true]);
		expect((await run()).kind).toBe('paused');
		expect(memory.states()).toEqual({ deferred: deferred + 1, queued: queued - 1 });
		isRefusing = false;
		expect((await run()).counts.sent).toBe(queued - 1);
		expect(memory.pauses.size).toBe(0);
	});

	it('does not pause the queue if it refuses only every second mail', async () => {
		// With three messages in flight, replies may change their order, but five refusals never come in a row.
		let asked = 0;
		const answer = '550 5.7.1 Not from you';
		const { memory, pool: own } = await start(
			{ on: (phase) => (phase === 'RCPT' && asked++ % 2 === 1 ? { answer } : undefined) },
			40,
		);
		const worker = testWorker(memory, own, { connections: 1 });
		const result = await worker.run({ scope: null, until: 'settled' });
		expect(result).toMatchObject({ kind: 'done', reason: null });
		expect(memory.states()).toEqual({ sent: 20, deferred: 20 });
	});

	it('has no refusals in the store after it accepts a mail, even if one came while a run read the pauses', async () => {
		const { queue, pauses } = createMemoryQueue({ to: [] });
		const queuePauses = async () => {
			await breaker.refused('550 5.7.1 Not from you');
			return [];
		};
		const breaker = new Breaker({ queue, reads: { queuePauses }, clock: systemClock });
		await breaker.look();
		breaker.worked(true);
		await eventually(() => expect(pauses.has('refusal')).toBe(false));
	});

	it('pauses the queue at the fifth refusal, even if each worker gets only one refusal', async () => {
		const replies = ['550 5.7.1 No', '550 5.1.1 No such user', '451 4.7.1 Greylisted', '554 Relay denied'];
		const { memory, pool: own } = await start(
			{
				on: (phase) => (phase === 'RCPT' ? { answer: replies.shift() ?? '553 Sender rejected' } : undefined),
			},
			20,
		);
		// Each worker leases one message, like processes that send one each.
		const run = async (owner: string) => {
			let most = 1;
			const lease: Queue['lease'] = (c) => memory.queue.lease({ ...c, max: most-- });
			const worker = testWorker(memory, own, { queue: { ...memory.queue, lease }, owner });
			return (await worker.run({ scope: null, until: 'settled' })).kind;
		};
		const ends: string[] = [];
		for (let index = 0; index < 7; index += 1) ends.push(await run(`w${index}`));
		expect(ends).toEqual(['done', 'done', 'done', 'done', 'done', 'done', 'paused']);
		expect(memory.states()).toEqual({ bounced: 1, deferred: 6, queued: 13 });
	});
});

describe('a mail server that refuses all mail', () => {
	it('pauses the queue, with a reason and a retry time, until it accepts mail', async () => {
		let isBroken = true;
		const { memory, pool: own } = await start(
			{ on: (phase) => (phase === 'connect' && isBroken ? { answer: '554 5.3.2 Not today' } : undefined) },
			30,
		);
		const before = systemClock.now();
		await testWorker(memory, own).run({ scope: null, until: 'settled' });
		await testWorker(memory, own).run({ scope: null, until: 'settled' });
		const pause = memory.pauses.get('fault');
		expect(pause).toMatchObject({ reason: 'greeting: 554 5.3.2 Not today', faults: 2 });
		expect((pause?.retry_at ?? 0) - before).toBeGreaterThan(1_900_000);
		expect(memory.states()).toEqual({ queued: 30 });
		isBroken = false;
		const result = await testWorker(memory, own).run({ scope: null, until: 'settled' });
		expect([result.counts.sent, memory.pauses.size]).toEqual([30, 0]);
	});

	it('is tried again with one message at a time', async () => {
		const { memory, server: own } = await start(
			{
				ehlo: ['PIPELINING'],
				on: (phase, _line, { number }) =>
					phase === 'MAIL' && number <= 6 ? { answer: '530 5.7.0 Log in first' } : undefined,
			},
			40,
		);
		const { stop } = waitless(memory);
		await eventually(() => expect(memory.states()).toEqual({ sent: 40 }));
		await stop();
		expect(own.lines.filter((line) => line.startsWith('MAIL')).length).toBeLessThan(40 + 5 * 3 + 6);
	});

	it('makes other workers wait too', async () => {
		const { memory, server: own } = await start({}, 5);
		const now = systemClock.now();
		await memory.queue.pause({ kind: 'fault', reason: 'auth: 535 No', retry_at: now + 60_000_000, now });
		let sleeps = 0;
		const sleep = async () => {
			sleeps += 1;
			if (sleeps === 20) await memory.queue.resume({ kinds: ['fault'] });
			if (sleeps === 19) expect(own.connections).toBe(0);
			await setImmediatePromise();
		};
		const { events, stop } = waitless(memory, { sleep });
		await eventually(() => expect(memory.states()).toEqual({ sent: 5 }));
		await stop();
		expect(events[0]).toMatchObject({ kind: 'waiting', reason: 'auth: 535 No' });
	});

	it('is not tried again sooner when new mail arrives', async () => {
		const { memory, server: own } = await start({}, 5);
		const now = systemClock.now();
		await memory.queue.pause({ kind: 'fault', reason: 'auth: 535 No', retry_at: now + 60_000_000, now });
		const sleep = (ms: number, signal: AbortSignal) =>
			delay(ms, undefined, { signal }).catch(() => undefined);
		const { events, stop, wake } = waitless(memory, { sleep });
		await eventually(() => expect(events).toMatchObject([{ kind: 'waiting' }]));
		for (let wakes = 0; wakes < 100; wakes += 1) {
			wake();
			await setImmediatePromise();
		}
		await stop();
		expect([own.connections, events.length]).toEqual([0, 1]);
	});
});

it('a 530 reply to one of ten mails pauses the queue, but after the next run the other nine are sent', async () => {
	const { memory, pool: own } = await start(
		{
			on: (phase, line) =>
				phase === 'RCPT' && line.includes('<r0@') ? { answer: '530 5.7.0 Not for that one' } : undefined,
		},
		10,
	);
	const run = () => testWorker(memory, own, { connections: 1 }).run({ scope: null, until: 'settled' });
	expect((await run()).kind).toBe('paused');
	expect((await run()).kind).toBe('done');
	expect(memory.states()).toEqual({ queued: 1, sent: 9 });
	expect(memory.row(0)).toMatchObject({ state: 'queued', message: { attempts: 0 } });
});
