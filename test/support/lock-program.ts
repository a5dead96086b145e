/** Holds a lock in a process until it is killed: `node lock-program.mjs PATH`. Prints `held` when it has the lock. */
import { lockFile } from '../../src/jobs/job-files.js';

const [path = ''] = process.argv.slice(2);
await lockFile(path);
process.stdout.write('held\n');
setInterval(() => undefined, 60_000);
