/**
 * Appends numbered records to a ledger until it is killed, as a process of its own: `node ledger-program.mjs PATH`. Says
 * each number once it is acknowledged; `held` when it has the ledger.
 */
import { openLedger } from '../../src/jobs/foreign/ledger.js';

const [path = ''] = process.argv.slice(2);
const header = { kind: 'test', version: 1, job: { name: 'program' } };
const ledger = await openLedger(path, { header });
let number = 0;
for await (const record of ledger.records) number = Number(record['n']);
process.stdout.write('held\n');
for (;;) {
	const group = Array.from({ length: 3 }, () => {
		number += 1;
		return number;
	});
	await Promise.all(group.map((n) => ledger.append([{ n, text: 'x'.repeat(n % 300) }])));
	process.stdout.write(`${number}\n`);
}
