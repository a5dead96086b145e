/** PostgreSQL used as a distributed database: what it is asked for, and which databases are taken for what. */
import { type AddressInfo, createServer, connect as dial, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import type { Store } from '../../../src/store/store.js';
import {
	accepted250,
	fixedClock,
	lease,
	newField,
	newList,
	newSubscriber,
	noon,
	submissionOf,
	verify,
} from '../../contract/store/fixture.js';
import { cli, makeHome } from '../../support/cli.js';
import { asDistributed, describePostgres } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';

/** What it says and is told goes through here; both may be changed on the way, without a change of length. */
async function relay(url: string, { asked = (octets: Buffer) => octets, told = (octets: Buffer) => octets }) {
	const place = new URL(url);
	const folder = decodeURIComponent(place.hostname);
	const upstream = folder.startsWith('/')
		? { path: `${folder}/.s.PGSQL.${place.port || 5432}` }
		: { host: place.hostname, port: Number(place.port || 5432) };
	const open = new Set<Socket>();
	const listener = createServer((client) => {
		const server = dial(upstream);
		for (const [one, other, change] of [
			[client, server, asked],
			[server, client, told],
		] as const) {
			open.add(one);
			one.on('error', () => undefined);
			one.on('data', (octets) => other.write(change(octets)));
			one.on('close', () => other.destroy());
		}
	});
	await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
	onTestFinished(() => {
		for (const socket of open) socket.destroy();
		listener.close();
	});
	place.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`;
	return place.href;
}

/** As long as the words of PostgreSQL. */
const callsItself = (octets: Buffer) =>
	Buffer.from(octets.toString('latin1').replace('PostgreSQL 1', 'CockroachDB1'), 'latin1');

describePostgres('a distributed database', (server) => {
	const openAt = async (url: string): Promise<Store> => {
		const store = await openPostgresStore({ url, clock: fixedClock, mode: 'create', role: 'worker' });
		onTestFinished(() => store.close());
		return store;
	};

	it('is asked for nothing that such databases lack', async () => {
		let asked = '';
		const url = await relay(await server.createProject(), {
			asked: (octets) => {
				asked += octets.toString('latin1');
				return octets;
			},
		});
		const store = await openAt(asDistributed(url));
		store.onReady?.(() => undefined);
		const list = await newList(store);
		await newField(store, 'city');
		await verify(store);
		await newSubscriber(store, list, 'ann@example.org');
		await store.writes.acceptSubmission({ ...submissionOf(['bob@example.org']), key: null });
		const [message] = await lease(store, { max: 10 });
		if (message === undefined) throw new Error('there is one');
		const outcome = { kind: 'sent', reply: accepted250 } as const;
		await store.queue.settle({ settlements: [{ ...message, at: noon, outcome }] });
		const session = crypto.randomUUID();
		const spec = { list_id: list, on_conflict: 'update', reactivate: false } as const;
		await store.writes.openImport({ id: session, key: session, spec, now: noon });
		const batch = { first: 0, columns: ['email'], cells: ['cy@example.org', 'dan@example.org'] };
		await store.writes.putImportBatch({ session, batch, now: noon });
		await store.writes.putSettings({ values: { time_zone: 'Europe/Oslo' }, now: noon });
		expect(await store.reads.checkCounts({})).toEqual({ lists: [], figures: 0, campaigns: [] });
		await store.reads.status();
		await store.reads.sizes({});
		await store.close();
		expect(asked).toContain('BEGIN ISOLATION LEVEL SERIALIZABLE');
		const lacking =
			/pg_(advisory|notify|current_snapshot|total_relation|database_size)\w*|LISTEN|SKIP LOCKED|LOCK TABLE|COLLATE "C"|nextval|setval|TRIGGER|[\w)] \/ \d+/g;
		expect([...new Set(asked.match(lacking))]).toEqual([]);
	});

	it('counts a write once whose COMMIT got no answer', async () => {
		const proxy = await startPostgresProxy(await server.createProject());
		onTestFinished(proxy.close);
		const store = await openAt(asDistributed(proxy.url));
		const list = await newList(store);
		proxy.cutAt('COMMIT', { times: 2 });
		await newSubscriber(store, list, 'ann@example.org');
		expect(proxy.cuts()).toBe(2);
		expect(await store.reads.getList({ id: list })).toMatchObject({ active_subscribers_count: 1 });
		expect(await store.reads.checkCounts({})).toEqual({ lists: [], figures: 0, campaigns: [] });
	});

	it('is refused without ?server=distributed where it calls itself CockroachDB, and named by doctor with it', async () => {
		const url = await relay(await server.createProject(), { told: callsItself });
		const refused = openPostgresStore({ url, clock: systemClock, mode: 'create' });
		await expect(refused).rejects.toMatchObject({
			code: 'not_a_database',
			message: expect.stringMatching(/is CockroachDB, .* add \?server=distributed to the URL$/),
		});
		await openAt(asDistributed(url));
		const HOME = await makeHome();
		const argv = ['doctor', '--offline', '--only', 'database', '-o', 'json', '--db', asDistributed(url)];
		const { stdout } = await cli(argv, { env: { HOME } });
		const checks: { check: string; message: string }[] = JSON.parse(stdout);
		expect(checks.find(({ check }) => check === 'database.server')?.message).toMatch(
			/^CockroachDB.*, as a distributed database \(\?server=distributed\), without TLS$/,
		);
	});

	it('and PostgreSQL do not take each other’s tables, and a move takes neither', async () => {
		const [one, other] = [await server.createProject(), await server.createProject()];
		await openAt(one);
		await openAt(asDistributed(other));
		await expect(openAt(asDistributed(one))).rejects.toThrow(
			/was made for PostgreSQL: take \?server=distributed out of the URL$/,
		);
		await expect(openAt(other)).rejects.toThrow(
			/was made for a distributed database: add \?server=distributed to the URL$/,
		);
		await expect(openAt(`${other}&server=mysql`)).rejects.toThrow('it is postgresql or distributed');
		const argv = ['engine', 'migrate', '--from', asDistributed(other), '--to', 'back.db', '--yes'];
		const { code, stderr } = await cli(argv, { env: { HOME: await makeHome() } });
		expect(code).not.toBe(0);
		expect(stderr).toContain('is a distributed database, which a move can neither shut nor fill');
	});
});
