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

async function begin(): Promise<string[]> {
	const { path } = await createQueuedDatabase(1);
	const [rows, size] = [1_000, 20];
	return [program, path, String(rows), String(size)];
}

async function expectStaged(words: readonly string[]): Promise<void> {
	const { code, stdout, stderr } = await runNode(words, null);
	expect([code, stderr]).toEqual([0, '']);
	const [, path = ''] = words;
	expectSound(path);
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	expect(await store.reads.campaignStatus({ id: stdout.trim(), now: 0 })).toMatchObject({
		state: 'staged',
		messages: { staged: 900 },
		counts: { staged: 900, suppressed: 0, rejected: 100 },
	});
	await store.close();
}

it.skipIf(!hasStrace)(
	'stages each recipient once, whatever kills it (needs strace)',
	async () => {
		const { points } = await measurePoints({ calls }, await begin());
		const killed = await killAtEach(spread(points, kills), {
			begin,
			run: (words, kill) => runNode(words, kill),
			check: expectStaged,
		});
		process.stderr.write(`${killed} kills over ${points.length} calls\n`);
		expect(killed).toBeGreaterThan(kills * 0.8);
	},
	timeLimit,
);
