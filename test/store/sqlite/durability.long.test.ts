/** Counts fsync calls with strace, because SQLite's own counters have been wrong before. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { syncTwin } from '../../../scripts/sync-twin.mjs';
import { isInstalled, runProgram } from '../../support/run-program.js';

const hasStrace = isInstalled('strace');

describe.skipIf(!hasStrace)('a commit (needs strace)', () => {
	let folder: string;
	beforeAll(async () => {
		folder = mkdtempSync(join(process.cwd(), 'node_modules/.cache/durability-'));
		await build({
			entryPoints: [join(import.meta.dirname, 'durability.program.ts')],
			outfile: join(folder, 'program.mjs'),
			bundle: true,
			platform: 'node',
			format: 'esm',
			external: ['better-sqlite3'],
			logLevel: 'error',
			plugins: [syncTwin],
		});
	});
	afterAll(() => rmSync(folder, { recursive: true, force: true }));

	const syncs = (waits: number, together: number, isNew: boolean): number => {
		const place = mkdtempSync(join(tmpdir(), 'mailctl-sync-'));
		const run = (trace: string, times: number) => {
			const program = [join(folder, 'program.mjs'), join(place, 'x.db'), String(times), String(together)];
			const strace = ['-f', '-qq', '-e', 'trace=fsync,fdatasync', '-o', trace, process.execPath, ...program];
			const { status, stderr } = runProgram('strace', strace);
			expect([status, stderr]).toEqual([0, '']);
			return readFileSync(trace, 'utf8')
				.split('\n')
				.filter((line) => line.includes('sync(')).length;
		};
		try {
			if (!isNew) run(join(place, 'first'), 1);
			return run(join(place, 'trace'), waits);
		} finally {
			rmSync(place, { recursive: true, force: true });
		}
	};

	it('waits for the disk once, even in the connection that created the file', () => {
		for (const isNew of [true, false]) expect(syncs(30, 1, isNew) - syncs(10, 1, isNew)).toBe(20);
	});

	it('waits for the disk once for all concurrent writes', () => {
		expect(syncs(10, 50, false) - syncs(10, 1, false)).toBe(0);
	});
});
