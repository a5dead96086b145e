import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { connect } from '../../../src/cli/connect.js';
import { inspectPostgres } from '../../../src/store/postgres/inspect.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import type { Store } from '../../../src/store/store.js';
import { newList, newSubscriber } from '../../contract/store/fixture.js';
import { cli, makeHome } from '../../support/cli.js';
import { dependencies } from '../../support/connect.js';
import { startCountingSink } from '../../support/counting-sink.js';
import {
	ask,
	canRunPostgres,
	type OwnPostgres,
	type ServerOptions,
	startOwn,
} from '../../support/postgres.js';

describe.skipIf(!canRunPostgres())('a PostgreSQL server', () => {
	async function start(options: ServerOptions = {}): Promise<OwnPostgres> {
		const server = await startOwn(options);
		onTestFinished(() => server.stop());
		return server;
	}

	function write(store: Store, list: number, { clients, each }: { clients: number; each: number }) {
		const made: string[] = [];
		const unsure: string[] = [];
		const one = async (client: number) => {
			for (let n = 0; n < each; n += 1) {
				const email = `p${client}-${n}@example.org`;
				try {
					await newSubscriber(store, list, email);
					made.push(email);
				} catch (error) {
					expect(error).toMatchObject({ code: 'unreachable' });
					unsure.push(email);
				}
			}
		};
		const done = Promise.all(Array.from({ length: clients }, (_, client) => one(client)));
		return { made, unsure, done };
	}

	async function expectKept(store: Store, list: number, { made, unsure }: ReturnType<typeof write>) {
		const page = await store.reads.pageSubscribers({ list_id: list, page: 1, page_size: 10_000, filter: {} });
		const kept = page?.results.map(({ email }) => email) ?? [];
		expect(new Set(kept).size).toBe(kept.length);
		expect(made.filter((email) => !kept.includes(email))).toEqual([]);
		expect(kept.filter((email) => !made.includes(email) && !unsure.includes(email))).toEqual([]);
		expect(await store.reads.checkCounts({})).toEqual({ lists: [], figures: 0, campaigns: [] });
	}

	it('loses no send call and causes no second mail after repeated kill -9', async () => {
		const server = await start();
		const url = await server.createDatabase();
		const sink = await startCountingSink();
		onTestFinished(() => sink.close());
		const connection = await connect({ kind: 'local', url, create: true }, dependencies({ role: 'worker' }));
		onTestFinished(() => connection.close());
		const { api, local } = connection;
		if (local === null) throw new Error('it is local');
		await api.senders.create({ from_email: 'news@example.com' });
		await local.settings.set({ smtp_url: `smtp://127.0.0.1:${sink.port}` });
		const stopping = new AbortController();
		const { signal } = stopping;
		const delivering = local.deliver({ scope: null, until: 'stopped', signal });
		let accepted = 0;
		const unsure: unknown[] = [];
		const mail = {
			from: 'news@example.com',
			subject: 'Hi',
			text_body: 'Hello',
			type: 'TRANSACTIONAL',
		} as const;
		const client = async (name: number) => {
			for (let n = 0; n < 60; n += 1)
				await api.send({ ...mail, to: [`p${name}-${n}@example.org`] }).then(
					() => {
						accepted += 1;
					},
					(error: unknown) => unsure.push(error),
				);
		};
		const posting = Promise.all([1, 2, 3, 4].map(client));
		for (const kill of [1, 2, 3]) {
			await expect.poll(() => accepted, { timeout: 60_000 }).toBeGreaterThan(kill * 40);
			await server.kill();
			await server.restart();
		}
		await posting;
		const messages = async () => (await local.status()).messages;
		await expect.poll(messages, { timeout: 60_000, interval: 200 }).toEqual({ sent: expect.any(Number) });
		const { sent = 0 } = await messages();
		stopping.abort();
		await delivering;
		expect(unsure).toEqual([]);
		expect([accepted, sent, sink.received()]).toEqual([240, 240, 240]);
	});

	async function expectPromoted(url: string, promote: () => Promise<void>) {
		const store = await openPostgresStore({
			...{ url, clock: systemClock, mode: 'create', lockTimeoutMs: 30_000 },
		});
		onTestFinished(() => store.close());
		const list = await newList(store);
		const writing = write(store, list, { clients: 6, each: 40 });
		await expect.poll(() => writing.made.length, { timeout: 60_000 }).toBeGreaterThan(60);
		await promote();
		await writing.done;
		await expectKept(store, list, writing);
		expect(writing.unsure).toEqual([]);
		expect(writing.made.length).toBe(240);
	}

	it('loses nothing if its synchronous replica is promoted', async () => {
		const primary = await start();
		const url = await primary.createDatabase();
		const replica = await primary.replicate();
		onTestFinished(() => replica.stop());
		await ask(url, "ALTER SYSTEM SET synchronous_standby_names = '*'", 'SELECT pg_reload_conf()');
		const both = url.replace(primary.host, `${replica.host},${primary.host}`);
		await expectPromoted(`${both}?target_session_attrs=read-write`, async () => {
			await primary.kill();
			await replica.promote();
		});
	});

	it('makes a write uncertain if the wait for the replica is canceled', async () => {
		const primary = await start();
		const url = await primary.createDatabase();
		await (await openPostgresStore({ url, clock: systemClock, mode: 'create' })).close();
		await ask(url, "ALTER SYSTEM SET synchronous_standby_names = '*'", 'SELECT pg_reload_conf()');
		const store = await openPostgresStore({
			...{ url, clock: systemClock, mode: 'existing', lockTimeoutMs: 2_000 },
		});
		onTestFinished(() => store.close());
		const refused = newList(store).catch((error: unknown) => error);
		let isOver = false;
		void refused.then(() => {
			isOver = true;
		});
		while (!isOver)
			await ask(url, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
		expect(await refused).toMatchObject({
			code: 'unreachable',
			message: expect.stringContaining('may or may not be saved'),
		});
		await ask(url, 'ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()');
		expect((await store.reads.pageLists({ page: 1, page_size: 10 })).count).toBe(1);
	});

	it('accepts no writes as a replica, and doctor warns about commits that do not wait for a replica', async () => {
		const primary = await start();
		const url = await primary.createDatabase();
		await (await openPostgresStore({ url, clock: systemClock, mode: 'create' })).close();
		const replica = await primary.replicate();
		onTestFinished(() => replica.stop());
		const own = url.replace(primary.host, replica.host);
		const reader = await openPostgresStore({ url: own, clock: systemClock, mode: 'existing' });
		onTestFinished(() => reader.close());
		expect((await reader.reads.pageLists({ page: 1, page_size: 10 })).count).toBe(0);
		await expect(newList(reader)).rejects.toMatchObject({
			code: 'read_only',
			message: expect.stringContaining('name the primary'),
		});
		const onlyReplicas = openPostgresStore({
			...{ url: `${own}?target_session_attrs=primary`, clock: systemClock, mode: 'existing' },
		});
		await expect(onlyReplicas).rejects.toMatchObject({
			code: 'unreachable',
			message: expect.stringContaining('read-only replicas'),
		});
		const look = async (where: string) => {
			const { server, close } = await inspectPostgres(where, { keys: [], clock: systemClock });
			await close();
			return server;
		};
		expect(await look(url)).toMatchObject({ isReadOnly: false, standbys: '', replicas: 1 });
		expect(await look(own)).toMatchObject({ isReadOnly: true });
		const durability = async () => {
			const argv = ['doctor', '--offline', '--only', 'database', '-o', 'json', '--db', url];
			const { stdout } = await cli(argv, { env: { HOME: await makeHome() } });
			const checks: { check: string }[] = JSON.parse(stdout);
			return checks.find(({ check }) => check === 'database.durability');
		};
		expect(await durability()).toMatchObject({
			level: 'warning',
			message: expect.stringContaining('a failover may lose the latest'),
		});
	});
});
