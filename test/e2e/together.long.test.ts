import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, programPath } from '../support/cli.js';
import { describeDatabases } from '../support/databases.js';
import { ended } from '../support/fault-points.js';

function workplace(db?: string) {
	const folder = mkdtempSync(join(tmpdir(), 'mailctl-together-'));
	const env = {
		PATH: process.env['PATH'] ?? '',
		HOME: folder,
		TERM: 'dumb',
		MAILCTL_DB: db ?? join(folder, 'news.db'),
	};
	const start = (...argv: string[]) =>
		spawn(process.execPath, [programPath, ...argv], { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
	const run = (...argv: string[]) => ended(start(...argv));
	const json = async (...argv: string[]): Promise<unknown> => {
		const { code, stdout, stderr } = await cli([...argv, '-o', 'json'], { env });
		if (code !== 0) throw new Error(`${argv.join(' ')} ended with ${code}: ${stderr}`);
		return JSON.parse(stdout);
	};
	return { folder, env, start, run, json };
}

function peopleFile(folder: string, name: string, count: number): string {
	const rows = Array.from({ length: count }, (_, at) => `${name}${at}@example.com,Person ${at}`);
	const path = join(folder, `${name}.csv`);
	writeFileSync(path, `email,name\n${rows.join('\n')}\n`);
	return path;
}

describeDatabases('a shared database', ({ kind, create }) => {
	const rows = kind === 'SQLite' ? 20_000 : 4_000;
	it('loses no row if several commands write at the same time', async () => {
		const { folder, run, json } = workplace(await create());
		await json('engine', 'init');
		await json('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
		await json('fields', 'create', '--variable', 'city', '--name', 'City');
		const creates = Array.from({ length: 6 }, (_, at) =>
			run('subscribers', 'create', '-l', '1', '--email', `single${at}@example.com`, '-q'),
		);
		const done = await Promise.all([
			run('subscribers', 'import', peopleFile(folder, 'one', rows), '-l', '1', '-q', '--batch-size', '500'),
			run('subscribers', 'import', peopleFile(folder, 'two', rows), '-l', '1', '-q', '--batch-size', '500'),
			...creates,
		]);
		expect(done.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
			done.map(() => ({ code: 0, stderr: '' })),
		);
		expect(await json('lists', 'get', '1', '--fields', 'active_subscribers_count')).toEqual({
			active_subscribers_count: 2 * rows + 6,
		});
	});

	it('is created once by simultaneous init commands, with one sender', async () => {
		const { run, json } = workplace(await create());
		const all = await Promise.all(
			[1, 2, 3, 4].map(() => run('engine', 'init', '-q', '--sender', 'news@example.com')),
		);
		expect(all.map(({ code, stderr }) => [code, stderr])).toEqual([1, 2, 3, 4].map(() => [0, '']));
		expect(await json('senders', 'list')).toHaveLength(1);
		expect(await json('lists', 'list')).toEqual([]);
	});
});

describe('files that mailctl creates', () => {
	it('are private, whatever the umask', async () => {
		const { folder, env } = workplace();
		const script =
			'umask 000; "$NODE" "$P" lists create --name L --email-reason r -q && "$NODE" "$P" config set output json';
		const { MAILCTL_DB: _, ...rest } = env;
		const child = spawn('bash', ['-c', script], { env: { ...rest, NODE: process.execPath, P: programPath } });
		expect((await ended(child)).code).toBe(0);
		const found = modesUnder(folder);
		expect(found.filter(({ path }) => /\.db|config\.json/.test(path)).length).toBeGreaterThan(1);
		expect(found.filter(({ isFolder, mode }) => !isFolder && mode !== 0o600)).toEqual([]);
		expect(
			found.filter(({ isFolder, mode, path }) => isFolder && /mailctl$/.test(path) && mode !== 0o700),
		).toEqual([]);
	});
});

function modesUnder(folder: string): { path: string; mode: number; isFolder: boolean }[] {
	return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => {
		const found = statSync(join(folder, path));
		return { path, mode: found.mode & 0o777, isFolder: found.isDirectory() };
	});
}
