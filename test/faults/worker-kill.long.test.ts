/**
 * The worker is killed at many moments and restarted until everything is sent. A sink in the test must get every
 * message, and a kill repeats at most the messages sent but not recorded.
 */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { describeDatabases, expectWhole } from '../support/databases.js';
import {
	asked,
	bundleProgram,
	databaseCalls,
	hasStrace,
	killAtEach,
	measurePoints,
	runNode,
	spread,
	timeLimit,
} from '../support/fault-points.js';
import { createQueuedDatabase, openAt } from '../support/queued-database.js';
import { messageIdIn, type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const kills = asked('MAILCTL_KILLS', 10);
const messages = 400;
/** How many messages a kill may repeat: 100 unrecorded outcomes and 5 messages in flight. */
const window = 105;
const program = await bundleProgram('worker-program');

interface Queue {
	path: string;
	ids: string[];
	sink: SmtpSink;
	starts: number;
}

async function begin(path: string): Promise<Queue> {
	return { ...(await createQueuedDatabase(messages, { path })), sink: await startSmtpSink(), starts: 0 };
}

/** Two minutes pass between two starts, because a message whose worker died while composing waits for one minute. */
function nextStart(queue: Queue): string[] {
	queue.starts += 1;
	return [program, queue.path, String(queue.sink.port), '400', String(2 * queue.starts)];
}

async function countForgotten(path: string, arrived: ReadonlySet<string>): Promise<number> {
	const store = await openAt(path, { clock: systemClock, mode: 'existing' });
	const found = await Promise.all([...arrived].map((id) => store.reads.getMessage({ id })));
	await store.close();
	return found.filter((one) => one?.message.state !== 'sent').length;
}

async function expectSent(queue: Queue): Promise<void> {
	const { path, ids, sink } = queue;
	for (const _ of ['what is due', 'what waited for a minute'])
		expect(await runNode(nextStart(queue), null)).toMatchObject({ code: 0, stderr: '' });
	const arrived = new Set(sink.received.map(({ raw }) => messageIdIn(raw)));
	expect(arrived).toEqual(new Set(ids.map((id) => `${id}@example.com`)));
	await expectWhole(path);
	const store = await openAt(path, { clock: systemClock, mode: 'existing' });
	expect(await store.reads.countMessages({ scope: null })).toEqual({ sent: ids.length });
	await store.close();
	await sink.close();
}

const atConnections = { moment: 'a write to the mail server', calls: 'write,writev,sendto' };
const moments = {
	SQLite: [{ moment: 'a write or sync of the database', calls: databaseCalls }, atConnections],
	PostgreSQL: [atConnections],
};

describeDatabases('a worker', ({ kind, create }) => {
	it.skipIf(!hasStrace).each(moments[kind])(
		`that is killed at $moment sends every message, and repeats at most ${window} per kill (needs strace)`,
		async ({ moment, calls }) => {
			const whole = await begin(await create());
			const { points } = await measurePoints({ calls }, nextStart(whole));
			await expectSent(whole);
			const forgotten: number[] = [];
			const killed = await killAtEach(spread(points, kills / 2), {
				begin: async () => begin(await create()),
				run: async (queue, kill) => {
					const before = queue.sink.received.length;
					const end = await runNode(nextStart(queue), kill);
					const came = queue.sink.received.slice(before).map(({ raw }) => messageIdIn(raw).slice(0, 36));
					forgotten.push(await countForgotten(queue.path, new Set(came)));
					return end;
				},
				check: expectSent,
			});
			process.stderr.write(
				`${killed} kills at ${moment}, ${points.length} calls, at most ${Math.max(...forgotten)} forgotten: ${forgotten.join(' ')}\n`,
			);
			expect(Math.max(...forgotten)).toBeLessThanOrEqual(window);
			expect(killed).toBeGreaterThan(kills * 0.3);
		},
		timeLimit,
	);
});
