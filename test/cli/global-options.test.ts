import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { flagOf, takesValue } from '../../src/cli/frame/command.js';
import { globalOptions } from '../../src/cli/frame/globals.js';
import { cli } from '../support/cli.js';
import { allCommands } from '../support/command-tree.js';
import { makeProject } from '../support/project.js';

const commands = await allCommands();
const connect = () => Promise.reject(new Error('nothing is to be opened'));

describe('--fields', () => {
	const changing = commands.filter(({ command }) => command.writes === true);

	it.each(
		changing.map(({ path }) => path),
	)('rejects an unknown field before %s does anything', async (path) => {
		const { code, stderr } = await cli([...path.split(' '), '--fields', 'nosuch'], { connect });
		expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('--fields') });
	});

	it('selects the columns of an exported file, but not the fields of the summary that the command prints', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const ann = ['--email', 'ann@example.com', '--name', 'Ann'];
		await project.json(['subscribers', 'create', '-l', '1', ...ann]);
		await project.json(['suppressions', 'add', 'bob@example.com']);
		const at = (name: string) => join(project.folder, name);
		const subscribers = ['subscribers', 'export', at('a.csv'), '-l', '1', '--fields', 'email,name'];
		const list = { list_id: 1, file: at('a.csv'), format: 'csv', exported: 1 };
		expect(await project.json(subscribers)).toEqual(list);
		const suppressions = ['suppressions', 'export', at('b.csv'), '--fields', 'email'];
		expect(await project.run(suppressions)).toMatchObject({ code: 0 });
		expect(await readFile(at('a.csv'), 'utf8')).toBe('email,name\nann@example.com,Ann\n');
		expect(await readFile(at('b.csv'), 'utf8')).toBe('email\nbob@example.com\n');
		const bare = ['suppressions', 'export', '--fields', 'email', '--no-header'];
		expect((await project.run(bare)).stdout).toBe('bob@example.com\n');
	});

	it('does not change the output of a dry run', async () => {
		const project = await makeProject();
		const list = ['lists', 'create', '--name', 'Readers', '--email-reason', 'r'];
		const named = ['--fields', 'id,name'];
		expect(await project.json([...list, ...named, '--dry-run'])).toMatchObject({ dry_run: true });
		expect(await project.json([...list, ...named])).toEqual({ id: 1, name: 'Readers' });
	});

	it('skips fields that the result does not have', async () => {
		const project = await makeProject();
		const erase = ['subscribers', 'erase', 'ann@example.com', '--confirm', 'ann@example.com'];
		expect(await project.json([...erase, '--fields', 'email,lifted'])).toEqual({ email: 'ann@example.com' });
		expect((await project.run(['version', '--fields', 'version'])).stdout).toBe('0.0.0-test\n');
	});
});

describe('options that select a database or server', () => {
	const remote = [
		['--token-stdin'],
		['--token-file', 'f'],
		['--ca-cert', 'f'],
		['--insecure'],
		['--proxy', 'http://p'],
	];
	const [token, file, ca, insecure, proxy] = remote;
	const db = ['--db', 'x.db'];
	const url = ['--base-url', 'https://mail.example.com'];
	const profile = ['--profile', 'local'];
	const reaches = [token, file, ca, insecure, proxy];

	it.each([
		['profile list', [...reaches, db, url, profile]],
		['profile show', [...reaches, db, url]],
		['profile add x --base-url http://a', [...reaches, profile]],
		['profile remove x', [...reaches, db, url, profile]],
		['logout', [...reaches, db, url]],
		['config list', [...reaches, db, url]],
		['config set timeout 1m', [...reaches, db, url]],
		['config path', [...reaches, db, url, profile]],
		['demo', [...reaches, db, url, profile]],
		['lists list', reaches],
		['doctor', reaches],
	] as const)('are rejected by %s if they would have no effect', async (line, refused) => {
		for (const flag of refused) {
			const words = [...line.split(' '), ...(flag ?? [])];
			const result = await cli(words, { stdin: 'mctl_secret' });
			expect({ words, ...result }).toEqual({
				words,
				code: 2,
				stdout: '',
				stderr: expect.stringMatching(`^error: ${flag?.[0]} `),
			});
		}
	});
});

describe('an option that is given twice', () => {
	const repeated = ['flag', 'tri', 'list', 'choices', 'pairs'];
	const own = commands.map(({ path, command }) => ({
		path,
		flags: Object.entries(command.options).flatMap(([key, { kind }]) =>
			repeated.includes(kind) ? [] : [flagOf(key)],
		),
	}));
	const twice = (flag: string) => ({ code: 2, stdout: '', stderr: `error: ${flag} is given twice\n` });

	it.each(own.filter(({ flags }) => flags.length > 0))('is rejected by $path', async ({ path, flags }) => {
		for (const flag of flags)
			expect(await cli([...path.split(' '), flag, '1', flag, '1'], { connect })).toEqual(twice(flag));
	});

	const valued = Object.entries(globalOptions).flatMap(([key, spec]) =>
		takesValue(spec) ? [flagOf(key)] : [],
	);

	it.each(valued)('is rejected even if one copy precedes the command: %s', async (flag) => {
		const words = ['lists', 'list'];
		expect(await cli([...words, flag, '1', flag, '2'], { connect })).toEqual(twice(flag));
		expect(await cli([flag, '1', ...words, `${flag}=2`], { connect })).toEqual(twice(flag));
	});

	it('is rejected even as -p and --profile, but accepted if it takes no value', async () => {
		expect(await cli(['lists', 'list', '-p', 'a', '--profile', 'b'])).toEqual(twice('--profile'));
		expect(await cli(['-o', 'json', 'lists', 'list', '-o', 'csv'])).toMatchObject({ code: 2 });
		const quiet = ['-q', 'lists', 'list', '-q', '--all', '--all', '--json', '--json'];
		expect(await cli(quiet)).toMatchObject({ code: 0, stdout: '[]\n' });
	});
});

describe('--dry-run', () => {
	it('is rejected by demo, and keeps exports from writing files', async () => {
		const project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const path = join(project.folder, 'a.csv');
		for (const words of [
			['subscribers', 'export', path, '-l', '1'],
			['suppressions', 'export', path],
		]) {
			expect(await project.json([...words, '--dry-run'])).toMatchObject({ dry_run: true });
			await expect(readFile(path)).rejects.toThrow('ENOENT');
		}
		expect(await cli(['demo', '--keep', path, '--dry-run'])).toMatchObject({ code: 2 });
		await expect(readFile(path)).rejects.toThrow('ENOENT');
	});
});
