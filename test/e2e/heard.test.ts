/** A listing that goes into a file hears its deadline and its signals, though neither the disk nor SQLite makes it wait. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, programPath, startProgram } from '../support/cli.js';
import { eventually } from '../support/eventually.js';

const folder = mkdtempSync(join(tmpdir(), 'mailctl-heard-'));
const env = { PATH: process.env['PATH'] ?? '', HOME: folder, MAILCTL_DB: join(folder, 'news.db') };

const people = 500_000;

describe.skipIf(!isBuilt)('a listing of 500,000 people into a file', () => {
	beforeAll(async () => {
		for (const words of ['engine init -q', 'lists create --name Readers --email-reason r -q'])
			expect(
				await once(
					startProgram(words.split(' '), env).on('error', () => {}),
					'close',
				),
			).toBeDefined();
		new Database(env.MAILCTL_DB).exec(`
			WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${people})
			INSERT INTO subscribers (list_id, email, email_key, name, is_active, meta, source, created_at)
			SELECT 1, n || '@example.com', n || '@example.com', '', 1, '{}', 'API', 0 FROM n;
			INSERT INTO list_counters VALUES (1, 0, ${people}, 0)`);
	});

	const path = join(folder, 'out');
	function start(words: readonly string[]) {
		const out = openSync(path, 'w');
		const child = spawn(process.execPath, [programPath, ...words], { env, stdio: ['ignore', out, 'ignore'] });
		closeSync(out);
		return { child, closed: once(child, 'close') };
	}

	/** Of a listing that is sent the signal when its first rows are there. */
	async function codeAt(signal: NodeJS.Signals, words: readonly string[]): Promise<number | null> {
		const { child, closed } = start(words);
		await eventually(() => expect(statSync(path).size).toBeGreaterThan(0));
		child.kill(signal);
		return (await closed)[0];
	}

	it.each([
		['subscribers', 'list', '-l', '1', '--all', '-o', 'csv'],
		['subscribers', 'list', '-l', '1', '--all', '-o', 'json'],
		['subscribers', 'export', '-l', '1'],
	])('ends at its deadline, and at SIGTERM: %s %s', async (...words) => {
		expect((await start(['--deadline', '100ms', ...words]).closed)[0]).toBe(12);
		let code: number | null = 0;
		// One that was over before the signal came says nothing of it.
		for (let tries = 0; code === 0 && tries < 10; tries++) code = await codeAt('SIGTERM', words);
		expect(code).toBe(143);
	});
});
