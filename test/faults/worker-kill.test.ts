/**
 * The worker is killed at many moments and started again until everything is sent. The witness is a sink outside its
 * process: every message arrives, and a kill repeats at most what was sent but not recorded.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { openStore } from '../../src/store/open.js';
import { createQueuedDatabase } from '../support/queued-database.js';
import { messageIdIn, startSmtpSink } from '../support/smtp-sink.js';

const hasStrace = spawnSync('strace', ['-V']).status === 0;
const kills = Number(process.env['MAILCTL_KILLS'] ?? 24);
/** 100 outcomes not recorded and 5 conversations in flight. */
const window = 105;
// Beside node_modules, so that the program finds its packages.
const folder = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
const program = `${folder}worker-program-${process.pid}.mjs`;

beforeAll(async () => {
	mkdirSync(folder, { recursive: true });
	const entry = fileURLToPath(new URL('../support/worker-program.ts', import.meta.url));
	await build({
		entryPoints: [entry],
		outfile: program,
		bundle: true,
		platform: 'node',
		format: 'esm',
		packages: 'external',
		logLevel: 'error',
	});
});

/** `null` = runs to its end. */
function runWorker(args: string[], killAt: { calls: string; when: number } | null): Promise<number | null> {
	const trace =
		killAt === null
			? []
			: [
					'-f',
					'-qq',
					'-o',
					'/dev/null',

					'-e',
					`trace=${killAt.calls}`,
					'-e',
					`inject=${killAt.calls}:signal=KILL:when=${killAt.when}`,
				];
	const [command = '', ...rest] =
		killAt === null
			? [process.execPath, program, ...args]
			: ['strace', ...trace, process.execPath, program, ...args];
	return new Promise((resolve, reject) => {
		const child = spawn(command, rest, { stdio: ['ignore', 'ignore', 'inherit'] });
		child.on('error', reject);
		child.on('exit', (code) => resolve(code));
	});
}

/** Of those that arrived, how many the database does not know to be sent: these come again. */
async function countForgotten(path: string, arrived: ReadonlySet<string>): Promise<number> {
	const store = await openStore(path, { clock: systemClock, mode: 'existing' });
	const messages = await Promise.all([...arrived].map((id) => store.reads.getMessage({ id })));
	await store.close();
	return messages.filter((found) => found?.message.state !== 'sent').length;
}

it.skipIf(!hasStrace)(
	`sends every message, whatever kills it, and repeats at most ${window} a kill (needs strace)`,
	async () => {
		const sink = await startSmtpSink();
		const { path, ids } = await createQueuedDatabase(kills * 40);
		const forgotten: number[] = [];
		let killed = 0;
		for (let round = 0; round < kills; round += 1) {
			const before = sink.received.length;
			// Writes and syncs of the database; then what goes to the server.
			const calls = round % 2 === 0 ? 'pwrite64,fdatasync,fsync' : 'write,writev,sendto';
			const when = round % 2 === 0 ? 1 + Math.floor(round * 2.5) : 5 + round * 9;
			if ((await runWorker([path, String(sink.port)], { calls, when })) !== 0) killed += 1;
			const arrived = new Set(sink.received.slice(before).map(({ raw }) => messageIdIn(raw).slice(0, 36)));
			forgotten.push(await countForgotten(path, arrived));
		}
		expect(await runWorker([path, String(sink.port)], null)).toBe(0);
		const arrived = new Set(sink.received.map(({ raw }) => messageIdIn(raw)));
		expect(arrived).toEqual(new Set(ids.map((id) => `${id}@example.com`)));
		expect(killed).toBeGreaterThan(kills / 4);
		expect(Math.max(...forgotten)).toBeLessThanOrEqual(window);
		const store = await openStore(path, { clock: systemClock, mode: 'existing' });
		expect(await store.reads.countMessages({ scope: null })).toEqual({ sent: ids.length });
		await store.close();
		await sink.close();
		process.stderr.write(
			`kills ${killed}, messages ${ids.length}, arrivals ${sink.received.length}, forgotten at each kill ${forgotten.join(' ')}\n`,
		);
	},
	600_000,
);
