/**
 * A sender of notifications in a separate process that can be killed: `node sender-program.mjs DATABASE BEGIN SPEED`.
 * Its clock starts at BEGIN, in milliseconds since 1970, and runs SPEED times as fast. It ends on SIGTERM.
 */
import { hostname } from 'node:os';
import { microsPerMs } from '../../src/api/datetime.js';
import { sendNotifications } from '../../src/delivery/notifications/sender.js';
import { openStore } from '../../src/store/open.js';

const [path = '', begin = '0', speed = '1'] = process.argv.slice(2);
const clock = {
	now: () => Math.round((Number(begin) + (Date.now() - Number(begin)) * Number(speed)) * microsPerMs),
};
const store = await openStore(path, { clock, mode: 'existing', role: 'worker' });
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
await sendNotifications(
	{
		writes: store.writes,
		clock,
		owner: `${hostname()}:${process.pid}:x`,
		random: Math.random,
		allowPrivate: async () => true,
		pollMs: 20,
		leaseMs: 600_000,
		onEvent: (event) => process.stderr.write(`${JSON.stringify(event)}\n`),
	},
	{ until: 'stopped', signal: stop.signal },
);
await store.close();
