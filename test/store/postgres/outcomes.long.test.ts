import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { newList, newSubscriber, noon, recordOf } from '../../contract/store/fixture.js';
import { storeSuite } from '../../contract/store.suite.js';
import { ask, describePostgres } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';

describePostgres('a store that loses answers to its writes', (server) => {
	async function openBehindProxy(clock = systemClock) {
		const url = await server.createProject();
		await (await openPostgresStore({ url, clock, mode: 'create' })).close();
		const proxy = await startPostgresProxy(url);
		const store = await openPostgresStore({ url: proxy.url, clock, mode: 'existing' });
		return { url, proxy, store: { ...store, close: () => store.close().then(proxy.close) } };
	}

	// The first 25 writes that store their outcome lose the answer to their COMMIT. Most tests make fewer writes.
	storeSuite('PostgreSQL behind a network that loses answers', async (clock) => {
		const { proxy, store } = await openBehindProxy(clock);
		proxy.cutAt('INSERT INTO outcomes', { times: 25 });
		return store;
	});

	it('does each write exactly once, even if it also loses the answer to a check', async () => {
		const { url, proxy, store } = await openBehindProxy();
		onTestFinished(store.close);
		const list = await newList(store);
		const people = Array.from({ length: 40 }, (_, n) => `p${n}@example.org`);
		for (const [n, email] of people.entries()) {
			proxy.cutAt('COMMIT', { times: n % 3 });
			expect(await newSubscriber(store, list, email)).toMatchObject({ email });
			const input = { email, name: 'Again' };
			const again = await store.writes.createSubscriber({ list_id: list, input, now: noon });
			expect(again.kind).toBe('refused');
		}
		expect(proxy.cuts()).toBe(39);
		const page = await store.reads.pageSubscribers({ list_id: list, page: 1, page_size: 100, filter: {} });
		expect(page?.results.map(({ email }) => email).sort()).toEqual([...people].sort());
		expect(await store.reads.checkCounts({})).toEqual({ lists: [], figures: 0, campaigns: [] });
		const [left] = await ask(
			url.replace(/\?.*/, ''),
			`SELECT count(*)::int AS n FROM ${schemaOf(url)}.outcomes`,
		);
		expect(left?.['n']).toBeLessThan(3);
	});

	it('returns the result of a patch even if the answer to its COMMIT was lost', async () => {
		const { proxy, store } = await openBehindProxy();
		onTestFinished(store.close);
		const list = await newList(store);
		const { id } = await newSubscriber(store, list, 'ann@example.org');
		proxy.cutAt('COMMIT');
		const patch = { email: 'ben@example.org', name: 'Ben' };
		const patched = await store.writes.patchSubscriber({ list_id: list, id, patch, now: noon });
		expect(recordOf(patched)).toMatchObject(patch);
		proxy.cutAt('COMMIT');
		const renamed = await store.writes.patchList({ id: list, patch: { name: 'Other' } });
		expect(recordOf(renamed)).toMatchObject({ name: 'Other' });
		proxy.cutAt('COMMIT');
		await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now: noon });
		expect(await store.reads.getSettings()).toMatchObject({ time_zone: 'Europe/Oslo' });
		expect(proxy.cuts()).toBe(3);
	});

	it('encrypts the results that it stores for lost answers', async () => {
		const { url, store } = await openBehindProxy();
		onTestFinished(store.close);
		await newSubscriber(store, await newList(store), 'ann@example.org');
		const rows = await ask(
			url.replace(/\?.*/, ''),
			`SELECT encode(answer, 'escape') AS text FROM ${schemaOf(url)}.outcomes`,
		);
		expect(rows).toHaveLength(1);
		expect(rows[0]?.['text']).not.toContain('example');
	});
});

function schemaOf(url: string): string {
	return new URL(url).searchParams.get('schema') ?? 'public';
}
