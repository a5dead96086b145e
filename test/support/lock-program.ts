/** Holds a lock until it is killed, as a separate process: `node lock-program.mjs PATH`. Says `held` when it has it. */
import { lockFile } from '../../src/jobs/job-files.js';

const [path = ''] = process.argv.slice(2);
await lockFile(path);
process.stdout.write('held\n');
setInterval(() => undefined, 60_000);
