import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError, StoreError } from '../../src/api/errors.js';
import { type Command, type CommandGroup, isCommand, loadNode } from '../../src/cli/frame/command.js';
import type { Connect } from '../../src/cli/frame/connection.js';
import { classify } from '../../src/cli/frame/exit.js';
import { globalFlags } from '../../src/cli/frame/globals.js';
import { tree } from '../../src/cli/tree.js';
import { TableError } from '../../src/tables/finding.js';
import { cli, makeHome } from '../support/cli.js';
import { connectTo, someList } from '../support/fake-deployment.js';
import { makeProject } from '../support/project.js';

describe('the command line', () => {
	it.each([
		[['--help', '-o', 'tsv']],
		[['-q', '--help']],
		[['-h', '-o', 'table']],
		[['-p', 'prod', '-h']],
	])('prints its overview for %j', async (argv) => {
		expect(await cli(argv)).toEqual(await cli(['--help']));
	});

	it('prints its version', async () => {
		expect((await cli(['--version'])).stdout).toBe('0.0.0-test\n');
		expect((await cli(['version'])).stdout).toBe('0.0.0-test\n');
		const described = await cli(['version', '--json']);
		expect(JSON.parse(described.stdout).version).toBe('0.0.0-test');
		for (const argv of [
			['--version', '-o', 'json'],
			['--json', '--version'],
		])
			expect(await cli(argv)).toEqual(described);
		expect(await cli(['--version'], { env: { MAILCTL_OUTPUT: 'json' } })).toEqual(described);
		expect((await cli(['--version', '-o', 'ndjson'])).stdout).toMatch(/^\{"version":"0\.0\.0-test",.*\}\n$/);
	});

	it('prints help as text even if MAILCTL_OUTPUT is json', async () => {
		const env = { MAILCTL_OUTPUT: 'json' };
		for (const argv of [['help'], ['--help'], ['help', 'lists'], ['lists', '--help'], ['lists']])
			expect(await cli(argv, { env })).toEqual(await cli(argv));
	});

	it.each([
		[['lits'], 'unknown command "lits"', 'did you mean lists?'],
		[['import'], 'unknown command "import"', 'did you mean subscribers import, suppressions import?'],
		[['show'], 'unknown command "show"', 'did you mean lists get, subscribers get, fields get?'],
		[['audience'], 'unknown command "audience"', 'did you mean lists?'],
		[['broadcast'], 'unknown command "broadcast"', 'did you mean campaigns, send?'],
		[['lists', 'show', '1'], 'unknown command "lists show"', 'did you mean get?'],
		[['completion', 'tcsh'], 'unknown command "completion tcsh"', 'commands: bash, zsh, fish, powershell'],
		[['lists', 'craete'], 'unknown command "lists craete"', 'did you mean create?'],
		[['lists', 'list', '--mtach', 'x'], "unknown option '--mtach'", 'did you mean --match?'],
		[['lists', 'get', '1', '2'], 'unexpected argument "2"', 'mailctl lists get --help'],
		[['lists', 'list', '--limit'], "option '--limit' argument missing", 'mailctl lists list --help'],
		[['lists', 'list', '--yes=1'], "option '--yes' takes no value", null],
		[['lists', 'list', '--limit', 'x'], '--limit: "x" is not a whole number (1 or more)', null],
		[
			['lists', 'list', '-o', 'xml'],
			'unknown output format "xml"',
			'formats: table, wide, tsv, csv, json, ndjson, markdown, name',
		],
		[
			['lists', 'list', '-o', 'lists.csv'],
			'unknown output format "lists.csv"',
			'formats: table, wide, tsv, csv, json, ndjson, markdown, name; "> FILE" writes the output to a file',
		],
		[['--list', '3', 'lists'], "unknown option '--list'", 'put the options of a command after its name'],
		[['--token=opensesame', 'f'], "unknown option '--token'", 'did you mean --token-file or --token-stdin?'],
		[['--tokn-file', 'f', 'lists', 'list'], "unknown option '--tokn-file'", 'did you mean --token-file?'],
		[['lists', 'list', '--timeout', '0s'], '--timeout: "0s" must be more than zero', null],
	] as const)('exits with 2 for %j', async (argv, message, hint) => {
		const { code, stdout, stderr } = await cli(argv, { connect: connectTo([]) });
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(stderr).toBe(`error: ${message}\n${hint === null ? '' : `hint: ${hint}\n`}`);
	});

	it('prints a usage error as one JSON line, even if -o follows the error', async () => {
		const { code, stderr } = await cli(['lists', 'list', '--zzzzzzzz', '-o', 'json']);
		expect(code).toBe(2);
		expect(JSON.parse(stderr)).toEqual({
			error: {
				...{ code: 'usage', exit_code: 2, message: "unknown option '--zzzzzzzz'", http: null },
				...{ details: null, hint: 'mailctl lists list --help', retryable: false },
			},
		});
		expect(stderr.match(/\n/g)).toHaveLength(1);
	});

	it('accepts global options before and after the command', async () => {
		const connect = connectTo([someList(1)]);
		const [before, after] = [
			await cli(['-o', 'name', 'lists', 'list'], { connect }),
			await cli(['lists', 'list', '-oname'], { connect }),
		];
		expect([before.stdout, after.stdout]).toEqual(['List 1\n', 'List 1\n']);
	});

	it('accepts an option’s value that begins with a hyphen but is not an option', async () => {
		const lists = [someList(1)];
		await cli(['lists', 'update', '1', '--name', '-next'], { connect: connectTo(lists) });
		expect(lists[0]?.name).toBe('-next');
	});

	it.each([
		['lists', 'update', '1', '--name', '--quiet'],
		['lists', 'list', '--match', '--limit'],
		['lists', 'list', '--profile', '--all'],
		['send', '--list', '1', '--from', 'a@example.com', '--subject', 's', '--text', '--preview', 'text'],
	])('rejects an option without its value if another option follows (%#)', async (...words) => {
		const { code, stderr } = await cli(words, { connect: connectTo([someList(1)]) });
		expect(code).toBe(2);
		expect(stderr).toMatch(/^error: --[a-z]+ has no value: --[a-z-]+ is an option\n$/);
	});

	it('rejects an option together with its opposite', async () => {
		const words = ['subscribers', 'list', '--inactive', '--list', '1', '--active'];
		const { code, stderr } = await cli(words, { connect: connectTo([someList(1)]) });
		expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("'--inactive'") });
	});

	it('exits with 12 when --deadline passes', async () => {
		const connect: Connect = () => new Promise((_, reject) => setTimeout(() => reject(new Error('cut')), 60));
		const { code, stderr } = await cli(['lists', 'list', '--deadline', '20ms'], { connect });
		expect({ code, stderr }).toEqual({ code: 12, stderr: 'error: out of time: --deadline 20ms\n' });
	});

	it('escapes hostile text in tables and on stderr, but not in JSON', async () => {
		const name = 'a\x1b[2J\u202eb\tc';
		const connect = connectTo([someList(1, { name })]);
		expect((await cli(['lists', 'list', '-o', 'name'], { connect })).stdout).toBe('a\\x1b[2J\\u202eb\\tc\n');
		expect(JSON.parse((await cli(['lists', 'get', '1', '--json'], { connect })).stdout).name).toBe(name);
		const { stderr } = await cli(['lists', 'get', '\x1b[2J'], { connect });
		expect(stderr).toContain('list "\\x1b[2J" not found');
	});
});

describe('a name with line breaks', () => {
	it('cannot add a line to stderr', async () => {
		const { run, json } = await makeProject({ smtp: 1 });
		const name = 'News\nerror: disk failed\nhint: none';
		await json(['lists', 'create', '--name', name, '--email-reason', 'r']);
		await json(['subscribers', 'create', '--list', '1', '--email', 'a@example.com']);
		const mail = [
			...['--from', 'news@example.com', '--subject', 'x', '--text', 'y'],
			...['--yes', '--expect-count', '1', '--no-wait'],
		];
		for (const command of [
			['lists', 'clear', '1', '--dry-run', '-o', 'table'],
			['send', '--list', '1', ...mail],
		]) {
			const { stderr } = await run(command);
			expect(stderr).toContain('News\\nerror: disk failed\\nhint: none');
			expect(stderr).not.toMatch(/^error: disk/m);
		}
	});
});

describe('all commands', () => {
	it('have a summary and do not redefine global flags', async () => {
		for (const { node, path } of await allCommands()) {
			for (const [key, spec] of Object.entries(node.options)) {
				const flag = `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
				expect({
					path,
					flag,
					taken: globalFlags.has(flag) || (spec.short !== undefined && globalFlags.has(`-${spec.short}`)),
				}).toEqual({ path, flag, taken: false });
			}
			expect({ path, summary: node.summary.length > 0 }).toEqual({ path, summary: true });
		}
	});

	it('appear in the output of `mailctl commands`, for example `lists create`', async () => {
		const { stdout } = await cli(['commands', '-o', 'name']);
		expect(stdout.split('\n')).toContain('lists create');
	});
});

async function allCommands(): Promise<{ node: Command; path: string }[]> {
	const walk = (node: Command | CommandGroup, path: string): { node: Command; path: string }[] =>
		isCommand(node)
			? [{ node, path }]
			: [
					...(node.self ? [{ node: node.self, path }] : []),
					...node.commands.flatMap((one) => walk(one, `${path} ${one.name}`)),
				];
	return (await Promise.all(tree.map(loadNode))).flatMap((node) => walk(node, node.name));
}

describe('configuration', () => {
	const seen =
		(targets: unknown[]): Connect =>
		async (target, dependencies) => {
			targets.push(target);
			return connectTo([])(target, dependencies);
		};
	const staging = {
		profile: 'staging',
		profiles: { staging: { baseUrl: 'https://mail.example', output: 'csv' }, other: { db: '/o.db' } },
	};
	const tokens = { staging: { token: 's3cret', origin: 'https://mail.example' } };

	async function home(config: unknown, credentials?: unknown): Promise<string> {
		const folder = await makeHome();
		await mkdir(join(folder, '.config/mailctl'), { recursive: true });
		const text = typeof config === 'string' ? config : JSON.stringify(config);
		await writeFile(join(folder, '.config/mailctl/config.json'), text);
		if (credentials !== undefined)
			await writeFile(join(folder, '.config/mailctl/credentials.json'), JSON.stringify(credentials));
		return folder;
	}

	it.each([
		[[], {}, { kind: 'remote', baseUrl: 'https://mail.example', token: 's3cret' }],
		[['-p', 'other'], {}, { kind: 'local', url: '/o.db', create: false }],
		[
			['--db', '/x.db'],
			{ MAILCTL_PROFILE: 'staging', MAILCTL_BASE_URL: 'http://y' },
			{ kind: 'local', url: '/x.db', create: false },
		],
		[[], { MAILCTL_DB: '/e.db' }, { kind: 'local', url: '/e.db', create: false }],
		[
			['--base-url', 'https://elsewhere.example'],
			{},
			{ kind: 'remote', baseUrl: 'https://elsewhere.example', token: null },
		],
		[
			['--base-url', 'https://elsewhere.example'],
			{ MAILCTL_TOKEN: 't' },
			{ kind: 'remote', baseUrl: 'https://elsewhere.example', token: 't' },
		],
	] as const)('selects the expected database or server for the options %j and the environment %j', async (flags, env, expected) => {
		const HOME = await home(staging, { tokens });
		const targets: unknown[] = [];
		await cli(['lists', 'list', ...flags], { env: { HOME, ...env }, connect: seen(targets) });
		expect(targets).toEqual([expected]);
	});

	it('that is not valid JSON causes an error that does not quote the file', async () => {
		const HOME = await home('{"token": s3cret}');
		const { code, stderr } = await cli(['lists', 'list'], { env: { HOME } });
		expect({ code, stderr }).toEqual({
			code: 78,
			stderr: `error: ${join(HOME, '.config/mailctl/config.json')} is not valid JSON\nhint: correct the file or move it away\n`,
		});
		const { stdout } = await cli(['config', 'path'], { env: { HOME } });
		expect(stdout).toContain(`config\t${join(HOME, '.config/mailctl/config.json')}\n`);
	});

	it('selects the default database in XDG_DATA_HOME if nothing else is set', async () => {
		const targets: unknown[] = [];
		await cli(['lists', 'list'], { env: { XDG_DATA_HOME: '/data' }, connect: seen(targets) });
		expect(targets).toEqual([{ kind: 'local', url: '/data/mailctl/mailctl.db', create: true }]);
	});

	it.each([
		[['--db', 'a', '--base-url', 'http://b'], {}],
		[['--db', 'a', '-p', 'staging'], {}],
		[[], { MAILCTL_DB: 'a', MAILCTL_BASE_URL: 'http://b' }],
		[['-p', 'stagin'], {}],
	] as const)('is rejected if its sources conflict or name an unknown profile: options %j, environment %j', async (flags, env) => {
		const { code } = await cli(['lists', 'list', ...flags], {
			env: { HOME: await home(staging), ...env },
			connect: connectTo([]),
		});
		expect(code).toBe(2);
	});

	it('prefers options, then the environment, then the profile, then defaults', async () => {
		const HOME = await home(staging);
		const source = async (argv: readonly string[], env = {}) => {
			const { stdout } = await cli(
				['config', 'explain', '--json', '--fields', 'key,value,level,source', ...argv],
				{ env: { HOME, ...env } },
			);
			return JSON.parse(stdout).find(({ key }: { key: string }) => key === 'retries');
		};
		expect(await source(['--retries', '1'], { MAILCTL_RETRIES: '2' })).toEqual({
			key: 'retries',
			value: 1,
			level: 'flag',
			source: '--retries',
		});
		expect(await source([], { MAILCTL_RETRIES: '2' })).toEqual({
			key: 'retries',
			value: 2,
			level: 'environment',
			source: 'MAILCTL_RETRIES',
		});
		expect(await source([])).toEqual({ key: 'retries', value: 3, level: 'default', source: null });
		expect((await cli(['lists', 'list'], { env: { HOME }, connect: connectTo([]) })).stdout).toContain(
			'id,name,',
		);
	});

	it('does not change if its file is invalid: config set exits with 78', async () => {
		for (const text of ['{"profiles": ', '[]', '{"profiles": {"a": {"db": 1}}}']) {
			const HOME = await home(text);
			const { code } = await cli(['config', 'set', 'output', 'json'], { env: { HOME } });
			expect({ text, code }).toEqual({ text, code: 78 });
			expect(await readFile(join(HOME, '.config/mailctl/config.json'), 'utf8')).toBe(text);
		}
	});

	it('is written to a file and folder that only the owner can read', async () => {
		const HOME = await home({ profiles: {} });
		await chmod(join(HOME, '.config/mailctl'), 0o755);
		expect((await cli(['config', 'set', 'timeout', '1m'], { env: { HOME } })).code).toBe(0);
		expect((await cli(['config', 'get', 'timeout'], { env: { HOME } })).stdout).toBe('1m\n');
		const modes = await Promise.all(
			['', 'config.json'].map(async (name) =>
				((await stat(join(HOME, '.config/mailctl', name))).mode & 0o777).toString(8),
			),
		);
		expect(modes).toEqual(['700', '600']);
		expect((await cli(['config', 'unset', 'timeout'], { env: { HOME } })).code).toBe(0);
		expect((await cli(['config', 'get', 'timeout'], { env: { HOME } })).code).toBe(3);
	});

	it('is printed by config explain without any token', async () => {
		const HOME = await home(staging, { tokens });
		const { stdout } = await cli(['config', 'explain', '--json'], {
			env: { HOME, MAILCTL_TOKEN: 'alsos3cret' },
		});
		expect(stdout).not.toContain('s3cret');
		expect(stdout).toContain('MAILCTL_TOKEN');
	});
});

describe('the classification of an error', () => {
	it.each([
		[new ApiError('invalid', 'x'), 5],
		[new ApiError('conflict', 'x'), 5],
		[new ApiError('not_authenticated', 'x'), 4],
		[new ApiError('permission_denied', 'x'), 4],
		[new ApiError('not_found', 'x'), 3],
		[new ApiError('network', 'x'), 6],
		[new ApiError('throttled', 'x'), 7],
		[new ApiError('bad_answer', 'x'), 7],
		[new ApiError('unavailable', 'x'), 6],
		[new ApiError('unavailable', 'x', { http: { status: 503, method: 'GET', path: '/' } }), 7],
		[new ApiError('storage_full', 'x'), 74],
		[new ApiError('storage_full', 'x', { http: { status: 507, method: 'GET', path: '/' } }), 7],
		[new TableError('empty', 'x'), 2],
		[new TableError('file_exists', 'x'), 2],
		[new TableError('disk', 'x'), 74],
		[new TableError('disk_full', 'x'), 74],
		[new StoreError('locked', 'x'), 6],
		[new StoreError('disk_full', 'x'), 74],
		[new StoreError('busy_elsewhere', 'x'), 74],
		[new StoreError('not_a_database', 'x'), 74],
		[new StoreError('bad_url', 'x'), 2],
		[new StoreError('moved', 'x'), 74],
		[new StoreError('denied', 'x'), 4],
		[Object.assign(new Error('x'), { code: 'ENOSPC' }), 74],
		[new TypeError('x'), 1],
		['x', 1],
	])('gives %o the exit code %i', (error, exit) => expect(classify(error).exit).toBe(exit));

	it('keeps the hint and the details', () => {
		const error = new TableError('bad_header', 'x', { hint: 'mend it', details: ['two columns'] });
		expect(classify(error)).toMatchObject({ code: 'bad_header', hint: 'mend it', details: ['two columns'] });
	});
});
