/** A campaign's recipients are put by a process that is killed at many moments: nobody is staged twice, nobody is lost. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import {
	asked,
	bundleProgram,
	databaseCalls as calls,
	expectSound,
	hasStrace,
	killAtEach,
	measurePoints,
	runNode,
	spread,
	timeLimit,
} from '../support/fault-points.js';
import { createQueuedDatabase } from '../support/queued-database.js';

const kills = asked('MAILCTL_KILLS', 6);
const program = await bundleProgram('campaign-program');

const starts = Date.parse('2030-11-16T19:00:00Z') * 1000;
const opens = Date.parse('2030-11-17T08:00:00Z') * 1000;

/** Planned whole, and nothing of it is leased before its window opens. */
async function expectPlanned(words: readonly string[]): Promise<void> {
	const { code, stdout, stderr } = await runNode(words, null);
	expect([code, stderr]).toEqual([0, '']);
	const [, path = ''] = words;
	expectSound(path);
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	const id = stdout.trim();
	expect(await store.reads.campaignStatus({ id, now: starts })).toMatchObject({
		state: 'released',
		messages: { queued: 900 },
		counts: { staged: 900, suppressed: 0, rejected: 100 },
		plan: { opens_at: '2030-11-17T08:00:00.000000', is_planned: true },
	});
	const lease = async (now: number) =>
		(await store.queue.lease({ owner: 'w', now, until: now + 60_000_000, max: 5, scope: { campaign: id } }))
			.length;
	expect([await lease(starts), await lease(opens - 1), await lease(opens)]).toEqual([0, 0, 5]);
	await store.close();
}

it.skipIf(!hasStrace)(
	'stages each recipient once, and plans it for its time, whatever kills it (needs strace)',
	async () => {
		const [rows, size] = [1_000, 20];
		const begin = async () => {
			const { path } = await createQueuedDatabase(1);
			return [program, path, String(rows), String(size), String(starts)];
		};
		const { points } = await measurePoints({ calls }, await begin());
		const killed = await killAtEach(spread(points, kills), {
			begin,
			run: (words, kill) => runNode(words, kill),
			check: expectPlanned,
		});
		process.stderr.write(`${killed} kills over ${points.length} calls\n`);
		expect(killed).toBeGreaterThan(kills * 0.8);
	},
	timeLimit,
);
