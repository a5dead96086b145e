import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock, Micros } from '../../../src/api/datetime.js';
import { openStore } from '../../../src/store/open.js';
import type { Store } from '../../../src/store/store.js';
import { campaignOf, day, newList, newSubscriber, noon, send, verify } from '../../contract/store/fixture.js';

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

async function released(store: Store, timing: { starts_at?: Micros; window?: string }): Promise<string> {
	await verify(store);
	const list_id = await newList(store);
	await newSubscriber(store, list_id, 'ann@example.org');
	const whole = { starts_at: null, window: null, time_zone: 'UTC', ...timing };
	const command = { ...campaignOf('job'), timing: whole };
	await store.writes.openCampaign(command);
	await store.writes.addListToCampaign({ campaign: command.id, list_id, now });
	await store.writes.releaseCampaign({ campaign: command.id, expect_count: 1, now });
	return command.id;
}

describe('a clock that was set back by days', () => {
	it('does not delay a campaign that waits for its sending window', async () => {
		const store = await open('worker');
		await released(store, { window: '08:00-10:00' });
		for (const [at, count] of [
			[10 * day, 0],
			[hour, 0],
			[21 * hour, 1],
		] as const) {
			now = noon + at;
			expect(await lease(store)).toHaveLength(count);
		}
		await store.close();
	});
});

describe('a clock change while a process runs', () => {
	const second: Micros = 1_000_000;
	const minute: Micros = 60 * second;
	let steady: Micros;
	const machine = { now: () => now, steady: () => steady };
	const pass = (time: Micros) => {
		now += time;
		steady += time;
	};
	const begin = (clock: Clock = machine) =>
		openStore(path, { clock, mode: 'create', role: 'worker', eventDelayMs: 0 });
	const leaseFor = (store: Store, owner: string) =>
		store.queue.lease({ owner, now, until: now + 2 * minute, max: 10, scope: null });
	beforeEach(() => {
		steady = 5 * hour;
	});

	const steps: [string, Micros][] = [
		['10 minutes forward', 10 * minute],
		['10 minutes back', -10 * minute],
		['8 hours forward', 8 * hour],
		['8 hours back', -8 * hour],
		['a day forward', day],
		['a day back', -day],
	];
	describe.each(steps)('by %s', (_what, step) => {
		it('does not change the length of a lease in any process', async () => {
			const [one, other] = [await begin(), await begin()];
			await verify(one);
			await send(one, ['ann@example.org'], { now });
			expect(await leaseFor(one, 'elsewhere:1:x')).toHaveLength(1);
			now += step;
			expect(await leaseFor(other, 'elsewhere:2:x')).toEqual([]);
			pass(2 * minute - second);
			expect(await leaseFor(one, 'elsewhere:2:x')).toEqual([]);
			pass(second);
			expect(await leaseFor(other, 'elsewhere:2:x')).toHaveLength(1);
			await other.close();
			await one.close();
		});

		it('does not change the length of a lease that was requested before the change', async () => {
			const store = await begin();
			await verify(store);
			await send(store, ['ann@example.org'], { now });
			const asked = { owner: 'elsewhere:1:x', now, until: now + 2 * minute, max: 10, scope: null };
			now += step;
			const [leased] = await store.queue.lease(asked);
			expect(leased).toBeDefined();
			pass(minute);
			const renewed = { owner: 'elsewhere:1:x', now, until: now + 2 * minute };
			now -= step;
			const fences = leased === undefined ? [] : [leased];
			await store.queue.renew({ ...renewed, fences });
			pass(2 * minute - second);
			expect(await leaseFor(store, 'elsewhere:2:x')).toEqual([]);
			pass(second);
			expect(await leaseFor(store, 'elsewhere:2:x')).toHaveLength(1);
			await store.close();
		});

		it('leaves queued messages due, and deferred ones waiting', async () => {
			const store = await begin();
			await deferred(store, 30 * minute);
			await send(store, ['bob@example.org'], { now });
			now += step;
			expect((await leaseFor(store, 'elsewhere:1:x')).map(({ to }) => to)).toEqual(['bob@example.org']);
			pass(30 * minute - second);
			expect((await leaseFor(store, 'elsewhere:1:x')).map(({ to }) => to)).toEqual(['bob@example.org']);
			pass(second);
			expect((await leaseFor(store, 'elsewhere:1:x')).map(({ to }) => to)).toEqual(['ann@example.org']);
			await store.close();
		});

		it('does not change the retry time of a mail that was deferred before the change', async () => {
			const store = await begin();
			await verify(store);
			await send(store, ['ann@example.org'], { now });
			const [leased] = await leaseFor(store, 'elsewhere:1:x');
			const outcome = { kind: 'deferred', reply, due_at: now + 5 * minute } as const;
			const settlements = leased === undefined ? [] : [{ ...leased, at: now, outcome }];
			now += step;
			expect(await store.queue.settle({ settlements })).toEqual(['recorded']);
			pass(5 * minute);
			expect(await leaseFor(store, 'elsewhere:2:x')).toHaveLength(1);
			await store.close();
		});

		it('leaves a planned campaign planned', async () => {
			const store = await begin();
			const id = await released(store, { starts_at: noon + 7 * day });
			now += step;
			expect(await leaseFor(store, 'elsewhere:1:x')).toEqual([]);
			const status = await store.reads.campaignStatus({ id, now });
			expect(status?.plan).toMatchObject({ is_planned: true });
			await store.close();
		});

		it('does not change the time at which a limit allows the next message', async () => {
			const store = await begin();
			await verify(store);
			await store.writes.putSettings({ values: { send_limit: '1/10m' }, now });
			await send(store, ['ann@example.org', 'bob@example.org'], { now });
			const [leased] = await leaseFor(store, 'elsewhere:1:x');
			const sent = { kind: 'sent', reply: { ...reply, code: 250 } } as const;
			await store.queue.settle({
				settlements: leased === undefined ? [] : [{ ...leased, at: now, outcome: sent }],
			});
			now += step;
			expect(await leaseFor(store, 'elsewhere:1:x')).toEqual([]);
			pass(9 * minute);
			expect(await leaseFor(store, 'elsewhere:1:x')).toEqual([]);
			pass(2 * minute);
			expect(await leaseFor(store, 'elsewhere:1:x')).toHaveLength(1);
			await store.close();
		});
	});
});
