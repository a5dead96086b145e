/** A worker as a process of its own, to be killed: `node worker-program.mjs DATABASE PORT`. Ends when all is sent. */
import { randomUUID } from 'node:crypto';
import { systemClock } from '../../src/api/datetime.js';
import { createContentCache } from '../../src/content/cache.js';
import { createPool } from '../../src/delivery/pool.js';
import { createWorker } from '../../src/delivery/worker.js';
import { openStore } from '../../src/store/open.js';
import { plainSettings } from './delivery.js';

const [path = '', port = '', leaseMs = '400'] = process.argv.slice(2);
const store = await openStore(path, { clock: systemClock, mode: 'existing', role: 'worker' });
const pool = createPool({ settings: plainSettings(Number(port)) });
const worker = createWorker({
	queue: store.queue,
	reads: store.reads,
	contents: createContentCache({ maxBytes: 10_000_000, inlineCss: async (html) => html }),
	pool,
	clock: systemClock,
	owner: randomUUID(),
	publicUrl: null,
	keyring: null,
	random: Math.random,
	leaseMs: Number(leaseMs),
});
const result = await worker.run({ scope: null, until: 'drained' });
pool.close();
await store.close();
process.stdout.write(`${JSON.stringify(result)}\n`);
