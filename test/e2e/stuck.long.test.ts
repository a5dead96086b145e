/** A program whose main thread is in SQLite or in a loop cannot handle timers or signals, but still ends. */
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, programPath, startProgram } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { runProgram } from '../support/run-program.js';

/** A JMESPath expression that runs longer than a test may take. */
const endless = Array.from({ length: 9 }).reduce<string>((inner) => `length(map(&${inner}, $))`, '@');

it.skipIf(!isBuilt).each(['SIGINT', 'SIGTERM'] as const)(
	'a command with an endless --query is ended by %s',
	async (signal) => {
		const child = startProgram(['commands', '--query', endless], {
			HOME: mkdtempSync(join(tmpdir(), 'mailctl-')),
		});
		await delay(3_000);
		child.kill(signal);
		expect(await once(child, 'close')).toEqual([null, signal]);
	},
);

it.skipIf(!isBuilt)(
	'a command with an endless --query is ended by its deadline, also with JSON output',
	() => {
		const words = ['commands', '--query', endless, '--deadline', '1s'];
		const { status, stderr } = runProgram(process.execPath, [programPath, ...words, '-o', 'json'], {
			env: {},
		});
		expect(status).toBe(12);
		expect(JSON.parse(stderr).error).toMatchObject({ exit_code: 12, message: 'out of time: --deadline 1s' });
	},
);

describe.skipIf(!isBuilt)('a command in a long SQLite statement', () => {
	it('is ended by SIGTERM at once, and rolled back', async () => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-stuck-'));
		const env = { HOME: folder, MAILCTL_DB: join(folder, 'news.db') };
		const run = async (...argv: string[]) => {
			const child = startProgram(argv, env);
			child.stdout.resume();
			return (await once(child, 'close'))[0];
		};
		expect(await run('engine', 'init', '-q')).toBe(0);
		expect(await run('lists', 'create', '--name', 'Readers', '--email-reason', 'r', '-q')).toBe(0);
		expect(await run('fields', 'create', '--variable', 'city', '--name', 'City', '-q')).toBe(0);
		const db = new Database(env.MAILCTL_DB);
		const count = 600_000;
		db.exec(`
			WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
			INSERT INTO subscribers (list_id, email, email_key, name, is_active, meta, source, created_at)
			SELECT 1, n || '@example.com', (n * 7919 % 600011) || '@example.com', '', 1, '{"city":"Oslo"}', 'API', 0 FROM n`);
		db.exec(`INSERT INTO list_counters VALUES (1, 0, ${count}, 0)`);
		const child = startProgram(['fields', 'update', 'city', '--variable', 'town', '--confirm', 'city'], env);
		await eventually(() => expect(isWriting(db)).toBe(true));
		child.kill('SIGTERM');
		expect(await once(child, 'close')).toEqual([null, 'SIGTERM']);
		const renamed = `SELECT count(*) FROM subscribers WHERE meta LIKE '%town%'`;
		expect(db.prepare(renamed).pluck().get()).toBe(0);
		expect(db.prepare('SELECT variable FROM fields').pluck().all()).toEqual(['city']);
	});
});

describe.skipIf(!isBuilt)('a command that reads a pipe', () => {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-stuck-pipe-'));
	const env = { HOME: folder, MAILCTL_DB: join(folder, 'news.db') };
	const pipe = join(folder, 'pipe');
	const send = ['send', '--from', 'news@example.com', '--subject', 'S'];
	const one = [...send, '--to', 'ann@example.org'];
	const rejects = ['--rejects', join(folder, 'rejects.csv')];
	const others = ['--base-url', 'http://127.0.0.1:9', 'lists', 'list'];
	const commands = [
		[...one, '--text', 'T', '--attach', pipe],
		[...one, '--text-file', pipe],
		[...send, '--text', 'T', '--csv', pipe, '-n'],
		['send', '--batch', pipe, '-n'],
		['subscribers', 'import', pipe, '-l', '1', ...rejects],
		['apply', '-f', pipe],
		['engine', 'bounces', 'ingest', pipe],
		[...others, '--token-file', pipe],
	];
	const ends = async (argv: readonly string[]) => {
		const child = startProgram([...argv, '--deadline', '1s'], env);
		child.stdout.resume();
		let stderr = '';
		child.stderr.on('data', (chunk) => {
			stderr += String(chunk);
		});
		const [code] = await once(child, 'close');
		return { code, stderr: stderr.split('\n').at(-2) };
	};
	const outOfTime = { code: 12, stderr: 'error: out of time: --deadline 1s' };

	beforeAll(async () => {
		runProgram('mkfifo', [pipe]);
		const made = startProgram(
			['engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9', '-q'],
			env,
		);
		expect((await once(made, 'close'))[0]).toBe(0);
		const list = startProgram(['lists', 'create', '--name', 'Readers', '--email-reason', 'r', '-q'], env);
		expect((await once(list, 'close'))[0]).toBe(0);
	});

	it.each(
		commands.map((argv) => ({ argv, named: argv.map((word) => (word === pipe ? 'PIPE' : word)).join(' ') })),
	)('is ended by its deadline if the pipe has no writer: $named (case %#)', async ({ argv }) => {
		expect(await ends(argv)).toEqual(outOfTime);
	});

	it('receives every byte from a writer that comes late', async () => {
		const child = startProgram([...one, '--text-file', pipe, '-n', '--preview', 'text'], env);
		let stdout = '';
		child.stdout.on('data', (chunk) => {
			stdout += String(chunk);
		});
		await writeFile(pipe, 'line\n'.repeat(50_000));
		expect((await once(child, 'close'))[0]).toBe(0);
		expect(stdout.match(/line/g)).toHaveLength(50_000);
	});
});

/** Whether another process holds the write lock. */
function isWriting(db: Database.Database): boolean {
	db.pragma('busy_timeout = 0');
	try {
		db.exec('BEGIN IMMEDIATE; ROLLBACK');
		return false;
	} catch {
		return true;
	}
}
