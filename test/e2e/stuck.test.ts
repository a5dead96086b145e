/** A program whose main thread is in SQLite or in a loop hears neither timers nor signals; it ends all the same. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import { isBuilt, startProgram } from '../support/cli.js';
import { eventually } from '../support/eventually.js';

const watchdog = join(import.meta.dirname, '../../dist/threads/watchdog.thread.js');

describe.skipIf(!isBuilt)('a process whose main thread does not come back', () => {
	it('is ended by its watchdog, which says why', async () => {
		const workerData = { afterMs: 300, text: 'error: out of time: --deadline 1s\n', signal: 'SIGKILL' };
		const script = `new (require('node:worker_threads').Worker)(${JSON.stringify(watchdog)}, { workerData: ${JSON.stringify(workerData)} });
			process.on('SIGTERM', () => {});
			setTimeout(() => { for (;;); }, 100);`;
		const child = spawn(process.execPath, ['-e', script]);
		let stderr = '';
		child.stderr.on('data', (chunk) => {
			stderr += String(chunk);
		});
		expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
		expect(stderr).toBe('error: out of time: --deadline 1s\n');
	});
});

describe.skipIf(!isBuilt)('a command that is in SQLite for long', () => {
	it('is ended by SIGTERM at once, and what it did is undone', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-stuck-'));
		const env = { HOME: folder, MAILCTL_DB: join(folder, 'news.db') };
		const run = async (...argv: string[]) => {
			const child = startProgram(argv, env);
			child.stdout.resume();
			return (await once(child, 'close'))[0];
		};
		expect(await run('engine', 'init', '-q')).toBe(0);
		expect(await run('lists', 'create', '--name', 'Readers', '--email-reason', 'r', '-q')).toBe(0);
		const db = new Database(env.MAILCTL_DB);
		const count = 600_000;
		db.exec(`
			WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
			INSERT INTO subscribers (list_id, email, email_key, name, is_active, meta, source, created_at)
			SELECT 1, n || '@example.com', (n * 7919 % 600011) || '@example.com', '', 1, '{}', 'API', 0 FROM n`);
		db.exec(`UPDATE lists SET active_count = ${count}`);
		const child = startProgram(['lists', 'clear', '1', '--confirm', 'Readers'], env);
		await eventually(() => expect(isWriting(db)).toBe(true));
		child.kill('SIGTERM');
		expect(await once(child, 'close')).toEqual([null, 'SIGTERM']);
		expect(db.prepare('SELECT count(*) FROM subscribers').pluck().get()).toBe(count);
	});
});

/** Another process holds the write lock. */
function isWriting(db: Database.Database): boolean {
	db.pragma('busy_timeout = 0');
	try {
		db.exec('BEGIN IMMEDIATE; ROLLBACK');
		return false;
	} catch {
		return true;
	}
}
