import { hostname } from 'node:os';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/store.js';
import {
	busy451,
	campaignOf,
	deliver,
	fixedClock,
	hour,
	lease,
	newUuid,
	noon,
	type OpenEmpty,
	put,
	send,
	verify,
} from './fixture.js';

export function describeQueuePauses(open: OpenEmpty): void {
	describe('a queue that is held up', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const pause = (reason: string | null = null, now = noon) =>
			store.queue.pause({ kind: 'manual', reason, retry_at: null, now });
		const fault = (reason: string, retry_at: number, now = noon) =>
			store.queue.pause({ kind: 'fault', reason, retry_at, now });

		it('gives nothing to lease until it is resumed, and loses nothing', async () => {
			await send(store, ['a@example.org']);
			await pause('moving house');
			expect(await lease(store)).toEqual([]);
			expect(await store.reads.queuePauses()).toEqual([
				{ kind: 'manual', reason: 'moving house', since: noon, retry_at: null, faults: 0 },
			]);
			expect(await store.queue.resume({ kinds: ['manual'] })).toBe(true);
			expect(await store.queue.resume({ kinds: ['manual'] })).toBe(false);
			expect(await lease(store)).toMatchObject([{ to: 'a@example.org', attempts: 0 }]);
		});

		it('counts faults in a row and keeps the latest time to try again, and lets whoever tries', async () => {
			await send(store, ['a@example.org']);
			await fault('connect: refused', noon + hour);
			await fault('auth: 535 No', noon + 1, noon + hour);
			expect(await store.reads.queuePauses()).toEqual([
				{ kind: 'fault', reason: 'auth: 535 No', since: noon, retry_at: noon + hour, faults: 2 },
			]);
			expect(await lease(store)).toHaveLength(1);
			await store.queue.resume({ kinds: ['fault'] });
			expect(await store.reads.queuePauses()).toEqual([]);
		});

		it('counts refusals of the sender, which hold nothing up and are forgotten with a fault', async () => {
			const refuse = (reason: string) =>
				store.queue.pause({ kind: 'refusal', reason, retry_at: null, now: noon });
			await refuse('mail: 553 No');
			expect(await refuse('mail: 554 No')).toMatchObject({ reason: 'mail: 554 No', faults: 2 });
			await send(store, ['a@example.org']);
			expect(await lease(store)).toHaveLength(1);
			expect((await store.reads.queueState({ now: noon })).pauses).toEqual([]);
			expect(await store.queue.resume({ kinds: ['fault', 'refusal'] })).toBe(false);
			expect(await refuse('mail: 553 No')).toMatchObject({ faults: 1 });
			await store.writes.putSettings({ values: { smtp_url: 'smtp://other.example' }, now: noon });
			expect(await store.reads.queuePauses()).toEqual([]);
		});

		it('makes what was deferred for its sender due when a person resumes it, and nothing else', async () => {
			const said = (code: number, enhanced: string | null) =>
				({ phase: 'rcpt', code, enhanced, text: 'No' }) as const;
			const replies = [said(550, '5.7.1'), said(554, null), said(552, '5.7.0'), said(552, null), busy451];
			await send(
				store,
				replies.map((_, at) => `r${at}@slow.example`),
			);
			for (const reply of replies) await deliver(store, { kind: 'deferred', reply, due_at: noon + 3 * hour });
			expect((await store.reads.queueState({ now: noon })).deferred).toMatchObject([{ messages: 2 }]);
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			await store.queue.resume({ kinds: ['fault', 'refusal'] });
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			await store.queue.resume({ kinds: ['manual', 'fault', 'refusal'], retry_at: noon + hour });
			const due = await lease(store, { now: noon + hour });
			expect(due.map(({ to }) => to)).toEqual(['r0@slow.example', 'r1@slow.example', 'r2@slow.example']);
		});

		it('says what servers said most, without recipients and numbers of theirs', async () => {
			const said = (text: string) => ({ phase: 'rcpt', code: 550, enhanced: '5.7.1', text }) as const;
			for (const [index, to] of ['a@example.org', 'b@example.org', 'c@example.org'].entries()) {
				await send(store, [to]);
				const reply = said(`<${to}>: refused, id 2026-00${index}-XY`);
				await deliver(store, { kind: 'failed', reply, uncounted: true });
			}
			await send(store, ['d@example.org']);
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + hour });
			const { replies } = await store.reads.queueState({ now: noon });
			expect(replies).toEqual([
				{ state: 'failed', reply: '550 5.7.1 <…>: refused, id 2026-000-XY', count: 3 },
				{ state: 'deferred', reply: '451 4.7.1 Try again later', count: 1 },
			]);
			expect((await store.reads.queueState({ now: noon + 24 * 8 * hour })).replies).toEqual([]);
		});

		it('forgets a fault when another mail server is set, and keeps what a person said', async () => {
			await fault('connect: refused', noon + hour);
			await pause('by hand');
			await store.writes.putSettings({ values: { time_zone: 'UTC' }, now: noon });
			expect((await store.reads.queuePauses()).map(({ kind }) => kind)).toEqual(['manual', 'fault']);
			await store.writes.putSettings({ values: { smtp_url: 'smtp://other.example' }, now: noon });
			expect((await store.reads.queuePauses()).map(({ kind }) => kind)).toEqual(['manual']);
		});

		it('gives back a message with a time of its own', async () => {
			await send(store, ['a@example.org']);
			await deliver(store, { kind: 'released', why: 'infrastructure', due_at: noon + hour });
			expect(await lease(store)).toEqual([]);
			expect(await lease(store, { now: noon + hour })).toMatchObject([{ attempts: 0 }]);
		});

		it('tells what waits, since when, who is at it and which domains defer', async () => {
			const campaign = campaignOf('not released');
			await store.writes.openCampaign({ ...campaign, id: newUuid() });
			await send(store, ['a@slow.example', 'b@slow.example', '"c@d"@other.example'], { now: noon - hour });
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + hour });
			await deliver(
				store,
				{ kind: 'deferred', reply: { ...busy451, text: 'Later' }, due_at: noon + 2 * hour },
				noon + 1,
			);
			await deliver(store, { kind: 'deferred', reply: busy451, due_at: noon + hour });
			await send(store, ['x@example.org', 'y@example.org']);
			await lease(store, { max: 1, owner: 'far.example:77:x' });
			await fault('connect: refused', noon + 1);
			expect(await store.reads.queueState({ now: noon })).toEqual({
				messages: { deferred: 3, leased: 1, queued: 1 },
				due: 1,
				held: 0,
				oldest_at: noon - hour,
				next_due_at: noon,
				pauses: [{ kind: 'fault', reason: 'connect: refused', since: noon, retry_at: noon + 1, faults: 1 }],
				workers: [
					{ role: 'send', host: hostname(), pid: process.pid, messages: 0, heard_at: expect.any(Number) },
					{ role: null, host: 'far.example', pid: 77, messages: 1, heard_at: null },
				],
				deferred: [
					{ domain: 'slow.example', messages: 2, next_due_at: noon + hour, last_reply: '451 4.7.1 Later' },
					{
						domain: 'other.example',
						messages: 1,
						next_due_at: noon + hour,
						last_reply: '451 4.7.1 Try again later',
					},
				],
				limits: [],
				replies: [
					{ state: 'deferred', reply: '451 4.7.1 Try again later', count: 2 },
					{ state: 'deferred', reply: '451 4.7.1 Later', count: 1 },
				],
				unfinished: [],
			});
		});

		it('counts what is staged, and does not say that it waits to be sent', async () => {
			const campaign = campaignOf('job');
			await store.writes.openCampaign(campaign);
			await put(store, campaign.id, 0, ['a@example.org']);
			expect(await store.reads.queueState({ now: noon })).toMatchObject({
				messages: { staged: 1 },
				due: 0,
				oldest_at: null,
				next_due_at: null,
			});
		});
	});
}
