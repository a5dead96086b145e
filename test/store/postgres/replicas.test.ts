/** Reads from replicas: what they answer, and that the primary answers where they cannot. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { openDatabase } from '../../../src/store/postgres/connection.js';
import { readPlace } from '../../../src/store/postgres/place.js';
import { openReplicas } from '../../../src/store/postgres/replicas.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { messageIds, newList, newSubscriber } from '../../contract/store/fixture.js';
import { cli, makeHome } from '../../support/cli.js';
import { eventually } from '../../support/eventually.js';
import { ask, canRunPostgres, startOwn } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';

describe.skipIf(!canRunPostgres())('replicas of PostgreSQL', () => {
	/** A primary with the database of a project, and a replica behind a proxy. */
	async function start() {
		const primary = await startOwn();
		onTestFinished(() => primary.stop());
		const url = await primary.createDatabase();
		await (await openPostgresStore({ url, clock: systemClock, mode: 'create' })).close();
		const replica = await primary.replicate();
		onTestFinished(() => replica.stop());
		const own = url.replace(primary.host, replica.host);
		const proxy = await startPostgresProxy(own);
		onTestFinished(proxy.close);
		return { primary, replica, url, own, proxy, named: naming(url, new URL(proxy.url).host) };
	}

	function naming(url: string, ...hosts: string[]): string {
		return `${url}?replica=${hosts.join(',')}`;
	}

	async function open(url: string) {
		const warnings: string[] = [];
		const warn = (text: string) => void warnings.push(text);
		const store = await openPostgresStore({ url, clock: systemClock, mode: 'existing', warn });
		onTestFinished(() => store.close());
		return { store, warnings };
	}

	type Opened = Awaited<ReturnType<typeof open>>['store'];

	async function emailsIn(store: Opened, list_id: number) {
		const slice = await store.reads.sliceSubscribers({ list_id, after: 0, limit: 1_000, filter: {} });
		return slice?.map(({ email }) => email) ?? [];
	}

	it('answer exports, reports and looks at the queue; look-ups and writes are the primary’s', async () => {
		const { named, proxy } = await start();
		const { store, warnings } = await open(named);
		const list = await newList(store);
		const { id } = await newSubscriber(store, list, 'ann@example.org');
		const isReplica = async (read: () => Promise<unknown>) => {
			// A read answers before its transaction ends.
			await proxy.idle();
			const before = proxy.trips();
			await read();
			return proxy.trips() > before;
		};
		const { reads } = store;
		const page = { page: 1, page_size: 10 };
		const query = { from: '2026-01-01', to: '2026-12-31', campaign: null, tag: null, human: false };
		const asked: Record<string, () => Promise<unknown>> = {
			sliceSubscribers: () => emailsIn(store, list),
			reportFigures: () => reads.reportFigures(query),
			queueState: () => reads.queueState({ now: systemClock.now() }),
			pageMessages: () => reads.pageMessages({ ...page, filter: {} }),
			pageCampaigns: () => reads.pageCampaigns({ ...page, now: systemClock.now() }),
			'pageCampaigns, one': () => reads.pageCampaigns({ ...page, key: 'May', now: systemClock.now() }),
			getSubscriber: () => reads.getSubscriber({ list_id: list, id }),
			pageSubscribers: () => reads.pageSubscribers({ ...page, list_id: list, filter: {} }),
			getSettings: () => reads.getSettings(),
			createList: () => newList(store),
		};
		const found: string[] = [];
		for (const [name, read] of Object.entries(asked)) if (await isReplica(read)) found.push(name);
		expect(found).toEqual([
			...['sliceSubscribers', 'reportFigures', 'queueState', 'pageMessages', 'pageCampaigns'],
		]);
		expect(warnings).toEqual([]);
	});

	it('show a process all that it wrote, and others what was written before they asked', async () => {
		const { named } = await start();
		const [one, other] = [await open(named), await open(named)];
		const list = await newList(one.store);
		const emails: string[] = [];
		for (let n = 0; n < 30; n += 1) {
			const email = `p${n}@example.org`;
			await newSubscriber(one.store, list, email);
			emails.push(email);
			expect(await emailsIn(one.store, list)).toEqual(emails);
		}
		// A list that a replica does not have yet is asked of the primary.
		expect(await emailsIn(other.store, await newList(one.store))).toEqual([]);
		expect(await emailsIn(other.store, list)).toEqual(emails);
		expect([...one.warnings, ...other.warnings]).toEqual([]);
	});

	it('that stand still are left: at once by who wrote since, by others after some seconds, with one warning', async () => {
		const { named, own } = await start();
		const [writer, reader] = [await open(named), await open(named)];
		const list = await newList(writer.store);
		expect(await emailsIn(reader.store, list)).toEqual([]);
		await ask(own, 'SELECT pg_wal_replay_pause()');
		await newSubscriber(writer.store, list, 'ann@example.org');
		expect(await emailsIn(writer.store, list)).toEqual(['ann@example.org']);
		expect(writer.warnings).toEqual([]);
		await eventually(async () => {
			expect(await emailsIn(reader.store, list)).toEqual(['ann@example.org']);
		});
		expect(reader.warnings).toEqual([
			expect.stringMatching(/^the replica 127\.0\.0\.1:\d+ is \d+ s behind: the primary answers/),
		]);
		await ask(own, 'SELECT pg_wal_replay_resume()');
	});

	it('that are killed leave their reads to the primary, with one warning, until they are back', async () => {
		const { replica, named, proxy } = await start();
		const { store, warnings } = await open(named);
		const list = await newList(store);
		await newSubscriber(store, list, 'ann@example.org');
		const read = async () => expect(await emailsIn(store, list)).toEqual(['ann@example.org']);
		await read();
		await replica.kill();
		// A connection of it lives until its process finds out.
		do await read();
		while (warnings.length === 0);
		for (let n = 0; n < 5; n += 1) await read();
		expect(warnings).toEqual([expect.stringContaining('does not answer')]);
		await replica.restart();
		const before = proxy.trips();
		await eventually(async () => {
			await read();
			expect(proxy.trips()).toBeGreaterThan(before);
		});
		expect(warnings).toHaveLength(1);
	});

	it('that fall silent in a read leave it to the primary', async () => {
		const { named, proxy } = await start();
		const { store, warnings } = await open(named);
		const list = await newList(store);
		await eventually(async () => {
			await emailsIn(store, list);
			expect(proxy.trips()).toBeGreaterThan(0);
		});
		// The primary answers without a word where the replica lags, and a silent connection that rests is replaced.
		await eventually(async () => {
			proxy.forget();
			expect(await emailsIn(store, list)).toEqual([]);
			expect(warnings).toEqual([expect.stringContaining('does not answer')]);
		});
	});

	it('that are promoted, or follow another system, are not read', async () => {
		const { url, replica, named } = await start();
		const { store, warnings } = await open(named);
		const list = await newList(store);
		await newSubscriber(store, list, 'ann@example.org');
		await replica.promote();
		expect(await emailsIn(store, list)).toEqual(['ann@example.org']);
		expect(warnings).toEqual([expect.stringContaining('takes writes itself: the primary answers')]);

		const stranger = await startOwn();
		onTestFinished(() => stranger.stop());
		const same = new URL(`postgres://postgres@${stranger.host}/postgres`);
		await ask(same.href, `CREATE DATABASE ${new URL(url).pathname.slice(1)}`);
		same.pathname = new URL(url).pathname;
		await (await openPostgresStore({ url: same.href, clock: systemClock, mode: 'create' })).close();
		const proxy = await startPostgresProxy(same.href);
		onTestFinished(proxy.close);
		const other = await open(naming(url, new URL(proxy.url).host));
		expect(await emailsIn(other.store, list)).toEqual(['ann@example.org']);
		expect(other.warnings).toEqual([expect.stringContaining('is one of another system')]);
	});

	it('cancel a read that is in the way of what they follow, and the primary answers it', async () => {
		const { url, own, named } = await start();
		await ask(own, "ALTER SYSTEM SET max_standby_streaming_delay = '0'", 'SELECT pg_reload_conf()');
		const options = {
			...{ place: readPlace(named), size: 2, role: 'cli', keys: [], lockTimeoutMs: 10_000, isTrial: false },
		};
		const primary = openDatabase(options);
		onTestFinished(() => primary.close());
		const warnings: string[] = [];
		const replicas = openReplicas(primary, options, (text) => void warnings.push(text));
		onTestFinished(() => replicas.close());
		let canceled = 0;
		const reading = replicas.read({ name: 'queueState', command: {} }, async ({ sql }) => {
			if ((await sql.number('SELECT pg_is_in_recovery()')) === 0) return 'the primary';
			await sql.number('SELECT count(*) FROM messages, pg_sleep(600)').catch((error: unknown) => {
				expect(error).toMatchObject({ code: '40001' });
				canceled += 1;
				throw error;
			});
			return 'the replica';
		});
		await eventually(async () => {
			const asleep = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
			expect(await ask(own, asleep)).toHaveLength(1);
		});
		await ask(url, 'BEGIN', 'LOCK TABLE messages IN ACCESS EXCLUSIVE MODE', 'COMMIT');
		expect(await reading).toBe('the primary');
		expect([canceled, warnings]).toEqual([1, []]);
	});

	it('are told of by commands and by doctor', async () => {
		const { primary, url, proxy, named } = await start();
		const HOME = await makeHome();
		const gone = naming(url, '127.0.0.1:1');
		const listed = await cli(['campaigns', 'list', '--db', gone], { env: { HOME } });
		expect(listed.code).toBe(0);
		expect(listed.stderr.match(/warning: the replica 127\.0\.0\.1:1 does not answer/g)).toHaveLength(1);

		const asPrimary = await startPostgresProxy(`postgres://postgres@${primary.host}/postgres`);
		onTestFinished(asPrimary.close);
		const judged = async (where: string) => {
			const argv = ['doctor', '--offline', '--only', 'database', '-o', 'json', '--db', where];
			const { stdout } = await cli(argv, { env: { HOME } });
			const checks: { check: string; level: string; message: string }[] = JSON.parse(stdout);
			return checks
				.filter(({ check }) => check === 'database.replica')
				.map(({ level, message }) => `${level}: ${message}`);
		};
		const host = new URL(proxy.url).host;
		const other = new URL(asPrimary.url).host;
		expect(await judged(naming(url, host, other, '127.0.0.1:1'))).toEqual([
			`ok: the replica ${host} is of the same system and has everything`,
			`warning: the replica ${other} takes writes itself, and the primary answers in its place`,
			expect.stringMatching(/^warning: the replica 127\.0\.0\.1:1 does not answer, .*ECONNREFUSED/),
		]);
		expect(await judged(url)).toEqual([]);
		const { store } = await open(named);
		expect(await messageIds(store)).toEqual([]);
	});
});

describe('a URL that names replicas', () => {
	it('takes several with commas, keeps the rest of the URL for them, and refuses what is no host', () => {
		const place = readPlace('postgres://ann:x@one,two:7/mail?replica=two:7,three,[::1]:9&schema=a&port=3');
		expect(place.replicas).toEqual([
			{ host: 'two:7', url: 'postgres://ann:x@two:7/mail', isHost: true },
			{ host: 'three', url: 'postgres://ann:x@three/mail', isHost: false },
			{ host: '[::1]:9', url: 'postgres://ann:x@[::1]:9/mail', isHost: false },
		]);
		for (const wrong of ['', 'three,', 'three:x', 'a/b', 'three:99999', 'a%25b', 'a%3Cb'])
			expect(() => readPlace(`postgres://one/mail?replica=${wrong}`)).toThrow(
				'?replica= that is not HOST:PORT',
			);
	});
});
