import { expect, it, onTestFinished } from 'vitest';
import { type Clock, microsPerSecond, systemClock } from '../../../src/api/datetime.js';
import { connect } from '../../../src/cli/connect.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { busy451, fixedClock, noon, send, verify } from '../../contract/store/fixture.js';
import { dependencies } from '../../support/connect.js';
import { startCountingSink } from '../../support/counting-sink.js';
import { eventually } from '../../support/eventually.js';
import { describePostgres } from '../../support/postgres.js';

const minute = 60 * microsPerSecond;

function clockAhead(by: number): Clock {
	return { now: () => systemClock.now() + by, steady: () => systemClock.steady?.() ?? 0 };
}

describePostgres('a wrong clock', (server) => {
	async function openTwo() {
		const url = await server.createProject();
		const open = async (clock: Clock) => {
			const store = await openPostgresStore({ url, clock, mode: 'create' });
			onTestFinished(() => store.close());
			return { store, now: (store.clock ?? clock).now };
		};
		return [await open(clockAhead(0)), await open(clockAhead(10 * minute))] as const;
	}

	it('does not let a machine lease a deferred message before it is due', async () => {
		const [right, ahead] = await openTwo();
		await verify(right.store);
		await send(ahead.store, ['ann@example.org'], { now: ahead.now() });
		const lease = ({ store, now }: typeof right) =>
			store.queue.lease({ owner: 'one', now: now(), until: now() + 2 * minute, max: 10, scope: null });
		const leased = await eventually(async () => {
			const [first] = await lease(right);
			if (first === undefined) throw new Error('nothing is due');
			return first;
		});
		const due_at = right.now() + 5 * minute;
		const outcome = { kind: 'deferred', reply: busy451, due_at } as const;
		const { message, fence } = leased;
		await right.store.queue.settle({ settlements: [{ message, fence, at: right.now(), outcome }] });
		expect(await lease(ahead)).toEqual([]);
		expect((await ahead.store.reads.queueState({ now: ahead.now() })).due).toBe(0);
	});

	it('does not make two machines send the same message', async () => {
		const url = await server.createProject();
		const sink = await startCountingSink();
		onTestFinished(() => sink.close());
		const open = async (by: number) => {
			const connection = await connect(
				{ kind: 'local', url, create: true },
				dependencies({ clock: clockAhead(by), role: 'worker' }),
			);
			onTestFinished(() => connection.close());
			return connection;
		};
		const machines = [await open(0), await open(10 * minute)];
		const [first, second] = machines;
		if (first?.local == null || second === undefined) throw new Error('both are local');
		await first.api.senders.create({ from_email: 'news@example.com' });
		await first.local.settings.set({ smtp_url: `smtp://127.0.0.1:${sink.port}` });
		const mail = {
			from: 'news@example.com',
			subject: 'Hi',
			text_body: 'Hello',
			type: 'TRANSACTIONAL',
		} as const;
		for (let n = 0; n < 60; n += 1) {
			const { api } = n % 2 === 0 ? first : second;
			await api.send({ ...mail, to: [`p${n}@example.org`] });
		}
		const signal = new AbortController().signal;
		await Promise.all(machines.map(({ local }) => local?.deliver({ scope: null, until: 'settled', signal })));
		expect(sink.received()).toBe(60);
		expect((await first.local.status()).messages).toEqual({ sent: 60 });
	});

	it('is not corrected if it always shows the same time, as with --now', async () => {
		const store = await openPostgresStore({
			url: await server.createProject(),
			clock: fixedClock,
			mode: 'create',
		});
		onTestFinished(() => store.close());
		expect(store.clock?.now()).toBe(noon);
	});
});
