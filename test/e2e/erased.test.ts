import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isBuilt, programPath, startProgram } from '../support/cli.js';
import { hasStrace } from '../support/fault-points.js';
import { runProgram } from '../support/run-program.js';
import { startSmtpSink } from '../support/smtp-sink.js';

describe.skipIf(!isBuilt)('an erased person', () => {
	it('leaves no trace in the database files after a campaign', async () => {
		const sink = await startSmtpSink();
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-erased-'));
		const run = async (...words: string[]) => {
			const child = startProgram(words, { HOME: folder, MAILCTL_DB: join(folder, 'er.db') }, folder);
			child.stdout.resume();
			expect([words[0], (await once(child, 'close'))[0]]).toEqual([words[0], 0]);
		};
		await run('engine', 'init', '--sender', 'n@example.com', '--smtp', `smtp://127.0.0.1:${sink.port}`);
		await run('lists', 'create', '--name', 'L', '--email-reason', 'y');
		const people = 'email,name\nerasemepls@example.com,Zaphodbb Tester\nother@example.com,O\n';
		writeFileSync(join(folder, 'er.csv'), people);
		await run('subscribers', 'import', 'er.csv', '--list', 'L');
		const mail = [
			'--from',
			'n@example.com',
			'--subject',
			'Hi #name#',
			'--text',
			'Hello #name# #unsubscribe_url#',
		];
		await run('send', ...mail, '--list', 'L', '--yes', '--expect-count', '2');
		await run('subscribers', 'erase', 'erasemepls@example.com', '--confirm', 'erasemepls@example.com');
		await sink.close();
		for (const name of readdirSync(folder).filter((one) => one.startsWith('er.db')))
			for (const trace of ['erasemepls', 'Zaphodbb'])
				expect([name, readFileSync(join(folder, name)).includes(trace)]).toEqual([name, false]);
	});
});

// SQLite writes a commit to its log, and to the database file at the next checkpoint, which fails here.
describe.skipIf(!isBuilt || !hasStrace)('an erasure that cannot overwrite the deleted data', () => {
	const begin = () => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-erased-'));
		const db = join(folder, 'er.db');
		const env = { PATH: process.env['PATH'] ?? '', HOME: folder, TERM: 'dumb', MAILCTL_DB: db };
		const run = (...words: string[]) =>
			runProgram(process.execPath, [programPath, ...words], { env, cwd: folder });
		const failing = (...words: string[]) => {
			const trace = ['-f', '-qq', '-o', '/dev/null', '-P', db, '-e', 'trace=pwrite64'];
			const fault = ['-e', 'inject=pwrite64:error=EIO:when=1+', process.execPath, programPath];
			return runProgram('strace', [...trace, ...fault, ...words], { env, cwd: folder });
		};
		expect(run('engine', 'init', '--sender', 'n@example.com').status).toBe(0);
		const holds = (text: string) =>
			readdirSync(folder)
				.filter((one) => one.startsWith('er.db'))
				.some((name) => readFileSync(join(folder, name)).includes(text));
		return { run, failing, holds };
	};

	it('ends with 74, and overwrites the data when the command runs again', () => {
		const { run, failing, holds } = begin();
		run('lists', 'create', '--name', 'L', '--email-reason', 'y');
		run('subscribers', 'create', '-l', '1', '--email', 'erasemepls@example.com');
		const erase = ['subscribers', 'erase', 'erasemepls@example.com', '--confirm', 'erasemepls@example.com'];
		const { status, stderr } = failing(...erase);
		expect({ status, stderr }).toEqual({
			status: 74,
			stderr: expect.stringMatching(
				/^error: it is done, but deleted data is still in .*er\.db: the disk failed \(SQLITE_IOERR_WRITE\)\nhint: run the command again to overwrite the deleted data\n$/,
			),
		});
		expect(holds('erasemepls')).toBe(true);
		expect(run('subscribers', 'list', '-l', '1').stdout).toBe('');
		expect(run(...erase).status).toBe(0);
		expect(holds('erasemepls')).toBe(false);
	});
});
