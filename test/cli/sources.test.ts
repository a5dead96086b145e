// Endless files, files in other encodings, and a HOME that is not a path.
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findPaths } from '../../src/cli/config/config.js';
import { cli } from '../support/cli.js';
import { makeProject } from '../support/project.js';

it.skipIf(!existsSync('/dev/zero'))('mailctl rejects an endless file before memory is full', async () => {
	expect(
		await cli(['--base-url', 'http://127.0.0.1:9', '--token-file', '/dev/zero', 'lists', 'list']),
	).toEqual({
		code: 2,
		stdout: '',
		stderr: 'error: /dev/zero is larger than 64 MiB\n',
	});
});

it.each(['', 'here'])('with HOME "%s" mailctl stores no database in the working directory', (HOME) => {
	expect(findPaths({ HOME }).database).toMatch(/^\//);
});

describe('a file that must be UTF-8', () => {
	const broken = Buffer.from('\xef\xbb\xbfname: x\nreason: J\xf6rg\n', 'latin1');
	const mail = [
		'send',
		'--from',
		'news@example.com',
		'--to',
		'ann@example.com',
		'--subject',
		'S',
		'--dry-run',
	];

	it.each([
		[...mail, '--text-file'],
		[...mail, '--html-file'],
		[...mail, '--markdown-file'],
		[...mail, '--text', 'T', '--context-file'],
		['templates', 'create', '--name', 'T', '--text-file'],
		['apply', '-f'],
		['diff', '-f'],
	])('is rejected with the number of its first invalid line: %s', async (...words) => {
		const project = await makeProject({ smtp: 9 });
		const file = await project.file('broken', broken);
		expect(await project.run([...words, file])).toEqual({
			code: 2,
			stdout: '',
			stderr: `error: ${file} is not UTF-8 text: see line 2\n`,
		});
	});

	it('is rejected if it is UTF-16, but accepted with a UTF-8 byte order mark', async () => {
		const project = await makeProject({ smtp: 9 });
		const wide = await project.file('wide', Buffer.from('\ufeffHello\n', 'utf16le'));
		expect((await project.run([...mail, '--text-file', wide])).stderr).toBe(
			`error: ${wide} is UTF-16: save it as UTF-8\n`,
		);
		const marked = await project.file('marked', '\ufeffHello\n');
		expect(await project.json([...mail, '--text-file', marked])).toMatchObject({
			send: { text_body: 'Hello\n' },
		});
		const folder = join(project.folder, '.config', 'mailctl');
		await mkdir(folder, { recursive: true });
		const config = join(folder, 'config.json');
		await writeFile(config, broken);
		const refused = await project.run(['lists', 'list']);
		expect(refused.stderr).toContain(`warning: ${config} is not UTF-8 text: see line 2`);
		await writeFile(config, '\ufeff{}');
		expect((await project.run(['lists', 'list'])).code).toBe(0);
	});
});

describe('standard input', () => {
	const mail = ['send', '--from', 'news@example.com', '--subject', 'S'];

	it.each([
		'-',
		'/dev/stdin',
		'/dev/fd/0',
		'/proc/self/fd/0',
	])('cannot be read by two options, even if one of them names it %s', async (name) => {
		const project = await makeProject({ smtp: 9 });
		const both = (one: string, other: string) => ({
			code: 2,
			stdout: '',
			stderr: `error: ${one} and ${other} both read standard input; use a file for one of them\n`,
		});
		const run = (...words: string[]) => project.run(words, { stdin: 'email\nann@example.com\n' });
		expect(await run(...mail, '--csv', '-', '--text-file', name, '-n')).toEqual(both('--text-file', '--csv'));
		expect(await run(...mail, '--csv', name, '--text-file', '-', '-n')).toEqual(both('--text-file', '--csv'));
		expect(await run(...mail, '--to', 'a@example.com', '--text-file', '-', '--html-file', name)).toEqual(
			both('--text-file', '--html-file'),
		);
		expect(await run('send', '--batch', name, '--token-stdin')).toMatchObject({ code: 2 });
	});

	it('is recognized by its path /dev/stdin, and an import from there needs --rejects', async () => {
		const project = await makeProject({ smtp: 9 });
		const stdin = 'email\nann@example.com\n';
		const table = ['--text', 'T', '--csv', '/dev/stdin', '--yes', '--expect-count', '1'];
		const said = await project.run([...mail, ...table, '--no-wait'], { stdin });
		expect(said).toMatchObject({ code: 0, stderr: expect.stringContaining('of standard input\n') });
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		expect(await project.run(['subscribers', 'import', '/dev/stdin', '-l', '1'], { stdin })).toEqual({
			code: 2,
			stdout: '',
			stderr: 'error: an import from standard input needs --rejects FILE\n',
		});
	});
});
