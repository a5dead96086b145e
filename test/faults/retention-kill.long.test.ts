/** Retention is killed at any moment: the remaining messages and the summed figures must equal all messages. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { microsPerDay, microsPerSecond, systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import type { TrackedEvent } from '../../src/store/store.js';
import { busy451, campaignOf, recipientOf } from '../contract/store/fixture.js';
import { eventually } from '../support/eventually.js';
import { bundleProgram } from '../support/fault-points.js';
import { createQueuedDatabase } from '../support/queued-database.js';

const program = await bundleProgram('retention-program');
const messages = 1_500;
const reply = { phase: 'answer', code: 250, enhanced: null, text: 'ok' } as const;

it('the figures of a report stay unchanged, however often the deletion of old messages is killed', async () => {
	const { path } = await createQueuedDatabase(messages);
	const now = systemClock.now();
	const before = { clock: systemClock, mode: 'existing' } as const;
	const store = await openStore(path, before);
	const worker = { owner: 'w', until: now + microsPerDay };
	const command = { ...campaignOf('news', { from_key: 'news@example.com', now }), now };
	await store.writes.openCampaign(command);
	const rows = Array.from({ length: messages }, (_, at) => recipientOf(`c${at}@example.net`));
	await store.writes.putCampaignBatch({ campaign: command.id, first: 0, rows, now });
	await store.writes.releaseCampaign({ campaign: command.id, expect_count: messages, now });
	const refused = await store.queue.lease({ ...worker, now, max: 100, scope: { campaign: command.id } });
	await store.queue.settle({
		settlements: refused.map(({ message, fence }) => ({
			...{ message, fence, at: now, outcome: { kind: 'failed', reply: busy451 } as const },
		})),
	});
	for (;;) {
		const leased = await store.queue.lease({
			...{ ...worker, now: now + microsPerSecond, max: 1_000, scope: null },
		});
		if (leased.length === 0) break;
		await store.queue.settle({
			settlements: leased.map(({ message, fence }) => ({
				...{ message, fence, at: now, outcome: { kind: 'sent', reply } as const },
			})),
		});
		const none = { link: null, ip: null, user_agent: null, url: null, smtp_code: null, diagnostic: null };
		await store.writes.recordEvents({
			events: leased.map(
				({ message }): TrackedEvent => ({
					...{ ...none, message, type: 'OPENED', at: now + microsPerSecond, machine: false },
				}),
			),
		});
	}
	await store.writes.putSettings({ values: { keep_messages: '1d' }, now });
	const report = { from: '2000-01-01', to: '2100-01-01', campaign: null, tag: null, human: true };
	const figures = await store.reads.reportFigures(report);
	const look = { id: command.id, now };
	const { replies: _, ...status } = (await store.reads.campaignStatus(look)) ?? { replies: [] };
	await store.close();
	const db = new Database(path);
	onTestFinished(() => void db.close());
	const proven = { at: now + 30 * microsPerDay, boot: '', steady: 0, ahead: 0, agreed: 0 };
	db.prepare(
		"INSERT INTO clock (id, boot, ahead, proven) VALUES (1, '', 0, $1) ON CONFLICT (id) DO UPDATE SET proven = $1",
	).run({ 1: JSON.stringify(proven) });
	const left = () => Number(db.prepare('SELECT count(*) FROM messages').pluck().get());

	let killed = 0;
	for (const share of [0.9, 0.7, 0.5, 0.3, 0]) {
		const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'inherit', 'inherit'] });
		const ended = once(child, 'exit');
		await eventually(() => expect(left()).toBeLessThanOrEqual(2 * messages * share), 30_000);
		if (left() > 0) killed += 1;
		child.kill('SIGKILL');
		await ended;
		const again = await openStore(path, before);
		expect((await again.reads.checkCounts({})).figures).toBe(0);
		expect(await again.reads.reportFigures(report)).toEqual(figures);
		expect(await again.reads.campaignStatus(look)).toMatchObject(status);
		await again.close();
	}
	expect(killed).toBeGreaterThan(1);
	expect(left()).toBe(0);
});
