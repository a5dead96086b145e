// The default database: commands create it when they need it, and print its path.
import { existsSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, makeHome } from '../support/cli.js';
import { typing } from '../support/typing.js';

describe.each([
	['cannot be read: illegal operation on a directory', (path: string) => mkdir(path, { recursive: true })],
	['is not valid JSON', (path: string) => writeFile(path, '{')],
])('a configuration that %s', (fault, make) => {
	it('makes commands exit with 78; with --db or MAILCTL_DB, they only warn', async () => {
		const HOME = await makeHome();
		const config = join(HOME, '.config/mailctl/config.json');
		await mkdir(dirname(config), { recursive: true });
		await make(config);
		const env = { HOME, MAILCTL_OUTPUT: 'table' };
		const refused = { code: 78, stdout: '', stderr: expect.stringContaining(`error: ${config} ${fault}\n`) };
		expect(await cli(['lists', 'list'], { env })).toEqual(refused);
		const db = join(HOME, 'news.db');
		const warning = `warning: ${config} ${fault}; mailctl ignores the settings in this file\n`;
		const warned = { code: 0, stderr: expect.stringContaining(warning) };
		expect(await cli(['--db', db, 'engine', 'init'], { env })).toMatchObject(warned);
		expect(await cli(['lists', 'list'], { env: { ...env, MAILCTL_DB: db } })).toMatchObject(warned);
		expect(await cli(['config', 'explain'], { env })).toMatchObject(warned);
		const deployment = ['--base-url', 'http://127.0.0.1:9', 'lists', 'list'];
		expect(await cli(deployment, { env: { ...env, MAILCTL_DB: db } })).toMatchObject({ code: 78 });
		for (const words of ['version', 'help', 'help send', 'completion bash', 'completion words .li'])
			expect(await cli(words.split(' '), { env })).toMatchObject({ code: 0, stderr: '' });
		const sink = await cli(['sink', '--port', '0', '--wait', '1ms'], { env });
		expect(sink).toMatchObject({ code: 12, stderr: expect.not.stringContaining(fault) });
	});
});

describe('the default database', () => {
	it('is created by the first command that writes, and only this command prints its path', async () => {
		const HOME = await makeHome();
		const path = join(HOME, '.local/share/mailctl/mailctl.db');
		const first = await cli(['engine', 'queue', 'pause'], { env: { HOME } });
		expect([first.code, first.stderr]).toEqual([0, `created a new database: ${path}\n`]);
		const second = await cli(['engine', 'queue', 'resume'], { env: { HOME } });
		expect([second.code, second.stderr]).toEqual([0, '']);
	});

	it('is created without a message by engine init, and by commands with --quiet', async () => {
		const init = await cli(['engine', 'init']);
		expect(init.stderr).not.toContain('a new database');
		const add = ['fields', 'create', '--variable', 'CITY', '--name', 'City', '--quiet'];
		expect(await cli(add)).toEqual({ code: 0, stdout: '1\n', stderr: '' });
	});

	it.each([
		['lists list', 0],
		['report', 0],
		['campaigns list', 0],
		['lists get 1', 3],
		['lists list --exit-empty', 8],
	])('is not created by mailctl %s, which warns that a missing database counts as empty', async (line, code) => {
		const HOME = await makeHome();
		const run = await cli([...line.split(' '), '--quiet'], { env: { HOME } });
		const path = join(HOME, '.local/share/mailctl/mailctl.db');
		expect(run.code).toBe(code);
		expect(run.stderr).toContain(`warning: no database at ${path}: mailctl assumes an empty database\n`);
		expect(existsSync(join(HOME, '.local'))).toBe(false);
	});

	it.each([
		['campaigns resume', 3],
		['lists clear news --yes', 3],
		['subscribers create --email ann@example.com -l 1', 3],
		['suppressions remove ann@example.com --yes', 3],
		['engine dkim remove --domain example.com --selector m1 --yes', 3],
		['worker --drain', 2],
	])('is not created by mailctl %s, which has nothing to change', async (line, code) => {
		const HOME = await makeHome();
		const run = await cli([...line.split(' '), '--quiet'], { env: { HOME } });
		const path = join(HOME, '.local/share/mailctl/mailctl.db');
		expect(run.stderr).toContain(`warning: no database at ${path}: mailctl assumes an empty database\n`);
		expect([run.code, existsSync(join(HOME, '.local'))]).toEqual([code, false]);
	});

	it('is not created by erasing an address', async () => {
		const HOME = await makeHome();
		const address = 'ann@example.com';
		const run = await cli(['subscribers', 'erase', address, '--confirm', address], { env: { HOME } });
		expect([run.code, run.stdout, existsSync(join(HOME, '.local'))]).toEqual([2, '', false]);
		expect(run.stderr).toMatch(/^error: there is no database at .*mailctl\.db\n/);
		expect(run.stderr).toContain(
			'hint: mailctl engine init creates a database; mailctl login URL uses a service\n',
		);
	});

	it.each([
		'why ann@example.com',
		'smoke',
		'engine backup copy.db',
		'engine check',
	])('must exist for mailctl %s, which otherwise prints the command that creates it', async (line) => {
		const HOME = await makeHome();
		const path = join(HOME, '.local/share/mailctl/mailctl.db');
		expect(await cli(line.split(' '), { env: { HOME } })).toEqual({
			code: 2,
			stdout: '',
			stderr:
				`error: there is no database at ${path}\n` +
				'hint: mailctl engine init creates a database; mailctl login URL uses a service\n',
		});
	});

	it('is read by a running command with --watch after another command creates it', async () => {
		const env = { HOME: await makeHome() };
		let made: Promise<unknown> | null = null;
		const heard = (text: string) => {
			if (text.includes(': mailctl assumes an empty database'))
				made ??= cli(['engine', 'queue', 'pause'], { env });
		};
		const line = ['engine', 'queue', 'stats', '--watch', '1s', '--deadline', '6s'];
		const { stdout } = await cli(line, { env, heard });
		await made;
		expect(stdout).toContain('paused.kind\tmanual');
	});

	it('is created only once if several commands write at the same time', async () => {
		const env = { HOME: await makeHome() };
		const adding = ['a', 'b', 'c'].map((name) =>
			cli(['lists', 'create', '--name', name, '--email-reason', 'r'], { env }),
		);
		const stderr = (await Promise.all(adding)).map((run) => run.stderr).join('');
		expect(stderr.split('created a new database').length).toBe(2);
		expect(JSON.parse((await cli(['lists', 'list', '-o', 'json'], { env })).stdout)).toHaveLength(3);
	});

	it.each([
		['a broken link', 'a symbolic link in its path is broken'],
		['a file in place of a folder', 'not a directory'],
		['a loop of links', 'too many symbolic links encountered'],
	])('is not treated as empty if its path is broken: %s', async (what, reason) => {
		const HOME = await makeHome();
		const folder = join(HOME, '.local/share/mailctl');
		const path = join(folder, 'mailctl.db');
		await mkdir(join(HOME, '.local/share'), { recursive: true });
		if (what === 'a file in place of a folder') await writeFile(folder, '');
		else {
			await mkdir(folder);
			await symlink(what === 'a loop of links' ? path : join(HOME, 'unmounted/mailctl.db'), path);
		}
		for (const line of ['lists list', 'engine queue pause', 'lists delete 1 --yes', 'report -n']) {
			const run = await cli(line.split(' '), { env: { HOME } });
			expect([line, run.code, run.stdout]).toEqual([line, 74, '']);
			expect(run.stderr).toBe(`error: cannot open ${path}: ${reason}\n`);
		}
	});

	it.each([
		['engine settings set', [['Which setting', '\x03', 'all']], 130],
		['lists get', [], 2],
	] as const)('is not created if mailctl %s gets no answer from the user', async (line, answers, code) => {
		const HOME = await makeHome();
		const run = await typing(answers, (options) => cli(line.split(' '), { ...options, env: { HOME } }));
		expect([run.code, run.stderr]).toEqual([code, expect.not.stringContaining('created a new database')]);
		expect(existsSync(join(HOME, '.local/share/mailctl'))).toBe(false);
	});
});
