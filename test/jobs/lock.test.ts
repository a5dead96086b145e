import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import Sqlite from 'better-sqlite3';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { lockFile } from '../../src/jobs/job-files.js';
import { bundleProgram } from '../support/fault-points.js';

let program: string;
let path: string;

beforeAll(async () => {
	program = await bundleProgram('lock-program');
});
beforeEach(async () => {
	path = join(await mkdtemp(join(tmpdir(), 'mailctl-lock-')), 'one');
});

describe('locking a file', () => {
	it('fails and names the process that holds the lock, until that process is killed', async () => {
		const child = spawn(process.execPath, [program, path], { stdio: ['ignore', 'pipe', 'inherit'] });
		const exit = once(child, 'exit');
		await once(createInterface({ input: child.stdout }), 'line');
		for (let turn = 0; turn < 2; turn += 1)
			await expect(lockFile(path)).rejects.toMatchObject({
				name: 'JobError',
				code: 'in_use',
				message: `process ${child.pid} on ${hostname()} is working on this job (${path})`,
			});
		child.kill('SIGKILL');
		await exit;
		const lock = await lockFile(path);
		await expect(lockFile(path)).rejects.toMatchObject({
			code: 'in_use',
			message: expect.stringContaining(`process ${process.pid}`),
		});
		await lock.release();
	});

	it('waits if the lock’s holder left no process id', async () => {
		const leaving = new Sqlite(`${path}.lock`);
		leaving.exec('BEGIN EXCLUSIVE');
		setTimeout(() => leaving.close(), 400);
		await (await lockFile(path)).release();
		expect(leaving.open).toBe(false);
	});
});
