/**
 * Deletes expired data in a separate process that can be killed: `node retention-program.mjs DATABASE`. Its clock is a
 * month ahead.
 */
import { microsPerDay, systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';

const clock = { now: () => systemClock.now() + 30 * microsPerDay };
const store = await openStore(process.argv[2] ?? '', { clock, mode: 'existing', role: 'worker' });
setInterval(() => store.reads.getSettings(), 1_000);
