/** How often an operation waits for the server: a machine away, each round trip costs what a hundred rows cost. */
import { setTimeout } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	eventOf,
	fixedClock,
	lease,
	messageIds,
	newField,
	newList,
	newSubscriber,
	noon,
	submissionOf,
	verify,
} from '../../contract/store/fixture.js';
import { describePostgres } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';

describePostgres('round trips', (server) => {
	async function open() {
		const proxy = await startPostgresProxy(await server.createProject());
		onTestFinished(proxy.close);
		const url = new URL(proxy.url);
		url.searchParams.set('pool', '1');
		url.searchParams.set('listen', 'off');
		const store = await openPostgresStore({ url: url.href, clock: fixedClock, mode: 'create' });
		onTestFinished(() => store.close());
		/** Other processes are told of new messages a moment later. */
		const quiet = async () => {
			for (let seen = -1; seen !== proxy.trips(); await setTimeout(100)) seen = proxy.trips();
		};
		const tripsOf = async (operate: () => Promise<unknown>) => {
			await quiet();
			const before = proxy.trips();
			await operate();
			return proxy.trips() - before;
		};
		return { store, tripsOf };
	}

	const people = (count: number) => Array.from({ length: count }, (_, at) => `p${at}@example.org`);

	/** The reads with the beginning, the writes, the end. */
	const request = 3;

	it('are at most three for what a request waits for', async () => {
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
			['createList', () => writes.createList({ input: { name: 'B', email_reason: '' }, now: noon })],
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

	it('do not grow with the number of messages that are leased, settled and read', async () => {
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

	it('of an import are those of one batch', async () => {
		const { store, tripsOf } = await open();
		const list = await newList(store);
		const few = await tripsOf(() => importPeople(store, list, people(10)));
		const many = await tripsOf(() => importPeople(store, list, people(1_000)));
		// Ten of them are there already.
		expect(many).toBeLessThanOrEqual(few + 2);
	});
});

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
