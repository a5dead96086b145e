// `doctor` reports webhooks that get no more notifications, or that have failed for long.
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Clock, type Micros, microsPerSecond, systemClock } from '../../../src/api/datetime.js';
import type { Finding } from '../../../src/cli/doctor/checks.js';
import { openStore } from '../../../src/store/open.js';
import type { DeliveryResult } from '../../../src/store/queue.js';
import { cli } from '../../support/cli.js';
import { createNotifiedDatabase } from '../../support/notified-database.js';

const url = 'https://hooks.example.com/in';
const answer = { status: 500, error: null, answer: '', duration_ms: 3 };

/** Creates three notifications of a webhook: the first call has `result`, the others have `later`. */
async function notified(
	result: DeliveryResult,
	clock: Clock = systemClock,
	later: DeliveryResult = result,
): Promise<string> {
	const { path } = await createNotifiedDatabase(3, [url], clock);
	const store = await openStore(path, { clock, mode: 'existing' });
	const now = clock.now();
	const { deliveries } = await store.writes.leaseDeliveries({
		owner: `here:1:${randomUUID()}`,
		now,
		until: now + 60 * microsPerSecond,
		max: 10,
		each: result.kind === 'gone' ? 1 : 10,
		shares: [],
	});
	const settlements = deliveries.map(({ delivery, fence }, index) => ({
		...{ delivery, fence },
		...(index === 0 ? { at: now, result } : { at: now + microsPerSecond, result: later }),
	}));
	await store.writes.settleDeliveries({ settlements });
	await store.close();
	return path;
}

async function found(db: string): Promise<{ code: number; findings: Finding[] }> {
	const { code, stdout } = await cli(['doctor', '--db', db, '--only', 'webhooks', '-o', 'json']);
	return { code, findings: JSON.parse(stdout) };
}

const ago = (hours: number): Clock => {
	const at: Micros = systemClock.now() - hours * 3_600 * microsPerSecond;
	return { now: () => at };
};

describe('a webhook', () => {
	it('is fine if its target accepts the calls', async () => {
		const db = await notified({ kind: 'delivered', answer: { ...answer, status: 204 } });
		expect((await found(db)).findings).toEqual([
			{ check: 'webhooks.deliveries', level: 'ok', message: '1 webhook without failures', fix: null },
		]);
	});

	it('whose target answered 410 is a problem, and doctor prints the replay command', async () => {
		const db = await notified({ kind: 'gone', answer: { ...answer, status: 410 }, url });
		expect(await found(db)).toEqual({
			code: 11,
			findings: [
				{
					check: 'webhooks.deliveries',
					level: 'problem',
					message: expect.stringMatching(
						/^webhook 1 \(\S+\) answered 410 Gone at .* UTC: 2 notifications waiting$/,
					),
					fix: `mailctl --db ${db} webhooks replay 1 --failed`,
				},
			],
		});
	});

	it('whose deliveries have all failed for a day is a problem, and doctor prints the test command', async () => {
		const db = await notified({ kind: 'failed', answer });
		expect(await found(db)).toMatchObject({
			code: 11,
			findings: [
				{
					level: 'problem',
					message: `webhook 1 (${url}): 3 notifications failed in 24 hours, and none was delivered`,
					fix: `mailctl --db ${db} webhooks test 1`,
				},
			],
		});
	});

	const again = (seconds: number) => ({
		kind: 'again' as const,
		answer,
		due_at: systemClock.now() + seconds * microsPerSecond,
	});

	it.each([
		0, 3, 30,
	])('causes a warning while mailctl still retries a delivery that failed %i hours ago', async (hours) => {
		const db = await notified(again(1_230), ago(hours));
		expect(await found(db)).toMatchObject({
			code: 0,
			findings: [
				{
					level: 'warning',
					message: expect.stringMatching(
						/^webhook 1 \(\S+\) has been failing since \d{4}-\d\d-\d\d \d\d:\d\d UTC: answered 500; mailctl tries again in 20 minutes$/,
					),
					fix: `mailctl --db ${db} webhooks deliveries 1`,
				},
			],
		});
	});

	it('is fine if one call fails and a later call succeeds, unless the first has been failing for over a day', async () => {
		const taken = { kind: 'delivered' as const, answer: { ...answer, status: 204 } };
		expect((await found(await notified(again(0), ago(3), taken))).findings).toMatchObject([{ level: 'ok' }]);
		expect((await found(await notified(again(0), ago(30), taken))).findings).toMatchObject([
			{ level: 'warning', message: expect.stringMatching(/: answered 500; mailctl tries again now$/) },
		]);
	});
});
