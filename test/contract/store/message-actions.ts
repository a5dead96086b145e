import { beforeEach, describe, expect, it } from 'vitest';
import { type MessageState, messageStates } from '../../../src/api/records.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	deliver,
	figures,
	fixedClock,
	hour,
	lease,
	newList,
	newSubscriber,
	newUuid,
	noon,
	type OpenEmpty,
	put,
	releasedCampaign,
	send,
	stateOf,
	unknown550,
	verify,
} from './fixture.js';

/** Creates a message in the given state and returns its id. */
const into: Readonly<Record<MessageState, (store: Store) => Promise<string>>> = {
	staged: async (store) => {
		const campaign = campaignOf('staged');
		await store.writes.openCampaign(campaign);
		await put(store, campaign.id, 0, ['a@example.org']);
		return (await store.reads.pageMessages({ page: 1, page_size: 1, filter: {} })).results[0]?.id ?? '';
	},
	queued: one,
	leased: async (store) => {
		const id = await one(store);
		await lease(store);
		return id;
	},
	deferred: (store) => outcome(store, { kind: 'deferred', reply: busy451, due_at: noon + hour }),
	sent: (store) => outcome(store, { kind: 'sent', reply: accepted250 }),
	bounced: (store) => outcome(store, { kind: 'bounced', reply: unknown550, suppress: true }),
	failed: (store) => outcome(store, { kind: 'failed', reply: unknown550 }),
	uncertain: (store) => outcome(store, { kind: 'uncertain', reply: busy451 }),
	canceled: async (store) => {
		const id = await one(store);
		await store.writes.changeMessage({ id, action: 'cancel', now: noon });
		return id;
	},
};

/** The state after the action. In other states the action is refused and changes nothing. */
const table: Readonly<Record<'cancel' | 'retry', Readonly<Partial<Record<MessageState, MessageState>>>>> = {
	cancel: { staged: 'canceled', queued: 'canceled', deferred: 'canceled', canceled: 'canceled' },
	retry: { queued: 'queued', deferred: 'deferred', failed: 'queued', uncertain: 'queued' },
};

export function describeMessageActions(open: OpenEmpty): void {
	describe('an action on a message', () => {
		let store: Store;
		beforeEach(async () => {
			store = await open(fixedClock);
			await verify(store);
			return () => store.close();
		});
		const act = (id: string, action: 'cancel' | 'retry', now = noon) =>
			store.writes.changeMessage({ id, action, now });

		for (const action of ['cancel', 'retry'] as const) {
			for (const from of messageStates) {
				const to = table[action][from] ?? 'refused';
				const changed = to === from ? `keeps the state ${from}` : `changes the state ${from} to ${to}`;
				const effect = to === 'refused' ? `is refused in the state ${from}` : changed;
				it(`${effect} on ${action}`, async () => {
					const id = await into[from](store);
					expect(await stateOf(store, id)).toBe(from);
					const { kind } = await act(id, action);
					expect(kind).toBe(to === 'refused' ? 'refused' : 'changed');
					expect(await stateOf(store, id)).toBe(to === 'refused' ? from : to);
				});
			}
		}

		it('retries a deferred message at once, and keeps its number of attempts', async () => {
			const deferred = await into.deferred(store);
			expect(await lease(store)).toEqual([]);
			await act(deferred, 'retry');
			expect(await lease(store)).toMatchObject([{ message: deferred, attempts: 1, fence: 2 }]);
		});

		it('retries a message that a bounce report marked as failed, and counts it as sent once', async () => {
			const id = await into.sent(store);
			await store.writes.recordReport({
				...{ sha256: newUuid(), at: noon, message: id, matched: 'return_path', kind: 'bounce' },
				recipients: [
					{ addresses: ['a@example.org'], hard: false, smtp_code: '5.2.2', diagnostic: '552 5.2.2 Full' },
				],
			});
			expect(await stateOf(store, id)).toBe('failed');
			await act(id, 'retry', noon + hour);
			expect(await figures(store)).toEqual(['2026-03-10 CREATED 1', '2026-03-10 SOFTBOUNCED 1']);
			await deliver(store, { kind: 'sent', reply: accepted250 }, noon + 2 * hour);
			expect(await figures(store)).toContain('2026-03-10 SENT 1');
			expect((await store.reads.checkCounts({})).figures).toBe(0);
			expect((await store.reads.getMessage({ id }))?.attempts.map(({ at }) => at.slice(11, 16))).toEqual([
				'12:00',
				'14:00',
			]);
		});

		it('retries an uncertain message, and counts it as sent once', async () => {
			const id = await into.uncertain(store);
			await act(id, 'retry', noon + hour);
			await deliver(store, { kind: 'sent', reply: accepted250 }, noon + hour);
			const found = await store.reads.getMessage({ id });
			expect(found?.attempts.map(({ number, outcome: kind }) => `${number} ${kind}`)).toEqual([
				'1 uncertain',
				'2 sent',
			]);
			const range = { from: '2026-01-01', to: '2026-12-31', campaign: null, tag: null, human: false };
			const { daily } = await store.reads.reportFigures(range);
			expect(daily.find(({ type }) => type === 'SENT')?.count).toBe(1);
		});

		it('retries a message of a finished campaign', async () => {
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'a@example.org');
			await releasedCampaign(store, list_id, 'news');
			const id = await deliver(store, { kind: 'uncertain', reply: busy451 });
			expect(await lease(store)).toEqual([]);
			await act(id, 'retry');
			expect(await lease(store)).toMatchObject([{ message: id }]);
		});

		it('does not retry a message of a canceled campaign', async () => {
			const list_id = await newList(store);
			await newSubscriber(store, list_id, 'a@example.org');
			const campaign = await releasedCampaign(store, list_id, 'news');
			const id = await deliver(store, { kind: 'uncertain', reply: busy451 });
			await store.writes.cancelCampaign({ campaign, now: noon });
			expect(await act(id, 'retry')).toMatchObject({ kind: 'refused' });
			expect(await stateOf(store, id)).toBe('uncertain');
		});

		it('does not retry a message to an erased person', async () => {
			const id = await into.uncertain(store);
			const fresh = { id: 1, secret: 'c2VjcmV0' };
			await store.writes.erasePerson({ email_key: 'a@example.org', fresh, now: noon });
			expect(await act(id, 'retry')).toMatchObject({ kind: 'refused' });
		});
	});
}

async function one(store: Store): Promise<string> {
	return (await send(store, ['a@example.org'])).answer.messages[0]?.id ?? '';
}

async function outcome(store: Store, told: Parameters<typeof deliver>[1]): Promise<string> {
	await one(store);
	return deliver(store, told);
}
