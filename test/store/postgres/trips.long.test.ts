import { expect, it, onTestFinished } from 'vitest';
import type { DeliveryOutcome } from '../../../src/engine/rules/outcomes.js';
import type { RequestedRow } from '../../../src/store/campaigns.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import type { Store, TrackedEvent } from '../../../src/store/store.js';
import {
	accepted250,
	busy451,
	campaignOf,
	eventOf,
	fixedClock,
	hour,
	lease,
	messageIds,
	newField,
	newList,
	newSubscriber,
	noon,
	recipientOf,
	recordOf,
	releasedCampaign,
	send,
	submissionOf,
	unknown550,
	verify,
} from '../../contract/store/fixture.js';
import { describePostgres } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';

const request = 3;

describePostgres('the number of round trips', (server) => {
	async function open() {
		const proxy = await startPostgresProxy(await server.createProject());
		onTestFinished(proxy.close);
		const url = new URL(proxy.url);
		url.searchParams.set('pool', '1');
		url.searchParams.set('listen', 'off');
		const store = await openPostgresStore({ url: url.href, clock: fixedClock, mode: 'create' });
		onTestFinished(() => store.close());
		await lease(store);
		const tripsOf = async (operate: () => Promise<unknown>) => {
			await proxy.idle();
			const before = proxy.trips();
			await operate();
			return proxy.trips() - before;
		};
		return { store, tripsOf };
	}

	it('is one for a page, and two for a page of campaigns', async () => {
		const { store, tripsOf } = await open();
		await verify(store);
		const list = await newList(store);
		for (const key of ['one', 'two', 'three']) await releasedCampaign(store, list, key);
		const { reads } = store;
		const page = { page: 1, page_size: 10 };
		const pages: Readonly<Record<string, () => Promise<unknown>>> = {
			pageLists: () => reads.pageLists(page),
			pageFields: () => reads.pageFields(page),
			pageSenders: () => reads.pageSenders(page),
			pageTemplates: () => reads.pageTemplates(page),
			pageWebhooks: () => reads.pageWebhooks(page),
			pageSubscribers: () => reads.pageSubscribers({ ...page, list_id: list, filter: {} }),
			pageSuppressions: () => reads.pageSuppressions({ ...page, filter: {}, now: noon }),
		};
		const counted: Record<string, number> = {};
		for (const [name, read] of Object.entries(pages)) counted[name] = await tripsOf(read);
		expect(counted).toEqual(Object.fromEntries(Object.keys(pages).map((name) => [name, 1])));
		expect(await tripsOf(() => reads.pageCampaigns({ ...page, ordering: '-date_created', now: noon }))).toBe(
			2,
		);
	});

	const people = (count: number) => Array.from({ length: count }, (_, at) => `p${at}@example.org`);

	it('is at most three for a request', async () => {
		const { store, tripsOf } = await open();
		const list = await newList(store);
		await newField(store, 'city');
		await verify(store);
		const { id } = await newSubscriber(store, list, 'ann@example.org');
		const { writes, reads } = store;
		const page = { page: 1, page_size: 10 };
		const patch = { name: 'Ann' };
		const operations: [name: string, operate: () => Promise<unknown>][] = [
			['getList', () => reads.getList({ id: list })],
			['pageSubscribers', () => reads.pageSubscribers({ ...page, list_id: list, filter: {} })],
			['getSubscriber', () => reads.getSubscriber({ list_id: list, id })],
			['createList', () => newList(store, 'B')],
			['patchList', () => writes.patchList({ id: list, patch: { name: 'C' } })],
			[
				'createSubscriber',
				() => writes.createSubscriber({ list_id: list, input: { email: 'bob@example.org' }, now: noon }),
			],
			['patchSubscriber', () => writes.patchSubscriber({ list_id: list, id, patch, now: noon })],
			['deleteSubscriber', () => writes.deleteSubscriber({ list_id: list, id, now: noon })],
			[
				'acceptSubmission, to one',
				() => writes.acceptSubmission({ ...submissionOf(['eve@example.org']), key: null }),
			],
			[
				'acceptSubmission, to a hundred',
				() => writes.acceptSubmission({ ...submissionOf(people(100)), key: null }),
			],
		];
		const counted: Record<string, number> = {};
		for (const [name, operate] of operations) counted[name] = await tripsOf(operate);
		expect(Object.fromEntries(Object.entries(counted).filter(([, trips]) => trips > request))).toEqual({});
	});

	it('is the same for a send call, however many recipients it skips', async () => {
		const { store, tripsOf } = await open();
		await verify(store);
		await suppress(store, people(50));
		const accept = (type: 'TRANSACTIONAL' | 'BULK') =>
			store.writes.acceptSubmission({ ...submissionOf(people(100), { type }), key: null });
		const all = await tripsOf(() => accept('TRANSACTIONAL'));
		expect(await tripsOf(() => accept('BULK'))).toBe(all);
		expect((await store.reads.getPerson({ email_key: 'p0@example.org' })).left_out).toHaveLength(1);
	});

	it('does not grow with the number of leased messages, send results or open events', async () => {
		const [few, many] = await Promise.all([10, 200].map((count) => tripsOfSending(count)));
		expect(many).toEqual(few);
	});

	async function tripsOfSending(count: number) {
		const { store, tripsOf } = await open();
		await verify(store);
		await store.writes.acceptSubmission({ ...submissionOf(people(count)), key: null });
		let leased: Awaited<ReturnType<typeof lease>> = [];
		const leasing = await tripsOf(async () => {
			leased = await lease(store, { max: count });
		});
		expect(leased).toHaveLength(count);
		const outcome = { kind: 'sent', reply: accepted250 } as const;
		const settling = await tripsOf(() =>
			store.queue.settle({
				settlements: leased.map(({ message, fence }) => ({ message, fence, at: noon, outcome })),
			}),
		);
		const ids = await messageIds(store);
		const opening = await tripsOf(() =>
			store.writes.recordEvents({ events: ids.map((id) => eventOf(id, 'OPENED')) }),
		);
		return { leasing, settling, opening };
	}

	it.each(Object.entries(growing))('does not grow with the number of rows: %s', async (_, {
		most,
		prepare,
	}) => {
		const [few = 0, many = 0] = await Promise.all(
			[3, 30].map(async (count) => {
				const { store, tripsOf } = await open();
				await verify(store);
				const operate = await prepare(store, people(count));
				return await tripsOf(operate);
			}),
		);
		expect([few, many].map((trips) => Math.max(trips, most))).toEqual([most, most]);
	});

	it('is two for a lease, however many campaigns have no due messages', async () => {
		const trips = await Promise.all(
			[1, 5].map(async (count) => {
				const { store, tripsOf } = await open();
				await verify(store);
				const list = await newList(store);
				await newSubscriber(store, list, 'ann@example.org');
				for (let at = 0; at < count; at += 1) await releasedCampaign(store, list, `job ${at}`);
				await lease(store);
				return await tripsOf(() => lease(store));
			}),
		);
		expect(trips).toEqual([2, 2]);
	});

	it('grows by at most two if an import has a hundred times as many rows', async () => {
		const { store, tripsOf } = await open();
		const list = await newList(store);
		const few = await tripsOf(() => importPeople(store, list, people(10)));
		const many = await tripsOf(() => importPeople(store, list, people(1_000)));
		expect(many).toBeLessThanOrEqual(few + 2);
	});

	it('is the same for an import, however many addresses are suppressed', async () => {
		const trips = await Promise.all(
			[2, 20].map(async (suppressed) => {
				const { store, tripsOf } = await open();
				const list = await newList(store);
				await suppress(store, people(suppressed));
				return await tripsOf(() => importPeople(store, list, people(100)));
			}),
		);
		expect(trips[1]).toBe(trips[0]);
	});
});

type Prepare = (store: Store, people: readonly string[]) => Promise<() => Promise<unknown>>;

function settling(outcome: DeliveryOutcome): Prepare {
	return async (store, to) => {
		const list = await newList(store);
		for (const email of to) await newSubscriber(store, list, email);
		await send(store, to, { list_id: list });
		const leased = await lease(store);
		return () =>
			store.queue.settle({
				settlements: leased.map(({ message, fence }) => ({ message, fence, at: noon, outcome })),
			});
	};
}

function recording(type: TrackedEvent['type']): Prepare {
	return async (store, to) => {
		await newHook(store, type);
		await settling({ kind: 'sent', reply: accepted250 })(store, to).then((settle) => settle());
		const ids = await messageIds(store);
		return () => store.writes.recordEvents({ events: ids.map((id) => eventOf(id, type)) });
	};
}

async function newHook(store: Store, type: TrackedEvent['type']): Promise<number> {
	const input = { url: 'https://example.org/', type, is_auth_enabled: false, login: '', password: '' };
	return recordOf(await store.writes.createWebhook({ input, now: noon })).id;
}

function suppress(store: Store, addresses: readonly string[]): Promise<unknown> {
	const reason = {
		reason: 'MANUAL',
		list_id: null,
		source: 'API',
		created_at: noon,
		expires_at: null,
	} as const;
	return store.writes.putSuppressions({
		rows: addresses.map((email_key) => ({ ...reason, email_key })),
		now: noon,
	});
}

const growing: Readonly<Record<string, { most: number; prepare: Prepare }>> = {
	'outcomes "bounced"': {
		most: request,
		prepare: settling({ kind: 'bounced', reply: unknown550, suppress: true }),
	},
	'outcomes "failed"': { most: request, prepare: settling({ kind: 'failed', reply: busy451 }) },
	'outcomes "deferred"': {
		most: request,
		prepare: settling({ kind: 'deferred', reply: busy451, due_at: noon + hour }),
	},
	'events, unsubscribed': { most: request, prepare: recording('UNSUBSCRIBED') },
	'events, bounced': { most: request, prepare: recording('HARDBOUNCED') },
	'events of soft bounces': { most: request, prepare: recording('SOFTBOUNCED') },
	'events, opened': { most: request, prepare: recording('OPENED') },
	putSuppressions: {
		most: request,
		prepare: async (store, addresses) => {
			const list = await newList(store);
			for (const email of addresses) await newSubscriber(store, list, email);
			return () => suppress(store, addresses);
		},
	},
	'a lease': {
		most: 4,
		prepare: async (store, to) => {
			await send(store, to);
			return () => lease(store);
		},
	},
	'a lease under limits, some of them used up': {
		most: 5,
		prepare: async (store, to) => {
			await store.writes.putSettings({
				values: {
					send_limit: '1000/1h',
					sender_domain_limits: '*=1000/1h',
					recipient_domain_limits: '*=2/1h',
				},
				now: noon,
			});
			await send(store, ['first@example.net']);
			await lease(store);
			await send(store, [...to, ...to.map((email) => `${email}.test`)]);
			return () => lease(store);
		},
	},
	'recipients of a campaign': {
		most: 5,
		prepare: async (store, to) => {
			const command = campaignOf('recipients');
			await store.writes.openCampaign(command);
			const rows = to.map((email) => recipientOf(email));
			return () => store.writes.putCampaignBatch({ campaign: command.id, first: 0, rows, now: noon });
		},
	},
	'requests of a campaign': {
		most: 5,
		prepare: async (store, to) => {
			const command = campaignOf('requests');
			await store.writes.openCampaign({ ...command, spec: { requests: true }, submission: null });
			const rows = to.map((email) => requestTo(email, command.id));
			return () => store.writes.putCampaignBatch({ campaign: command.id, first: 0, rows, now: noon });
		},
	},
};

function requestTo(to: string, campaign: string): RequestedRow {
	const { recipients, campaign: _, ...submission } = submissionOf([to]);
	return { kind: 'request', alike: campaign, submission, recipients };
}

async function importPeople(store: Store, list_id: number, emails: readonly string[]): Promise<void> {
	const session = crypto.randomUUID();
	const spec = { list_id, on_conflict: 'update', reactivate: false } as const;
	await store.writes.openImport({ id: session, key: session, spec, now: noon });
	await store.writes.putImportBatch({
		session,
		batch: { first: 0, columns: ['email'], cells: emails },
		now: noon,
	});
	await store.writes.finishImport({ session, now: noon });
}
