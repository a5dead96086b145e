import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import type { Store } from '../../../src/store/store.js';
import { newList, newSubscriber } from '../../contract/store/fixture.js';
import { ask, describePostgres } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';
import { refuses } from '../../support/refuses.js';

describePostgres('a store on PostgreSQL', (server) => {
	async function open(url: string, mode: 'create' | 'existing' = 'create'): Promise<Store> {
		const store = await openPostgresStore({ url: url, clock: systemClock, mode, lockTimeoutMs: 5_000 });
		onTestFinished(() => store.close());
		return store;
	}

	const with_ = (url: string, change: (url: URL) => void) => {
		const changed = new URL(url);
		change(changed);
		return changed.href;
	};
	const failure = (url: string, mode: 'create' | 'existing' = 'create') =>
		openPostgresStore({ url: url, clock: systemClock, mode, lockTimeoutMs: 500 }).then(
			() => null,
			(error: unknown) => error,
		);

	it('reports why it cannot be opened, with advice and without the password', async () => {
		const url = await server.createDatabase();
		const withPassword = with_(url, (place) => {
			place.password = 'geheim';
		});
		const cases: [url: string, code: string, words: RegExp][] = [
			['postgres://a:geheim@127.0.0.1:1/x', 'unreachable', /127\.0\.0\.1:1, database x cannot be reached/],
			[with_(withPassword, (place) => (place.pathname = '/nothing')), 'not_a_database', /createdb/],
			[with_(withPassword, (place) => (place.username = 'nobody_here')), 'denied', /user or the password/],
			[`${withPassword}?schema=A-b`, 'bad_url', /schema/],
			[`${withPassword}?schema=pg_x`, 'bad_url', /does not begin with pg_/],
			[`${withPassword}?shema=x`, 'bad_url', /\?shema=; did you mean schema\?/],
			[`${withPassword}?pool=0`, 'bad_url', /pool/],
			[`${withPassword}?sslmode=prefer`, 'bad_url', /verify-full/],
			[`${withPassword}?sslmode=require`, 'unreachable', /SSL/],
			['postgres://a:gehe%ZZim@h:port/x', 'bad_url', /special characters/],
			['postgres://a:geheim@127.0.0.1:1/%ZZ', 'bad_url', /special characters/],
			['postgres://a:geheim@127.0.0.1:1/x?host=h%00', 'bad_url', /special characters/],
			['postgres://a:geheim@127.0.0.1:1/x?listen=h:70000', 'bad_url', /listen/],
			[`${withPassword}?query_timeout=1`, 'locked', /took too long/],
			[`${withPassword}?client_encoding=LATIN1`, 'bad_url', /client_encoding=LATIN1; it is UTF8$/],
			[
				`${withPassword}?options=-c%20work_mem%3Dbanana`,
				'bad_url',
				/the server refuses a parameter .*work_mem/,
			],
		];
		for (const [place, code, words] of cases) {
			const error = await failure(place);
			expect(error, place).toMatchObject({ code, message: expect.stringMatching(words) });
			expect(String(error)).not.toContain('geheim');
		}
	});

	it('reports missing rights, a replica, or tables of another program', async () => {
		const url = await server.createDatabase();
		await ask(url, 'REVOKE CREATE ON SCHEMA public FROM public', 'CREATE ROLE poor LOGIN');
		const poor = with_(url, (place) => (place.username = 'poor'));
		expect(await failure(poor)).toMatchObject({ code: 'denied', message: expect.stringContaining('grant') });

		await (await open(url)).close();
		const name = new URL(url).pathname.slice(1);
		await ask(url, `ALTER DATABASE ${name} SET default_transaction_read_only = on`);
		const replica = await openPostgresStore({ url: url, clock: systemClock, mode: 'existing' });
		onTestFinished(() => replica.close());
		await refuses(newList(replica), 'read_only');
		await ask(url, 'SET default_transaction_read_only = off', `ALTER DATABASE ${name} RESET ALL`);
		expect(await newList(replica)).toBeGreaterThan(0);

		const other = await server.createDatabase();
		await ask(other, 'CREATE TABLE messages (x int)', 'CREATE TABLE migrations (id int, migration text)');
		expect(await failure(other)).toMatchObject({
			code: 'not_a_database',
			message: expect.stringContaining('messages, migrations'),
		});
	});

	it('creates no tables if it may open only an existing database', async () => {
		const url = await server.createDatabase();
		expect(await failure(url, 'existing')).toMatchObject({ name: 'DatabaseMissing' });
		await ask(url, 'CREATE TABLE lists (x int)');
	});

	it('loses no acknowledged write and repeats none when connections are lost', async () => {
		const url = await server.createDatabase();
		const store = await openPostgresStore({
			...{ url: `${url}?pool=4`, clock: systemClock, mode: 'create', lockTimeoutMs: 120_000 },
		});
		onTestFinished(() => store.close());
		const list = await newList(store);
		const made: string[] = [];
		const unsure: string[] = [];
		let isDone = false;
		const people = Array.from({ length: 8 }, async (_, client) => {
			for (let n = 0; n < 40; n += 1) {
				const email = `p${client}-${n}@example.org`;
				try {
					await newSubscriber(store, list, email);
					made.push(email);
				} catch (error) {
					expect(error).toMatchObject({ code: 'unreachable' });
					unsure.push(email);
				}
			}
		});
		const killer = (async () => {
			for (let kills = 0; !isDone && kills < 200; kills += 1)
				await ask(
					url,
					`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
					WHERE application_name = 'mailctl cli' AND datname = current_database() AND pid <> pg_backend_pid()`,
				);
		})();
		await Promise.all(people);
		isDone = true;
		await killer;
		expect(unsure).toEqual([]);
		const page = await store.reads.pageSubscribers({ list_id: list, page: 1, page_size: 1_000, filter: {} });
		const kept = page?.results.map(({ email }) => email) ?? [];
		expect(new Set(kept).size).toBe(kept.length);
		expect(made.filter((email) => !kept.includes(email))).toEqual([]);
		expect(kept.filter((email) => !made.includes(email) && !unsure.includes(email))).toEqual([]);
		expect(await store.reads.checkCounts({})).toEqual({ lists: [], figures: 0, campaigns: [] });
	});

	it('reports a write as uncertain if the server is unreachable after the commit', async () => {
		const url = await server.createDatabase();
		const proxy = await startPostgresProxy(url);
		onTestFinished(proxy.close);
		const store = await open(proxy.url);
		proxy.cutAt('COMMIT', { after: () => proxy.refuse(true) });
		await expect(newList(store, 'Once')).rejects.toMatchObject({
			code: 'unreachable',
			message: expect.stringContaining('may or may not be saved'),
		});
		proxy.refuse(false);
		const { results } = await store.reads.pageLists({ page: 1, page_size: 10 });
		expect(results.map(({ name }) => name)).toEqual(['Once']);
	});

	it('repeats an operation if the connection is lost before the commit', async () => {
		const url = await server.createDatabase();
		const proxy = await startPostgresProxy(url);
		onTestFinished(proxy.close);
		const store = await open(proxy.url);
		proxy.cutAt('INSERT INTO lists');
		await newList(store);
		const { count } = await store.reads.pageLists({ page: 1, page_size: 10 });
		expect(count).toBe(1);
	});

	it('replaces connections that no longer answer, and does each write once', async () => {
		const url = await server.createDatabase();
		const proxy = await startPostgresProxy(url);
		onTestFinished(proxy.close);
		const store = await openPostgresStore({
			...{ url: `${proxy.url}?pool=3`, clock: systemClock, mode: 'create', lockTimeoutMs: 8_000 },
		});
		onTestFinished(() => store.close());
		const list = await newList(store);
		const add = (email: string) => newSubscriber(store, list, email);
		await Promise.all(['a1@example.org', 'a2@example.org', 'a3@example.org'].map(add));
		proxy.forget();
		await Promise.all(['b1@example.org', 'b2@example.org', 'b3@example.org'].map(add));
		for (const [n, text] of ['INSERT INTO subscribers', 'COMMIT', 'BEGIN'].entries()) {
			proxy.cutAt(text, { silently: true });
			expect(await add(`c${n}@example.org`)).toMatchObject({ email: `c${n}@example.org` });
		}
		expect(proxy.cuts()).toBe(3);
		const page = await store.reads.pageSubscribers({ list_id: list, page: 1, page_size: 100, filter: {} });
		expect(page?.count).toBe(9);
	});

	it('lets a statement take longer than the lock timeout', async () => {
		const url = await server.createDatabase();
		// The store checks the statement every second, and even a busy server answers that check within a second.
		const store = await openPostgresStore({ url, clock: systemClock, mode: 'create', lockTimeoutMs: 4_000 });
		onTestFinished(() => store.close());
		await ask(
			url,
			`CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(6); RETURN NEW; END'`,
			'CREATE TRIGGER slow BEFORE INSERT ON lists FOR EACH ROW EXECUTE FUNCTION slowly()',
		);
		expect(await newList(store)).toBeGreaterThan(0);
		expect((await store.reads.pageLists({ page: 1, page_size: 10 })).count).toBe(1);
	});

	it('can write after another process vanishes during its transaction', async () => {
		const url = await server.createDatabase();
		const proxy = await startPostgresProxy(url);
		onTestFinished(proxy.close);
		const gone = await open(proxy.url);
		const store = await openPostgresStore({
			url,
			clock: systemClock,
			mode: 'existing',
			lockTimeoutMs: 20_000,
		});
		onTestFinished(() => store.close());
		proxy.cutAt('INSERT INTO lists', { silently: true });
		const lost = newList(gone, 'One').catch(() => null);
		await expect.poll(proxy.cuts).toBe(1);
		expect(await newList(store, 'Two')).toBeGreaterThan(0);
		await lost;
		const { results } = await store.reads.pageLists({ page: 1, page_size: 10 });
		expect(new Set(results.map(({ name }) => name)).size).toBe(results.length);
	});
});
