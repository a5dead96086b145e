import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { cli, programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { asked, hasStrace, timeLimit } from '../support/fault-points.js';
import { runProgram } from '../support/run-program.js';
import { startServing } from '../support/serving.js';

const faults = asked('MAILCTL_FAULTS', 24);

it.skipIf(!hasStrace)(
	'after a failed read, no command says that a sound database is damaged',
	() => {
		const folder = mkdtempSync(join(tmpdir(), 'mailctl-eio-'));
		const env = {
			PATH: process.env['PATH'] ?? '',
			HOME: folder,
			TERM: 'dumb',
			MAILCTL_DB: join(folder, 'news.db'),
		};
		const run = (...words: string[]) =>
			runProgram(process.execPath, [programPath, ...words], { env, cwd: folder });
		run('engine', 'init', '--sender', 'news@example.com');
		run('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
		const rows = Array.from({ length: 4_000 }, (_, at) => `a${at}@example.com,Person ${at}`);
		writeFileSync(join(folder, 'a.csv'), `email,name\n${rows.join('\n')}\n`);
		expect(run('subscribers', 'import', 'a.csv', '--list', 'Readers').status).toBe(0);
		const commands = [
			['subscribers', 'export', '--list', 'Readers', '-'],
			['subscribers', 'create', '--list', 'Readers', '--email'],
			['lists', 'delete', 'Readers', '--confirm', 'Readers', '-n'],
			['doctor', '--only', 'database', '--full'],
			['engine', 'backup', 'copy.db', '--force'],
		];
		const files = ['', '-wal'].flatMap((suffix) => ['-P', `${env.MAILCTL_DB}${suffix}`]);
		let failed = 0;
		for (let round = 0; round < faults; round += 1) {
			const [command = []] = [commands[round % commands.length]];
			const own = command[1] === 'create' ? [...command, `new${round}@example.com`] : command;
			const at = 1 + Math.floor((round / faults) * 45);
			const inject = `inject=pread64:error=EIO:when=${at}${round % 2 === 0 ? '' : '+'}`;
			const trace = ['-f', '-qq', '-o', '/dev/null', ...files, '-e', 'trace=pread64', '-e', inject];
			const { status, stdout, stderr } = runProgram(
				'strace',
				[...trace, process.execPath, programPath, ...own],
				{
					env,
					cwd: folder,
				},
			);
			if (status !== 0) failed += 1;
			const said = `${stdout}${stderr}`;
			expect(
				/restore a backup|is damaged/.test(said) ? `${own.join(' ')} at ${at}: ${said.slice(-600)}` : '',
			).toBe('');
			expect([0, 11, 74, 6], `${own.join(' ')} at ${at}: ${said.slice(-600)}`).toContain(status);
		}
		process.stderr.write(`${faults} failed reads, ${failed} failed commands\n`);
		expect(failed).toBeGreaterThan(faults / 4);
		expect(run('doctor', '--only', 'database', '--full', '--strict').stdout).toContain('sound');
	},
	timeLimit,
);

it.skipIf(!hasStrace)('a server answers 500 if a write fails, and logs SQLite’s error code', async () => {
	const serving = await startServing();
	onTestFinished(() => void serving.stop('SIGKILL'));
	const { process: server, project, url, tokenFile, log } = serving;
	const strace = ['-f', '-o', '/dev/null', '-P', `${project.db}-wal`, '-e', 'trace=pwrite64'];
	const fault = ['-e', 'inject=pwrite64:error=EIO', '-p', String(server.pid)];
	const tracer = spawn('strace', [...strace, ...fault], { stdio: ['ignore', 'ignore', 'pipe'] });
	onTestFinished(() => void tracer.kill());
	await Promise.race([once(tracer.stderr, 'data'), once(tracer, 'exit')]);
	const create = { method: 'POST', headers: { 'Content-Type': 'application/json' } };
	const answer = await eventually(async () => {
		const body = JSON.stringify({ name: 'Readers', email_reason: 'r' });
		const found = await serving.fetch('/sub/lists/', { ...create, body });
		expect(found.status).toBe(500);
		return found;
	});
	expect(answer.headers.get('x-error-code')).toBe('storage_failed');
	expect(await answer.json()).toEqual({ detail: 'The disk of the service failed.' });
	expect(log()).toContainEqual(
		expect.objectContaining({ level: 'error', error: expect.stringContaining('SQLITE_IOERR_WRITE') }),
	);
	const remote = ['--base-url', url, '--token-file', tokenFile, '-o', 'json'];
	const list = ['lists', 'create', '--name', 'Readers', '--email-reason', 'r'];
	const { code, stderr } = await cli([...remote, ...list]);
	expect({ code, error: JSON.parse(stderr).error }).toMatchObject({
		code: 7,
		error: {
			code: 'storage_failed',
			message: 'the record may have been created: The service answered 500: The disk of the service failed.',
			http: { status: 500 },
		},
	});
});
