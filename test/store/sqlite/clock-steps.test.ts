// A clock that is set back: what was put off by the clock before does not wait until it is that late again.
import { mkdtemp } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Micros } from '../../../src/api/datetime.js';
import { nextAttempt } from '../../../src/delivery/schedule.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { day, noon, send, verify } from '../../contract/store/fixture.js';

const hour: Micros = day / 24;
const reply = { phase: 'rcpt', code: 450, enhanced: null, text: 'try later' } as const;

let path: string;
let now: Micros;
beforeEach(async () => {
	path = join(await mkdtemp(join(tmpdir(), 'mailctl-clock-')), 'news.db');
	now = noon;
});

const open = (role: 'cli' | 'worker'): Promise<Store> =>
	openStore(path, { clock: { now: () => now }, mode: 'create', role, eventDelayMs: 0 });
const lease = (store: Store, owner = 'w') =>
	store.queue.lease({ owner, now, until: now + hour, max: 10, scope: null });

/** One message that was tried at noon, and is to be tried again so much later. */
async function deferred(store: Store, wait: Micros): Promise<void> {
	await verify(store);
	await send(store, ['ann@example.org'], { now });
	const [leased] = await lease(store);
	if (leased === undefined) throw new Error('nothing is due');
	const outcome = { kind: 'deferred', reply, due_at: now + wait } as const;
	await store.queue.settle({
		settlements: [{ message: leased.message, fence: leased.fence, at: now, outcome }],
	});
}

describe('a clock that was set back by days', () => {
	it('is noticed by whoever opens the database to send', async () => {
		const before = await open('cli');
		await deferred(before, 4 * hour);
		await before.close();
		now = noon - 3 * day;
		const store = await open('worker');
		expect(await lease(store)).toHaveLength(1);
		await store.close();
	});

	it('is noticed by a process that stays, with its next heartbeat', async () => {
		const store = await open('worker');
		await deferred(store, hour);
		now = noon - 3 * day;
		await store.writes.recordEvents({ events: [] });
		await store.queue.resume({ kinds: ['manual'] });
		expect(await lease(store)).toHaveLength(1);
		await store.close();
	});

	it('leaves a message in the hands of a worker to that worker, for no longer than a lease lasts', async () => {
		const store = await open('worker');
		await verify(store);
		await send(store, ['ann@example.org'], { now });
		await lease(store, 'elsewhere:1:x');
		now = noon - 3 * day;
		expect(await lease(store)).toEqual([]);
		now += hour / 6;
		expect(await lease(store)).toHaveLength(1);
		await store.close();
	});
});

describe('a process whose own clock is behind', () => {
	it('takes nothing from a worker that runs beside it', async () => {
		const store = await open('worker');
		await verify(store);
		await send(store, ['ann@example.org'], { now });
		await lease(store, `${hostname()}:${process.pid}:x`);
		now = noon - day;
		const other = await open('worker');
		now += hour / 2;
		expect(await lease(other)).toEqual([]);
		await other.close();
		await store.close();
	});
});

describe('a clock that was not', () => {
	it('lets what is deferred wait for its time', async () => {
		const before = await open('cli');
		await deferred(before, 4.4 * hour);
		await before.close();
		const store = await open('worker');
		expect(await lease(store)).toEqual([]);
		await store.close();
	});

	it('lets what a limit holds back wait for its turn, however far that is', async () => {
		const before = await open('cli');
		await deferred(before, 0);
		await before.close();
		const other = new Database(path);
		other.prepare('UPDATE messages SET wake_at = ?').run(noon + 2 * day);
		other.close();
		const store = await open('worker');
		expect(await lease(store)).toEqual([]);
		await store.close();
	});

	it('never makes the schedule wait as long as what is taken for a clock set back', () => {
		const longest = nextAttempt({ attempts: 50, createdAt: noon, now: noon, random: () => 0.999 });
		expect(longest.kind === 'retry' ? longest.due_at - noon : 0).toBeLessThan(5 * hour);
	});
});
