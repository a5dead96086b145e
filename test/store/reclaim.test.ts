import { hostname } from 'node:os';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { leaseOwner, ownersOf, processMark } from '../../src/store/core/processes.js';
import type { LeasedDelivery } from '../../src/store/queue.js';
import { isPostgres } from '../../src/store/url.js';
import { eventOf, send, verify } from '../contract/store/fixture.js';
import { describeDatabases } from '../support/databases.js';
import { eventually } from '../support/eventually.js';
import { ask } from '../support/postgres.js';
import { openAt } from '../support/queued-database.js';
import { runProgram } from '../support/run-program.js';

const minute = 60_000_000;
const [place = '', start = ''] = processMark().split('/');
const dead = () => runProgram(process.execPath, ['--version']).pid ?? 0;

const processes = [
	{ what: 'killed', id: `${place}/1/x`, pid: dead(), isGone: true },
	{ what: 'killed, with its pid reused', id: `${place}/1/y`, pid: process.pid, isGone: true },
	{ what: 'running', id: `${place}/${start}/z`, pid: process.pid, isGone: false },
	{ what: 'in another container', id: 'another-4026531836/1/x', pid: dead(), isGone: false },
];

describeDatabases('leases', ({ kind, create }) => {
	it('end early only if the process that holds them has died on this machine', async () => {
		const db = await create();
		const execute = async (text: string) => {
			if (isPostgres(db)) return void (await ask(db, text));
			const file = new Database(db);
			file.exec(text);
			file.close();
		};
		const clock = systemClock;
		const now = clock.now();
		const before = await openAt(db, { clock, mode: 'create' });
		await verify(before);
		const fresh = { what: 'killed just now', id: `${place}/2/x`, pid: dead(), isGone: kind === 'SQLite' };
		const all = [...processes, fresh];
		const hook = { url: 'https://hooks.example.com/', is_auth_enabled: false, login: '', password: '' };
		await before.writes.createWebhook({ input: { ...hook, type: 'OPENED' }, now });
		for (const [at, { what, id, pid }] of all.entries()) {
			const owner = `${ownersOf({ id, host: hostname(), pid })}worker`;
			const { answer } = await send(before, [`${at}@example.org`], { now, tag: what });
			const leased = { owner, now, until: now + 2 * minute };
			expect(await before.queue.lease({ ...leased, max: 1, scope: null })).toHaveLength(1);
			const opened = eventOf(answer.messages[0]?.id ?? '', 'OPENED', { at: now });
			await before.writes.recordEvents({ events: [opened] });
			const taken = await before.writes.leaseDeliveries({ ...leased, max: 1, each: 1, shares: [] });
			expect(taken.deliveries).toHaveLength(1);
		}
		await before.close();
		for (const { id, pid } of all) {
			const at = id === fresh.id ? now : now - minute;
			await execute(
				`INSERT INTO processes VALUES ('${id}', 'worker', '${hostname()}', ${pid}, ${at}, ${at})`,
			);
		}

		const store = await openAt(db, { clock, mode: 'existing', role: 'worker' });
		onTestFinished(() => store.close());
		const tagOf = (to: string) => all[Number(to.split('@')[0])]?.what;
		const leasing = () => ({ owner: leaseOwner('x'), now: clock.now(), until: clock.now() + minute });
		const gone = all.filter(({ isGone }) => isGone).map(({ what }) => what);
		const messages: (string | undefined)[] = [];
		const deliveries: LeasedDelivery[] = [];
		await eventually(async () => {
			const leased = await store.queue.lease({ ...leasing(), max: 9, scope: null });
			messages.push(...leased.map(({ to }) => tagOf(to)));
			const taken = await store.writes.leaseDeliveries({ ...leasing(), max: 9, each: 9, shares: [] });
			deliveries.push(...taken.deliveries);
			expect(messages).toEqual(gone);
		});
		expect(deliveries.map(({ payload }) => JSON.parse(payload).message.tag)).toEqual(gone);
	});
});
