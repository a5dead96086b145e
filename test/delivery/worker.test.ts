import { setTimeout as delay, setImmediate as setImmediatePromise } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { StoreError } from '../../src/api/errors.js';
import type { WorkerEvent, WorkerOptions } from '../../src/delivery/run.js';
import { endless, testPool, testWorker } from '../support/delivery.js';
import { eventually } from '../support/eventually.js';
import { createMemoryQueue } from '../support/memory-queue.js';
import { type FaultScript, startFaultServer } from '../support/smtp-fault.js';
import { messageIdIn, startSmtpSink } from '../support/smtp-sink.js';

const addresses = (count: number) => Array.from({ length: count }, (_, index) => `r${index}@example.net`);
const settled = { scope: null, until: 'settled' } as const;

const ends: (() => unknown)[] = [];
afterEach(async () => {
	for (const end of ends.splice(0).reverse()) await end();
});

function begin<Server extends { port: number; close(): unknown }>(
	server: Server,
	queue: Parameters<typeof createMemoryQueue>[0],
	options?: Parameters<typeof testPool>[1],
) {
	const pool = testPool(server.port, options);
	ends.push(
		() => server.close(),
		() => pool.abort(),
	);
	return { pool, memory: createMemoryQueue(queue) };
}

async function toSink(queue: Parameters<typeof begin>[1]) {
	const sink = await startSmtpSink();
	return { sink, ...begin(sink, queue) };
}

async function toFaults(
	script: FaultScript,
	queue: Parameters<typeof begin>[1],
	options?: Parameters<typeof begin>[2],
) {
	const server = await startFaultServer(script);
	return { server, ...begin(server, queue, options) };
}

describe('a worker with a working server', () => {
	it('delivers each message once and records it as sent', async () => {
		const { sink, pool, memory } = await toSink({ to: addresses(250) });
		const result = await testWorker(memory, pool).run(settled);
		expect(result).toEqual({
			kind: 'done',
			reason: null,
			counts: { sent: 250, deferred: 0, bounced: 0, failed: 0, uncertain: 0, canceled: 0 },
		});
		expect(memory.states()).toEqual({ sent: 250 });
		expect(new Set(sink.received.map(({ raw }) => messageIdIn(raw))).size).toBe(250);
		expect(sink.received).toHaveLength(250);
		expect(sink.connections).toBeLessThanOrEqual(5);
	});

	it('sends every message that it leased, even if the store is slow', async () => {
		const { pool, memory } = await toSink({ to: addresses(250) });
		const slow: typeof memory.queue = {
			...memory.queue,
			settle: async (command) => {
				// Wait longer than it takes to send the hundred messages that may be unrecorded.
				await delay(400);
				return memory.queue.settle(command);
			},
		};
		const result = await testWorker({ ...memory, queue: slow }, pool).run(settled);
		expect([result.kind, result.counts.sent]).toEqual(['done', 250]);
		expect(memory.states()).toEqual({ sent: 250 });
	});

	it.each([
		'a message of its scope that a dead process has leased',
		'a message of everything that a dead process has leased',
		'a message of its scope that is queued for later, after a worker died while composing it',
	])('does not end before it has sent %s', async (what) => {
		const { pool, memory } = await toSink({ to: addresses(3) });
		const { submission } = memory.row(0).message;
		const now = systemClock.now();
		if (what.includes('later')) memory.row(0).due = now + 60_000_000;
		else await memory.queue.lease({ owner: 'dead', now, until: now + 3_600_000_000, max: 1, scope: null });
		const run = testWorker(memory, pool, {
			// One hour passes while the run waits.
			sleep: async () => {
				Object.assign(memory.row(0), { until: 0, due: 0 });
			},
		}).run(
			what.includes('everything')
				? { scope: null, until: 'idle' }
				: { scope: { submission }, until: 'settled' },
		);
		expect((await run).counts.sent).toBe(3);
		expect(memory.states()).toEqual({ sent: 3 });
	});

	it('sends the expected bytes to each envelope address once', async () => {
		const { sink, pool, memory } = await toSink({
			to: ['Ann <ann@example.net>'],
			envelope: { cc: ['C <c@example.net>'], bcc: ['b@example.net', 'ann@example.net'] },
			now: 1_700_000_000_000_000,
		});
		await testWorker(memory, pool).run(settled);
		const mail = sink.received[0];
		expect(mail?.from).toBe('news@example.com');
		expect(mail?.to).toEqual(['ann@example.net', 'c@example.net', 'b@example.net']);
		expect(mail?.raw.toString()).toBe(
			[
				'Date: Tue, 14 Nov 2023 22:13:20 +0000',
				'From: Sender <news@example.com>',
				'To: Ann <ann@example.net>',
				'Cc: C <c@example.net>',
				'Subject: Hello',
				'Message-ID: <00000000-0000-4000-8000-000000000000@example.com>',
				'MIME-Version: 1.0',
				'Content-Type: text/plain; charset=utf-8',
				'Content-Transfer-Encoding: quoted-printable',
				'',
				'A text',
				'view:-',
				'',
			].join('\r\n'),
		);
		expect(memory.row(0).outcomes).toMatchObject([{ kind: 'sent', reply: { phase: 'answer', code: 250 } }]);
	});

	it('does not exceed its rate', async () => {
		const { sink, pool, memory } = await toSink({ to: addresses(21) });
		const start = performance.now();
		await testWorker(memory, pool, { rate: 50 }).run(settled);
		expect(performance.now() - start).toBeGreaterThan(380);
		expect(sink.received).toHaveLength(21);
	});

	it('runs until its signal aborts, and sends new messages when it is woken', async () => {
		const { sink, pool, memory } = await toSink({ to: addresses(2) });
		memory.row(1).due = Number.MAX_SAFE_INTEGER;
		const { stop, wake } = endless(memory, pool);
		await sink.until(1);
		memory.row(1).due = 0;
		wake();
		await sink.until(2);
		expect(await stop()).toMatchObject({ kind: 'aborted', counts: { sent: 2 } });
		expect(memory.states()).toEqual({ sent: 2 });
	});

	it('leases more messages while a slow server delays a message', async () => {
		const memory = createMemoryQueue({ to: addresses(2) });
		memory.row(1).due = Number.MAX_SAFE_INTEGER;
		const begun: string[] = [];
		const answers: (() => void)[] = [];
		const slow: WorkerOptions['pool'] = {
			send: async ({ to }) => {
				begun.push(to);
				await new Promise<void>((resolve) => answers.push(resolve));
				const reply = { phase: 'answer', code: 250, enhanced: null, text: 'Taken' } as const;
				return { kind: 'accepted', reply, refusedCopies: [] };
			},
			halt: () => undefined,
			abort: () => undefined,
		};
		const running = testWorker(memory, slow).run(settled);
		await eventually(() => expect(begun).toHaveLength(1));
		memory.row(1).due = 0;
		await eventually(() => expect(begun).toHaveLength(2));
		for (const answer of answers) answer();
		expect((await running).counts.sent).toBe(2);
	});
});

describe('a worker that is told to stop', () => {
	it('returns messages it has not started, and aborts slow ones', async () => {
		const { server, pool, memory } = await toFaults(
			{ at: { MAIL: { hang: true } } },
			{ to: addresses(20) },
			{ timeouts: {} },
		);
		const { stop } = endless(memory, pool, { drainMs: 50 });
		await eventually(() => expect(server?.lines.filter((line) => line.startsWith('MAIL')).length).toBe(5));
		expect(await stop()).toMatchObject({ kind: 'aborted', counts: { sent: 0, deferred: 0 } });
		expect(memory.states()).toEqual({ queued: 20 });
		expect(memory.row(0).outcomes).toEqual([{ kind: 'released', why: 'drain' }]);
	});
});

describe('a worker with a time limit', () => {
	it('starts no message shortly before its limit, and finishes those in flight', async () => {
		let answer: (told: { answer: string }) => void = () => undefined;
		const later = new Promise<{ answer: string }>((resolve) => {
			answer = resolve;
		});
		const { server, pool, memory } = await toFaults(
			{ at: { dot: { later } } },
			{ to: addresses(9) },
			{ connections: 1, timeouts: {} },
		);
		const control = new AbortController();
		const running = testWorker(memory, pool, { connections: 1 }).run({
			scope: null,
			until: 'settled',
			signal: control.signal,
			leftMs: 4_000,
		});
		await eventually(() => expect(server?.bodies).toHaveLength(1));
		await eventually(() => expect(memory.states()).toEqual({ leased: 3, queued: 6 }));
		answer({ answer: '250 2.0.0 Taken' });
		await eventually(() => expect(memory.states()).toEqual({ sent: 3, queued: 6 }));
		control.abort();
		expect(await running).toMatchObject({ kind: 'aborted', counts: { sent: 3, uncertain: 0 } });
		expect(server.bodies).toHaveLength(3);
	});
});

describe('a worker whose lease was taken over', () => {
	it('discards the outcome of the message, and reports the lost lease', async () => {
		const { pool, memory } = await toSink({ to: addresses(1) });
		const events: WorkerEvent[] = [];
		const { settle } = memory.queue;
		memory.queue.settle = async (c) => {
			memory.row(0).message.fence += 1;
			return settle(c);
		};
		const result = await testWorker(memory, pool, { onEvent: (event) => events.push(event) }).run(settled);
		expect(result.counts.sent).toBe(0);
		expect(events).toEqual([{ kind: 'lost_lease', message: memory.row(0).message.message, outcome: 'sent' }]);
	});

	it('does not start the message if the lease has expired', async () => {
		const { sink, pool, memory } = await toSink({ to: addresses(1) });
		let now = 1_000_000;
		const events: WorkerEvent[] = [];
		const clock = { now: () => now };
		const { lease } = memory.queue;
		let leases = 0;
		memory.queue.lease = async (c) => {
			const leased = leases++ === 0 ? await lease(c) : [];
			now = 500_000_000;
			return leased;
		};
		await testWorker(memory, pool, { clock, onEvent: (event) => events.push(event) }).run(settled);
		expect(events).toMatchObject([{ kind: 'lost_lease', outcome: 'not begun' }]);
		expect(sink.received).toHaveLength(0);
	});
});

describe('a worker whose leases expired while it was slow', () => {
	it('leases the messages again, and sends none twice', async () => {
		const { server, pool, memory } = await toFaults({}, { to: addresses(60) });
		const { settle, lease } = memory.queue;
		// The first outcomes are recorded only after the same messages were leased again.
		let relet: (() => void) | null = null;
		const isRelet = new Promise<void>((resolve) => {
			relet = resolve;
		});
		memory.queue.settle = async (c) => {
			await isRelet;
			return settle(c);
		};
		memory.queue.lease = async (c) => {
			for (const row of memory.rows) row.until = 0;
			const leased = await lease(c);
			if (leased.some(({ fence }) => fence > 1)) relet?.();
			return leased;
		};
		const { stop } = endless(memory, pool);
		await eventually(() => expect(memory.states()).toEqual({ sent: 60 }));
		await stop();
		expect(server.bodies).toHaveLength(60);
	});
});

describe('a worker whose store fails', () => {
	it('ends with the store’s error if it cannot record outcomes', async () => {
		const { sink, pool, memory } = await toSink({ to: addresses(400) });
		const full = new StoreError('disk_full', 'disk full');
		memory.queue.settle = async () => {
			throw full;
		};
		const run = testWorker(memory, pool, { sleep: () => setImmediatePromise() }).run(settled);
		await expect(run).rejects.toBe(full);
		expect(sink.received.length).toBeLessThanOrEqual(215);
	});

	it('continues when the store works again, and sends nothing twice', async () => {
		const { sink, pool, memory } = await toSink({ to: addresses(150) });
		const { settle } = memory.queue;
		let failures = 3;
		memory.queue.settle = async (c) => {
			if (failures-- > 0) throw new Error('disk full');
			return settle(c);
		};
		const { stop } = endless(memory, pool, { sleep: () => setImmediatePromise() });
		await eventually(() => expect(memory.states()).toEqual({ sent: 150 }));
		await stop();
		expect(sink.received).toHaveLength(150);
	});
});

describe('a worker with a broken server', () => {
	it('waits 1 s, then doubles the wait, and continues when the server works again', async () => {
		const { pool, memory } = await toFaults(
			{ on: (phase, _line, { number }) => (phase === 'connect' && number <= 3 ? { drop: true } : undefined) },
			{ to: addresses(3) },
			{ connections: 1 },
		);
		const waits: number[] = [];
		const { stop } = endless(memory, pool, {
			connections: 1,
			sleep: () => setImmediatePromise(),
			onEvent: (event) => event.kind === 'waiting' && waits.push(event.ms),
		});
		await eventually(() => expect(memory.states()).toEqual({ sent: 3 }));
		await stop();
		expect(waits).toEqual([1_000, 2_000, 4_000]);
	});
});
