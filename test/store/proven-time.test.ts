import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Micros } from '../../src/api/datetime.js';
import { provenTime, proveTime } from '../../src/store/core/processes.js';
import { openStore } from '../../src/store/open.js';
import { createPipeline } from '../../src/store/postgres/pipeline.js';
import { createSql } from '../../src/store/postgres/sql.js';
import { openPostgresStore } from '../../src/store/postgres/store.js';
import type { Store } from '../../src/store/store.js';
import { campaignOf, day, hour, noon, put, send, submissionOf, verify } from '../contract/store/fixture.js';
import { describePostgres } from '../support/postgres.js';

describePostgres('the time that the store trusts', (server) => {
	/**
	 * Each look has the hours of the wall clock, of the steady clock (with a letter per boot), and of the proven time.
	 * `+` follows if a message was recorded.
	 */
	const looks = [
		['goes on with the clock', '0 5a 0, 1 6a 1, 30 35a 30'],
		['continues after a short stop, and goes back with the clock', '0 5a 0, 1 0b 1, -9 1b -9'],
		['stays behind a clock that is far ahead', '0 5a 0, 48 0b 0, 50 2b 2, 3 3b 3'],
		[
			'follows a clock that ran for a day, after something is recorded',
			'0 5a 0, 48 0b 0, 72 24b 24, 73 25b 73 +',
		],
		['counts a new day after another step', '0 5a 0, 48 0b 0, 99 1b 1, 122 24b 24 +'],
	] as const;
	it.each(looks)('%s', async (_, times) => {
		const url = await server.createDatabase();
		const clock = { now: () => noon };
		const store = await openPostgresStore({ url, clock, mode: 'create' });
		const client = new pg.Client({ connectionString: url });
		await client.connect();
		onTestFinished(() => Promise.all([client.end(), store.close()]).then(() => undefined));
		const sql = createSql(createPipeline(client));
		await verify(store);
		for (const [, hours, steady, boot = '', proven, sent] of times.matchAll(
			/(-?\d+) (\d+)(\w) (-?\d+)( \+)?/g,
		)) {
			const now = noon + Number(hours) * hour;
			if (sent) await send(store, ['ann@example.org'], { now });
			await proveTime(sql, { now, steady: Number(steady) * hour, boot });
			expect((await provenTime(sql, now)) - noon).toBe(Number(proven) * hour);
		}
	});
});

describe('a planned campaign', () => {
	const leasedAt = async (looks: readonly [clock: Micros, steady: Micros][], scoped = false) => {
		const path = join(await mkdtemp(join(tmpdir(), 'mailctl-ahead-')), 'news.db');
		const machine = { now: noon, steady: hour };
		const clock = { now: () => machine.now, steady: () => machine.steady };
		const command = campaignOf('job');
		const timing = { starts_at: noon + day, window: null, time_zone: 'UTC' };
		let leased = 0;
		for (const [now, steady] of [[noon, hour] as const, ...looks]) {
			Object.assign(machine, { now, steady });
			const store = await openStore(path, { clock, mode: 'create', eventDelayMs: 0 });
			if (now === noon) {
				await verify(store);
				await store.writes.openCampaign({ ...command, timing });
				await put(store, command.id, 0, ['ann@example.org']);
				await store.writes.completeCampaign({ campaign: command.id, position: 1 });
				await store.writes.releaseCampaign({ campaign: command.id, expect_count: 1, now });
			}
			const scope = scoped ? { campaign: command.id } : null;
			leased = (await store.queue.lease({ owner: 'w', now, until: now + hour, max: 9, scope })).length;
			await store.close();
		}
		return leased;
	};
	it.each([
		['does not start with a clock that is 400 days ahead', [[noon + 400 * day, hour]], false, 0],
		['starts if a person names it', [[noon + 400 * day, hour]], true, 1],
		['starts after a machine was off for three weeks', [[noon + 21 * day, hour]], false, 1],
		['starts if a machine has run all the time', [[noon + 400 * day, 400 * day + hour]], false, 1],
	] as const)('%s', async (_, looks, isScoped, count) => {
		expect(
			await leasedAt(
				looks.map(([now, steady]) => [now, steady]),
				isScoped,
			),
		).toBe(count);
	});
});

describe('a store that is opened with a clock two days ahead', () => {
	it('keeps idempotency keys, so a repeated call creates no second message', async () => {
		const path = join(await mkdtemp(join(tmpdir(), 'mailctl-ahead-')), 'news.db');
		const machine = { now: noon, steady: hour };
		const clock = { now: () => machine.now, steady: () => machine.steady };
		const submission = submissionOf(['ann@example.org']);
		const call = (store: Store) =>
			store.writes.acceptSubmission({
				...{ ...submission, now: machine.now },
				key: { scope: 't', key: 'k', fingerprint: 'f' },
			});
		const at = async (step: Micros, passed: Micros) => {
			machine.now += step + passed;
			machine.steady += passed;
			const store = await openStore(path, { clock, mode: 'create', eventDelayMs: 0 });
			if (step === 0 && passed === 0) await verify(store);
			const { kind } = await call(store);
			await store.close();
			return kind;
		};
		expect(await at(0, 0)).toBe('accepted');
		expect(await at(2 * day, hour)).toBe('replayed');
		expect(await at(-2 * day, hour)).toBe('replayed');
	});
});
