import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/api/datetime.js';
import { Spaced } from '../../../src/store/postgres/listen.js';
import { openPostgresStore } from '../../../src/store/postgres/store.js';
import { campaignOf, put, send, verify } from '../../contract/store/fixture.js';
import { ask, describePostgres } from '../../support/postgres.js';

it('frequent notifications are combined, and the last one still takes effect', async () => {
	let acts = 0;
	const spaced = new Spaced(() => {
		acts += 1;
	});
	for (let n = 0; n < 1_000; n += 1) spaced.call();
	await spaced.flush();
	expect(acts).toBe(2);
});

describePostgres('a listening worker', (server) => {
	async function open(url: string, role: 'cli' | 'worker') {
		const store = await openPostgresStore({ url, clock: systemClock, mode: 'create', role });
		onTestFinished(() => store.close());
		return store;
	}

	async function listenOn(url: string) {
		const store = await open(url, 'worker');
		let wakes = 0;
		const stop = store.onReady?.(() => {
			wakes += 1;
		});
		return { wakes: () => wakes, stop: () => stop?.() };
	}
	const eventually = (check: () => void) => vi.waitFor(check, { timeout: 10_000, interval: 20 });

	it('is woken by a send call or the release of a campaign, but not by added recipients', async () => {
		const url = await server.createProject();
		const writer = await open(url, 'cli');
		await verify(writer);
		const { wakes } = await listenOn(url);
		await eventually(() => expect(wakes()).toBe(1));
		await send(writer, ['ann@example.org']);
		await eventually(() => expect(wakes()).toBe(2));
		const campaign = campaignOf('one');
		await writer.writes.openCampaign(campaign);
		await put(writer, campaign.id, 0, ['ben@example.org']);
		await writer.writes.completeCampaign({ campaign: campaign.id, position: 1 });
		const release = { campaign: campaign.id, expect_count: 1, now: systemClock.now() };
		expect(await writer.writes.releaseCampaign(release)).toMatchObject({ kind: 'released' });
		await eventually(() => expect(wakes()).toBe(3));
	});

	it('reconnects and checks the queue once after its connection ends', async () => {
		const url = await server.createProject();
		const writer = await open(url, 'cli');
		await verify(writer);
		const { wakes } = await listenOn(url);
		await eventually(() => expect(wakes()).toBe(1));
		await ask(
			url.replace(/\?.*/, ''),
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()",
		);
		await eventually(() => expect(wakes()).toBe(2));
		await send(writer, ['ann@example.org']);
		await eventually(() => expect(wakes()).toBe(3));
	});
});
