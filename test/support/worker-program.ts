/**
 * A worker in a separate process that can be killed: `node worker-program.mjs DATABASE PORT [LEASE_MS [MINUTES
 * [POISON]]]`. It ends when all messages are sent. With MINUTES, its clock is that many minutes ahead, and it ends
 * when no message is due. It kills itself while it composes a message that contains POISON.
 */
import { randomUUID } from 'node:crypto';
import { microsPerSecond, systemClock } from '../../src/api/datetime.js';
import { createContentCache } from '../../src/content/cache.js';
import { createWorker } from '../../src/delivery/run.js';
import { SmtpPool } from '../../src/delivery/smtp/pool.js';
import { isPostgres } from '../../src/store/url.js';
import { openThreadedStore } from '../../src/threads/threaded-store.js';
import { plainSettings } from './delivery.js';
import { openAt } from './queued-database.js';
import { readHere } from './read-here.js';

const [path = '', port = '', leaseMs = '400', minutes = '0', poison = ''] = process.argv.slice(2);
const ahead = { now: () => systemClock.now() + Number(minutes) * 60 * microsPerSecond };
const clock = minutes === '0' ? systemClock : ahead;
const opening = { clock, mode: 'existing', role: 'worker' } as const;
const store = isPostgres(path)
	? await openAt(path, opening)
	: await openThreadedStore(path, { ...opening, isOneThread: true, upkeep: 'with_commits' });
const pool = new SmtpPool({ settings: plainSettings(Number(port)) });
const worker = createWorker({
	queue: store.queue,
	reads: store.reads,
	contents: createContentCache({ maxBytes: 10_000_000, askHtml: readHere }),
	pool,
	clock,
	owner: randomUUID(),
	publicUrl: null,
	keyring: null,
	random: Math.random,
	leaseMs: Number(leaseMs),
	returnPath: ({ to }) => {
		if (poison !== '' && to.includes(poison)) process.kill(process.pid, 'SIGKILL');
		return 'news@example.com';
	},
});
const result = await worker.run({ scope: null, until: minutes === '0' ? 'drained' : 'settled' });
pool.close();
await store.close();
process.stdout.write(`${JSON.stringify(result)}\n`);
