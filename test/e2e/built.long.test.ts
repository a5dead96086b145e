import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeApi } from '../../src/http/server/openapi.js';
import { programPath } from '../support/cli.js';
import { startServing } from '../support/serving.js';

const run = promisify(execFile);
/** Node 22.1 and newer has its own compile cache; for Node 20 the build provides compiled code. */
const keepsCompiled = Number.parseInt(process.versions.node, 10) > 20;
let home: string;
beforeAll(async () => {
	home = await mkdtemp(join(tmpdir(), 'mailctl-built-'));
	await mailctl(['engine', 'init', '--sender', 'news@example.com']);
	await mailctl(['lists', 'create', '--name', 'News', '--email-reason', 'r']);
});
afterAll(() => rm(home, { recursive: true }));

const mailctl = async (words: readonly string[], env: Record<string, string> = {}) =>
	(
		await run(process.execPath, [programPath, ...words], {
			cwd: home,
			env: { HOME: home, LANG: 'C.UTF-8', ...env },
		})
	).stdout;

async function install(name: string) {
	const installed = join(home, name);
	const sqlite = join(installed, 'node_modules/better-sqlite3');
	const program = dirname(dirname(programPath));
	for (const part of ['bin', 'dist', 'package.json'])
		await cp(join(program, part), join(installed, part), { recursive: true, preserveTimestamps: true });
	const packages = join(program, 'node_modules');
	await cp(join(packages, 'better-sqlite3'), sqlite, {
		recursive: true,
		filter: (path) => !/better-sqlite3\/(deps|src)$|\/obj/.test(path),
	});
	for (const part of ['bindings', 'file-uri-to-path'])
		await symlink(join(packages, part), join(installed, 'node_modules', part));
	const start = (words: readonly string[], ...options: string[]) =>
		run(process.execPath, [...options, join(installed, 'bin/mailctl.js'), ...words], { env: { HOME: home } });
	return { installed, sqlite, start, list: () => start(['lists', 'list', '-o', 'name']) };
}

it('no command creates a missing home folder, and engine init works without it if --db is given', async () => {
	const HOME = join(home, 'gone');
	const news = ['--db', join(home, 'homeless.db')];
	for (const [words, code] of [
		[['engine', 'init'], 74],
		[['config', 'set', 'output', 'json'], 78],
		[[...news, 'engine', 'init', '--sender', 'news@example.com'], 0],
		[[...news, 'lists', 'create', '--name', 'News', '--email-reason', 'r'], 0],
		[[...news, 'subscribers', 'import', programPath, '-l', 'News'], 2],
		[[...news, 'send', '--from', 'news@example.com', '--to', 'a@example.org', '--text', 'Hi', '-n'], 2],
	] as const) {
		const ended = await mailctl(words, { HOME }).then(
			() => 0,
			(error: { code: number }) => error.code,
		);
		expect([words, ended, existsSync(HOME)]).toEqual([words, code, false]);
	}
});

describe('the built program', () => {
	it('sends 1,000 mails in the demo, and shows one mail', async () => {
		const text = await mailctl(['demo']);
		expect(text).toContain('One of the 1,000 mails that arrived:');
		expect(text).toMatch(/Subject: Good news for \S+/);
		expect(text).toMatch(/sent +1,000/);
		expect(text).toContain('its CSS inlined');
	});

	// Bundling changes the order in which modules run, so a module could read a constant before it is set.
	it('publishes the same OpenAPI document as the sources', async () => {
		const server = await startServing();
		try {
			const answer = await server.fetch('/openapi.json', { token: null });
			expect(await answer.json()).toEqual(describeApi('0.1.0'));
		} finally {
			await server.stop();
		}
	});

	it('uses the JavaScript of the installed better-sqlite3 if the bundled version differs', async () => {
		const { sqlite, list } = await install('another-version');
		const description = JSON.parse(await readFile(join(sqlite, 'package.json'), 'utf8'));
		await writeFile(join(sqlite, 'package.json'), JSON.stringify({ ...description, version: '0.0.1' }));
		const entry = join(sqlite, 'lib/index.js');
		await writeFile(entry, `process.stderr.write('its own');${await readFile(entry, 'utf8')}`);
		expect(await list()).toEqual({ stdout: 'News\n', stderr: 'its own' });
	});

	it('reports that Node.js is too old for the SQLite addon before it loads the addon', async () => {
		const { sqlite, start } = await install('of-a-newer-node');
		const description = JSON.parse(await readFile(join(sqlite, 'package.json'), 'utf8'));
		await writeFile(join(sqlite, 'package.json'), JSON.stringify({ ...description, version: '13.2.0' }));
		await writeFile(join(sqlite, 'lib/index.js'), 'process.abort();');
		const preload = join(home, 'node-api-9.cjs');
		await writeFile(
			preload,
			"Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0', napi: '9' } });",
		);
		for (const words of [['lists', 'list'], ['doctor'], ['engine', 'status'], ['serve', '--port', '0']])
			await expect(start(words, '--require', preload)).rejects.toMatchObject({
				code: 74,
				stderr: expect.stringMatching(
					/SQLite \(better-sqlite3 13\.2\.0\) needs Node-API 10, and Node\.js 20\.19\.0 has 9\b.*reinstall mailctl/s,
				),
			});
	});

	it('explains how to install SQLite if its binary or package is missing', async () => {
		const { sqlite, list } = await install('no-binary');
		const missing = {
			code: 74,
			stderr: expect.stringMatching(
				/^error: SQLite \(better-sqlite3\) is not installed for Node\.js [\d.]+\nhint: npm rebuild better-sqlite3\n$/,
			),
		};
		const files = await readdir(sqlite, { recursive: true });
		for (const file of files) if (file.endsWith('.node')) await rm(join(sqlite, file));
		await expect(list()).rejects.toMatchObject(missing);
		await rm(sqlite, { recursive: true });
		await expect(list()).rejects.toMatchObject(missing);
	});

	it.skipIf(keepsCompiled)(
		'uses the build’s compiled code, but not for a file that changed later',
		async () => {
			const { installed, start } = await install('compiled');
			const preload = join(home, 'refusals.cjs');
			await writeFile(
				preload,
				`const vm = require('node:vm');
			vm.Script = class extends vm.Script {
				constructor(source, options) {
					super(source, options);
					if (this.cachedDataRejected !== false) process.stderr.write(options.filename);
				}
			};`,
			);
			const list = () => start(['lists', 'list', '-o', 'name'], '--require', preload);
			expect(await list()).toEqual({ stdout: 'News\n', stderr: '' });
			const main = join(installed, 'dist/cli/main.js');
			// Keep the length of the source, because V8 itself compares only the length.
			await writeFile(main, (await readFile(main, 'utf8')).replace('"use strict"', '"USE STRICT"'));
			expect(await list()).toEqual({ stdout: 'News\n', stderr: 'dist/cli/main.js' });
		},
	);

	it.runIf(keepsCompiled)('keeps Node.js’s compile cache only in a private folder', async () => {
		await mailctl(['--version']);
		expect(await readdir(join(home, '.cache/mailctl/compiled'))).toHaveLength(1);
		const shared = join(home, 'shared');
		await mkdir(join(shared, 'mailctl/compiled'), { recursive: true });
		await chmod(join(shared, 'mailctl/compiled'), 0o777);
		await mailctl(['--version'], { XDG_CACHE_HOME: shared });
		expect(await readdir(join(shared, 'mailctl/compiled'))).toEqual([]);
		for (const HOME of ['', '/nowhere']) expect(await mailctl(['--version'], { HOME })).toBe('0.1.0\n');
	});

	it.each([
		'20.18.3',
		'22.13.1',
	])('rejects Node %s with exit code 2 and a one-line error', async (version) => {
		const preload = join(home, 'old-node.cjs');
		await writeFile(
			preload,
			`Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`,
		);
		const refused = run(process.execPath, ['--require', preload, programPath, '--version'], {
			env: { HOME: home },
		});
		await expect(refused).rejects.toMatchObject({
			code: 2,
			stdout: '',
			stderr: `error: mailctl needs Node.js 20.19 or 22.14, or newer; this is ${version}\n`,
		});
	});
});
