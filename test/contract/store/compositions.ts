import { beforeEach, describe, expect, it } from 'vitest';
import type { Micros } from '../../../src/api/datetime.js';
import type { Leased } from '../../../src/store/queue.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	fixedClock,
	hour,
	lease,
	noon,
	type OpenEmpty,
	send,
	stateOf,
	unknown550,
	verify,
} from './fixture.js';

const minute: Micros = hour / 60;
const reason = 'composing this message ended a worker three times';

export function describeCompositions(open: OpenEmpty): void {
	describe('a message whose composition crashes workers', () => {
		let store: Store;
		let id: string;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			id = (await send(store, ['a@example.org'])).answer.messages[0]?.id ?? '';
			return () => store.close();
		});
		const leased = async (now: Micros): Promise<Leased> => {
			const [first] = await lease(store, { now });
			if (first === undefined) throw new Error('nothing is due');
			return first;
		};
		/** Begins to compose a message, lets its lease expire, and returns the time when it is due again. */
		const dieAt = async (now: Micros): Promise<Micros> => {
			await store.queue.beginComposing(await leased(now));
			expect(await lease(store, { now: now + hour })).toEqual([]);
			return now + hour + minute;
		};
		const unfinished = async (now = noon) => (await store.reads.queueState({ now })).unfinished;

		it('is suspect after its lease ends, but not in the list of crashes if no worker began to compose it', async () => {
			expect(await leased(noon)).not.toHaveProperty('is_suspect');
			for (const times of [1, 2, 3])
				expect(await leased(noon + times * hour)).toMatchObject({ is_suspect: true });
			expect(await unfinished()).toEqual([]);
		});

		it('waits a minute after a crash, and is in the list of crashes', async () => {
			const again = await dieAt(noon);
			expect(await stateOf(store, id)).toBe('queued');
			expect(await unfinished()).toEqual([{ message: id, state: 'queued', deaths: 1, due_at: again }]);
			expect(await lease(store, { now: again - 1 })).toEqual([]);
			expect(await leased(again)).toMatchObject({ message: id, is_suspect: true, attempts: 0 });
		});

		it('fails after the third crash, and its one attempt records the reason', async () => {
			await dieAt(await dieAt(await dieAt(noon)));
			const found = await store.reads.getMessage({ id });
			expect(found?.message).toMatchObject({ state: 'failed', attempts: 1, last_reply: reason });
			expect(found?.attempts).toMatchObject([{ outcome: 'failed', phase: 'mail', text: reason }]);
			const pageOf = { page: 1, page_size: 9, filter: {}, now: noon };
			expect((await store.reads.pageSuppressions(pageOf)).count).toBe(0);
			expect(await unfinished()).toEqual([{ message: id, state: 'failed', deaths: 3, due_at: null }]);
			expect(await unfinished(noon + 9 * 24 * hour)).toEqual([]);
			expect(await store.reads.nextDue({ scope: null })).toBeNull();
		});

		it('is not in the list of crashes if the worker crashed after composing it', async () => {
			const first = await leased(noon);
			await store.queue.beginComposing(first);
			await store.queue.endComposing(first);
			expect(await leased(noon + hour)).toMatchObject({ is_suspect: true });
			expect(await unfinished(noon + hour)).toEqual([]);
		});

		it('gets a lower crash count when a slow worker finishes composing it after its lease expired', async () => {
			const slow = await leased(noon);
			await store.queue.beginComposing(slow);
			expect(await lease(store, { now: noon + hour })).toEqual([]);
			await store.queue.endComposing(slow);
			await dieAt(noon + 2 * hour);
			expect(await unfinished()).toMatchObject([{ state: 'queued', deaths: 1 }]);
		});

		it('is not suspect after its worker gave it back', async () => {
			const { message, fence } = await leased(noon);
			await store.queue.beginComposing({ message, fence });
			const outcome = { kind: 'released', why: 'drain' } as const;
			await store.queue.settle({ settlements: [{ message, fence, at: noon, outcome }] });
			expect(await leased(noon)).not.toHaveProperty('is_suspect');
		});

		it('is not in the list of crashes if a worker begins to compose it after losing the lease', async () => {
			const first = await leased(noon);
			await leased(noon + hour);
			await store.queue.beginComposing(first);
			expect(await unfinished()).toEqual([]);
		});

		it('has a crash count of zero after a person retries it', async () => {
			const again = await dieAt(noon);
			await store.writes.changeMessage({ id, action: 'retry', now: noon + hour });
			expect(await unfinished()).toEqual([]);
			expect(await dieAt(noon + hour)).toBeGreaterThan(again);
			expect(await stateOf(store, id)).toBe('queued');
		});

		it('is no longer in the list of crashes after a worker records an outcome', async () => {
			const { message, fence } = await leased(await dieAt(noon));
			await store.queue.beginComposing({ message, fence });
			await store.queue.endComposing({ message, fence });
			const at = noon + 2 * hour;
			const outcome = { kind: 'failed', reply: unknown550 } as const;
			await store.queue.settle({ settlements: [{ message, fence, at, outcome }] });
			expect(await unfinished()).toEqual([]);
			const reply = accepted250;
			const late = { message, fence, at, outcome: { kind: 'sent', reply } } as const;
			expect(await store.queue.settle({ settlements: [late] })).toEqual(['lost_lease']);
		});
	});
}
