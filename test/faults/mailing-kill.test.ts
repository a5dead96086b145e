/** A mailing's recipients are put by a process that is killed at many moments: nobody is staged twice, nobody is lost. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { createQueuedDatabase } from '../support/queued-database.js';

const hasStrace = spawnSync('strace', ['-V']).status === 0;
const kills = Number(process.env['MAILCTL_KILLS'] ?? 12);
const rows = 1_000;
const size = 20;
// Beside node_modules, so that the program finds its packages.
const folder = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
const program = `${folder}mailing-program-${process.pid}.mjs`;

beforeAll(async () => {
	mkdirSync(folder, { recursive: true });
	await build({
		entryPoints: [fileURLToPath(new URL('../support/mailing-program.ts', import.meta.url))],
		outfile: program,
		bundle: true,
		platform: 'node',
		format: 'esm',
		packages: 'external',
		logLevel: 'error',
	});
});

it.skipIf(!hasStrace)(
	'stages each recipient once, whatever kills it (needs strace)',
	async () => {
		const { path } = await createQueuedDatabase(1);
		const words = [process.execPath, program, path, String(rows), String(size)];
		const calls = 'pwrite64,fdatasync,fsync';
		let killed = 0;
		for (let round = 0; round < kills; round += 1) {
			const inject = `inject=${calls}:signal=KILL:when=${3 + round * 7}`;
			const run = spawnSync('strace', ['-f', '-qq', '-o', '/dev/null', '-e', inject, ...words]);
			if (run.status !== 0) killed += 1;
		}
		const last = spawnSync(words[0] ?? '', words.slice(1), { encoding: 'utf8' });
		expect([last.status, last.stderr]).toEqual([0, '']);
		expect(killed).toBeGreaterThan(kills / 4);
		const store = await openStore(path, { clock: systemClock, mode: 'existing' });
		const mailing = last.stdout.trim();
		expect(await store.reads.mailingStatus({ id: mailing })).toMatchObject({
			state: 'staged',
			messages: { staged: 900 },
			counts: { staged: 900, suppressed: 0, rejected: 100 },
		});
		await store.close();
	},
	120_000,
);
