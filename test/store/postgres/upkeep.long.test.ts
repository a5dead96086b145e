import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { createPipeline } from '../../../src/store/postgres/pipeline.js';
import { createSql } from '../../../src/store/postgres/sql.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { lead, resign } from '../../../src/store/postgres/upkeep.js';
import { noon } from '../../contract/store/fixture.js';
import { ask, describePostgres } from '../../support/postgres.js';
import { startPostgresProxy } from '../../support/postgres-proxy.js';

const second = 1_000_000;

describePostgres('upkeep on PostgreSQL', (server) => {
	it('is led by one process, which can renew its term', async () => {
		const url = await server.createDatabase();
		await (await openPostgresStore({ url, clock: systemClock, mode: 'create' })).close();
		const client = new pg.Client({ connectionString: url });
		await client.connect();
		onTestFinished(() => client.end());
		const sql = createSql(createPipeline(client));
		const tries = async (holder: string, now: number) => await lead(sql, { holder, now });
		expect(await tries('one', noon)).toBe(true);
		expect(await tries('two', noon + 14 * second)).toBe(false);
		expect(await tries('one', noon + 14 * second)).toBe(true);
		expect(await tries('two', noon + 28 * second)).toBe(false);
		expect(await tries('two', noon + 29 * second)).toBe(true);
		expect(await tries('one', noon + 29 * second)).toBe(false);
		await resign(sql, 'one');
		expect(await tries('one', noon + 30 * second)).toBe(false);
		await resign(sql, 'two');
		expect(await tries('one', noon + 30 * second)).toBe(true);
	});

	it('is taken over by another process if the leader loses its connection or closes', async () => {
		const url = await server.createDatabase();
		await (await openPostgresStore({ url, clock: systemClock, mode: 'create' })).close();
		const addExpired = () => ask(url, "INSERT INTO processes VALUES ('gone', 'worker', 'host', 1, 0, 0)");
		await addExpired();
		const processes = new Map<string, { cutOff: () => void; close: () => Promise<void> }>();
		for (const role of ['serve', 'worker', 'other']) {
			const proxy = await startPostgresProxy(url);
			const store = await openPostgresStore({ url: proxy.url, clock: systemClock, mode: 'create', role });
			onTestFinished(() => store.close().then(proxy.close));
			processes.set(role, { cutOff: () => proxy.refuse(true), close: store.close });
		}
		const leader = async () => {
			const [row] = await ask(
				url,
				`SELECT p.role FROM leaders l JOIN processes p ON p.id = l.holder
				WHERE NOT EXISTS (SELECT 1 FROM processes WHERE id = 'gone')`,
			);
			return row?.['role'];
		};
		const next = async (than: unknown) => {
			await expect
				.poll(async () => [undefined, than].includes(await leader()), { timeout: 60_000, interval: 200 })
				.toBe(false);
			return await leader();
		};
		const first = await next(null);
		await addExpired();
		processes.get(String(first))?.cutOff();
		const then = await next(first);
		await addExpired();
		await processes.get(String(then))?.close();
		const last = await next(then);
		expect(new Set([first, then, last]).size).toBe(3);
		expect(await ask(url, 'SELECT role FROM leaders')).toEqual([{ role: 'upkeep' }]);
	});
});
