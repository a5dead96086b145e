import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/api/errors.js';
import type { Connect, Target } from '../../../src/cli/frame/connection.js';
import { type CliOptions, cli, makeHome } from '../../support/cli.js';
import { connectTo } from '../../support/fake-deployment.js';
import { said } from '../../support/project.js';

const url = 'https://mail.example.com';
const folderOf = (home: string) => join(home, '.config/mailctl');

async function homeWith(config: unknown = null, credentials: unknown = null): Promise<string> {
	const home = await makeHome();
	await mkdir(folderOf(home), { recursive: true });
	const write = (name: string, content: unknown) =>
		writeFile(join(folderOf(home), name), typeof content === 'string' ? content : JSON.stringify(content));
	if (config !== null) await write('config.json', config);
	if (credentials !== null) await write('credentials.json', credentials);
	return home;
}

async function readFileOf(home: string, name: string): Promise<unknown> {
	return JSON.parse(await readFile(join(folderOf(home), name), 'utf8'));
}

/** A server that accepts the token `good` and records the URLs of its requests. */
function deployment(
	targets: Target[] = [],
	refusal: ApiError = new ApiError('not_authenticated', 'Invalid token.'),
) {
	const connect: Connect = async (target, dependencies) => {
		targets.push(target);
		const connection = await connectTo([])(target, dependencies);
		const { lists, ...rest } = connection.api;
		const page: typeof lists.page = async (request) => {
			if (target.kind === 'remote' && target.token !== 'good') throw refusal;
			return lists.page(request);
		};
		const capabilities = async () => ({ service: 'mailctl' as const, idempotentSend: true, ext: {} });
		return { ...connection, api: { ...rest, lists: { ...lists, page }, capabilities } };
	};
	return connect;
}

const run = (home: string, argv: readonly string[], options: CliOptions = {}) =>
	cli(argv, { connect: deployment(), ...options, env: { HOME: home, ...options.env } });

describe('mailctl login', () => {
	const words = ['login', '--profile', 'prod', '--base-url', url, '--token-stdin'];

	it('stores base URL and token in two private files, and makes the first profile the default', async () => {
		const home = await makeHome();
		const { code, stdout } = await run(home, [...words, '-o', 'json'], { stdin: 'good\n' });
		expect({ code, document: JSON.parse(stdout) }).toEqual({
			code: 0,
			document: { profile: 'prod', base_url: url, service: 'mailctl', is_default: true, checked: true },
		});
		expect(await readFileOf(home, 'config.json')).toEqual({
			profile: 'prod',
			profiles: { prod: { baseUrl: url } },
		});
		expect(await readFileOf(home, 'credentials.json')).toEqual({
			tokens: { prod: { token: 'good', origin: url } },
		});
		const modes = ['', 'config.json', 'credentials.json'].map(async (name) =>
			((await stat(join(folderOf(home), name))).mode & 0o777).toString(8),
		);
		expect(await Promise.all(modes)).toEqual(['700', '600', '600']);
		expect((await readdir(folderOf(home))).sort()).toEqual(['config.json', 'credentials.json']);
		const targets: Target[] = [];
		await run(home, ['lists', 'list'], { connect: deployment(targets) });
		expect(targets).toEqual([{ kind: 'remote', baseUrl: url, token: 'good' }]);
	});

	it('keeps an existing default database as the default target', async () => {
		const home = await makeHome();
		await mkdir(join(home, '.local/share/mailctl'), { recursive: true });
		await writeFile(join(home, '.local/share/mailctl/mailctl.db'), '');
		const { code, stdout, stderr } = await run(home, [...words, '-o', 'json'], { stdin: 'good\n' });
		expect([code, JSON.parse(stdout)]).toMatchObject([0, { is_default: false }]);
		expect(stderr).toContain('mailctl profile use prod');
	});

	it('makes its profile the default if no earlier command created a database', async () => {
		const login = ['login', '--base-url', url, '--token-stdin', '--no-check', '-o', 'json'];
		const signedIn = async (first: readonly string[]) => {
			const env = { HOME: await makeHome() };
			await cli(first, { env });
			return JSON.parse((await cli(login, { env, stdin: 'good' })).stdout);
		};
		expect(await signedIn(['lists', 'list'])).toMatchObject({ is_default: true });
		for (const line of ['engine init', 'engine queue pause', 'lists create --name A --email-reason r'])
			expect({ line, ...(await signedIn(line.split(' '))) }).toMatchObject({ line, is_default: false });
	});

	it('accepts the base URL as an argument or with --base-url, but not both', async () => {
		const home = await makeHome();
		expect((await run(home, ['login', url, '--token-stdin'], { stdin: 'good' })).code).toBe(0);
		expect(await readFileOf(home, 'config.json')).toMatchObject({
			profiles: { 'mail.example.com': { baseUrl: url } },
		});
		expect(await run(home, ['login', url, '--base-url', url])).toMatchObject({
			code: 2,
			stderr: 'error: use either <url> or --base-url, not both\n',
		});
		expect((await run(home, ['login', 'mail.example.com'])).stderr).toBe(
			'error: <url>: "mail.example.com" is not an http or https URL\nhint: such as https://mail.example.com\n',
		);
	});

	it('prints where a refused token came from', async () => {
		const home = await homeWith(
			{ profile: 'prod', profiles: { prod: { baseUrl: url } } },
			{ tokens: { prod: { token: 'old', origin: url } } },
		);
		const file = join(home, 'token.txt');
		await writeFile(file, 'bad');
		const unstored = 'hint: nothing was stored; --no-check stores a token without trying it\n';
		for (const [argv, env, hint] of [
			[['lists', 'list'], {}, 'the token comes from profile prod; replace it: mailctl login --profile prod'],
			[
				['lists', 'list', '--base-url', 'https://b.example.com'],
				{ MAILCTL_TOKEN_FILE: file },
				`the token comes from MAILCTL_TOKEN_FILE: set a valid one`,
			],
			[
				['lists', 'list', '--base-url', 'https://b.example.com'],
				{},
				'set MAILCTL_TOKEN, use --token-file, or run mailctl login',
			],
			[
				['login', '-p', 'prod'],
				{ MAILCTL_TOKEN: 'bad' },
				'the token comes from MAILCTL_TOKEN: set a valid one',
			],
		] as const) {
			const { code, stderr } = await run(home, argv, { env });
			const kept = argv[0] === 'login' ? unstored : '';
			expect([code, stderr]).toEqual([4, `error: Invalid token.\nhint: ${hint}\n${kept}`]);
		}
	});

	it.each([
		['http://[::1]:8080', '1'],
		[`https://${'a'.repeat(60)}.example.com`, `${'a'.repeat(60)}.exa`],
	])('derives the name of the profile from %s', async (baseUrl, name) => {
		const home = await makeHome();
		const { code } = await run(home, ['login', baseUrl, '--token-stdin'], { stdin: 'good' });
		expect([code, await readFileOf(home, 'config.json')]).toMatchObject([
			0,
			{ profiles: { [name]: { baseUrl } } },
		]);
	});

	it('keeps the current default profile unless --use is given', async () => {
		const home = await homeWith({ profile: 'local', profiles: {} });
		await run(home, words, { stdin: 'good' });
		expect(await readFileOf(home, 'config.json')).toMatchObject({ profile: 'local' });
		await run(home, [...words, '--use'], { stdin: 'good' });
		expect(await readFileOf(home, 'config.json')).toMatchObject({ profile: 'prod' });
	});

	it('names the profile after the host, and updates an existing profile of the same server', async () => {
		const home = await makeHome();
		await run(home, ['login', '--base-url', url, '--token-stdin'], { stdin: 'good' });
		expect((await run(home, ['login', '--base-url', url, '--token-stdin'], { stdin: 'good' })).code).toBe(0);
		await run(home, ['profile', 'rename', 'mail.example.com', 'prod']);
		await run(home, ['login', '--base-url', url, '--token-stdin'], { stdin: 'good' });
		expect(await readFileOf(home, 'config.json')).toEqual({
			profile: 'prod',
			profiles: { prod: { baseUrl: url } },
		});
	});

	it.each([
		['a refused token', new ApiError('not_authenticated', 'Invalid token.'), 4],
		['no answer', new ApiError('network', 'connection refused'), 6],
		['an answer of another program', new ApiError('bad_answer', 'HTML'), 7],
		['a URL without lists', new ApiError('not_found', 'Not found.'), 7],
	])('stores nothing after %s', async (_, refusal, exit) => {
		const home = await makeHome();
		const { code, stderr } = await run(home, words, { stdin: 'bad', connect: deployment([], refusal) });
		expect(code).toBe(exit);
		expect(stderr).toContain('nothing was stored');
		expect(stderr).not.toContain('bad\n');
		await expect(stat(folderOf(home))).rejects.toThrow('ENOENT');
	});

	it('stores the token without asking the server if --no-check is given', async () => {
		const home = await makeHome();
		const { code } = await run(home, [...words, '--no-check'], {
			stdin: 'later',
			connect: () => Promise.reject(new Error('must not connect')),
		});
		expect(code).toBe(0);
		expect(await readFileOf(home, 'credentials.json')).toMatchObject({
			tokens: { prod: { token: 'later' } },
		});
	});

	it.each([
		['no token and no terminal', ['login', '--base-url', url]],
		['no base URL', ['login', '--token-stdin']],
		['a password in the URL', ['login', '--base-url', 'https://a:b@mail.example.com', '--token-stdin']],
		['the name of the built-in profile', ['login', '--base-url', url, '-p', 'local', '--token-stdin']],
		['a local database', ['login', '--db', 'x.db', '--token-stdin']],
	])('exits with 2 for %s', async (_, argv) => {
		const home = await makeHome();
		expect((await run(home, argv, { stdin: 'good' })).code).toBe(2);
		await expect(stat(folderOf(home))).rejects.toThrow('ENOENT');
	});

	it('asks for base URL and token, and hides the token', async () => {
		const home = await makeHome();
		const { code, stderr } = await typed(
			home,
			['login'],
			[
				['Base URL', url],
				['API token', 'good'],
			],
		);
		expect(code).toBe(0);
		expect(stderr).toContain('API token for https://mail.example.com:');
		expect(stderr).not.toContain('good');
		expect(await readFileOf(home, 'credentials.json')).toMatchObject({
			tokens: { 'mail.example.com': { token: 'good' } },
		});
	});

	it('removes other users’ access to its files', async () => {
		const home = await homeWith({ profiles: {} }, { tokens: {} });
		for (const name of ['config.json', 'credentials.json']) await chmod(join(folderOf(home), name), 0o644);
		await run(home, words, { stdin: 'good' });
		for (const name of ['config.json', 'credentials.json'])
			expect(((await stat(join(folderOf(home), name))).mode & 0o777).toString(8)).toBe('600');
	});

	it('leaves corrupt files unchanged and exits with 78', async () => {
		const config = await homeWith('{"profiles": ');
		expect((await run(config, words, { stdin: 'good' })).code).toBe(78);
		expect(await readFile(join(folderOf(config), 'config.json'), 'utf8')).toBe('{"profiles": ');
		for (const text of ['{"tokens": ', '{"tokens": {"prod": {"token": "t"}}}']) {
			const home = await homeWith({ profiles: {} }, text);
			expect((await run(home, words, { stdin: 'good' })).code).toBe(78);
			expect(await readFile(join(folderOf(home), 'credentials.json'), 'utf8')).toBe(text);
		}
	});

	it('loses no profile if several logins run at the same time', async () => {
		const home = await makeHome();
		const names = ['a', 'b', 'c'];
		const done = await Promise.all(
			names.map((name) =>
				run(home, ['login', '-p', name, '--base-url', url, '--token-stdin'], { stdin: 'good' }),
			),
		);
		expect(done.map(({ code }) => code)).toEqual([0, 0, 0]);
		const config = (await readFileOf(home, 'config.json')) as { profiles: object };
		const credentials = (await readFileOf(home, 'credentials.json')) as { tokens: object };
		expect([Object.keys(config.profiles).sort(), Object.keys(credentials.tokens).sort()]).toEqual([
			names,
			names,
		]);
	});
});

describe('the token of a profile', () => {
	const stored = { tokens: { prod: { token: 'good', origin: url } } };

	it('is not sent to another origin', async () => {
		const home = await homeWith({ profiles: { prod: { baseUrl: 'https://evil.example' } } }, stored);
		const targets: Target[] = [];
		const { code, stderr } = await run(home, ['-p', 'prod', 'lists', 'list'], {
			connect: deployment(targets),
		});
		expect({ code, stderr, targets }).toEqual({
			code: 2,
			stderr:
				'error: the token of profile "prod" belongs to https://mail.example.com, not to https://evil.example\n' +
				'hint: mailctl login --profile prod --base-url https://evil.example\n',
			targets: [],
		});
	});

	it('is deleted when the user changes the base URL to another origin', async () => {
		const home = await homeWith({ profiles: { prod: { baseUrl: url } } }, stored);
		await run(home, ['config', 'set', 'baseUrl', `${url}/api`, '-p', 'prod']);
		expect(await readFileOf(home, 'credentials.json')).toEqual(stored);
		const { stderr } = await run(home, ['config', 'set', 'baseUrl', 'https://other.example', '-p', 'prod']);
		expect(stderr).toContain('removed the token of profile "prod": it was for https://mail.example.com');
		expect(await readFileOf(home, 'credentials.json')).toEqual({ tokens: {} });
	});

	it('is deleted when a new profile with the same name is created', async () => {
		const home = await homeWith({ profiles: {} }, stored);
		await run(home, ['profile', 'add', 'prod', '--base-url', 'https://other.example']);
		expect(await readFileOf(home, 'credentials.json')).toEqual({ tokens: {} });
	});

	it('is removed by logout, which warns if MAILCTL_TOKEN still contains a token', async () => {
		const home = await homeWith({ profile: 'prod', profiles: { prod: { baseUrl: url } } }, stored);
		const { code, stdout, stderr } = await run(home, ['logout', '-o', 'json'], {
			env: { MAILCTL_TOKEN: 't' },
		});
		expect({ code, document: JSON.parse(stdout) }).toEqual({
			code: 0,
			document: { profile: 'prod', removed: true },
		});
		expect(said({ stderr })).toEqual([{ warning: 'MAILCTL_TOKEN is set, and mailctl still uses it' }]);
		expect(await readFileOf(home, 'credentials.json')).toEqual({ tokens: {} });
		const again = await run(home, ['logout', '-o', 'json']);
		expect(JSON.parse(again.stdout)).toEqual({ profile: 'prod', removed: false });
		expect((await run(home, ['logout', '-p', 'nobody'])).code).toBe(2);
	});
});

describe('mailctl profile', () => {
	const config = {
		profile: 'prod',
		profiles: { prod: { baseUrl: url, protected: true }, trial: { db: '/t.db', timeout: '1m' } },
	};
	const credentials = { tokens: { prod: { token: 's3cret', origin: url } } };

	it('lists profiles and marks the default, without tokens', async () => {
		const home = await homeWith(config, credentials);
		const { stdout } = await run(home, ['profile', 'list', '-o', 'json']);
		expect(JSON.parse(stdout)).toEqual([
			{
				name: 'local',
				is_default: false,
				base_url: null,
				db: join(home, '.local/share/mailctl/mailctl.db'),
				token: null,
				protected: false,
			},
			{ name: 'prod', is_default: true, base_url: url, db: null, token: 'set', protected: true },
			{ name: 'trial', is_default: false, base_url: null, db: '/t.db', token: null, protected: false },
		]);
		expect(stdout).not.toContain('s3');
	});

	it('shows a profile with its preferences', async () => {
		const home = await homeWith(config, credentials);
		expect(JSON.parse((await run(home, ['profile', 'show', 'trial', '--json'])).stdout)).toMatchObject({
			name: 'trial',
			timeout: '1m',
			retries: null,
			allowRecipients: null,
		});
		expect(JSON.parse((await run(home, ['profile', 'show', '--json'])).stdout)).toMatchObject({
			name: 'prod',
		});
		const unknown = await run(home, ['profile', 'show', 'trail']);
		expect([unknown.code, unknown.stderr]).toEqual([
			2,
			'error: unknown profile "trail"\nhint: did you mean trial?\n',
		]);
	});

	it('stores the absolute path of a database', async () => {
		const home = await makeHome();
		expect((await run(home, ['profile', 'add', 'p', '--db', 'two.db'])).code).toBe(0);
		expect(await readFileOf(home, 'config.json')).toMatchObject({
			profiles: { p: { db: join(process.cwd(), 'two.db') } },
		});
	});

	it('add --use stores a database path and preferences in a new default profile', async () => {
		const home = await makeHome();
		const words = ['profile', 'add', 'p', '--db', '/p.db', '--protected', '--set', 'retries=5', '--use'];
		words.push('--set', 'time-zone=Europe/Oslo');
		const { code } = await run(home, [...words, '--allow-recipients', '*@example.com']);
		expect(code).toBe(0);
		expect(await readFileOf(home, 'config.json')).toEqual({
			profile: 'p',
			profiles: {
				p: {
					...{ db: '/p.db', retries: 5, protected: true, timeZone: 'Europe/Oslo' },
					allowRecipients: ['*@example.com'],
				},
			},
		});
	});

	it.each([
		[['add', 'x']],
		[['add', 'x', '--db', 'a', '--base-url', url]],
		[['add', 'local', '--db', 'a']],
		[['add', 'a b', '--db', 'a']],
		[['add', 'x', '--db', 'a', '--set', 'timeout=5']],
		[['rename', 'trial', 'prod']],
		[['remove', 'local', '-y']],
		[['remove', 'prod', '-y']],
		[['remove', 'trial']],
	])('rejects %j and changes nothing', async (words) => {
		const home = await homeWith(config, credentials);
		expect((await run(home, ['profile', ...words])).code).toBe(2);
		expect(await readFileOf(home, 'config.json')).toEqual(config);
	});

	it('"rename" keeps the token and the default profile, and requires -y for a protected profile', async () => {
		const home = await homeWith(config, credentials);
		expect((await run(home, ['profile', 'rename', 'prod', 'live'])).code).toBe(2);
		expect((await run(home, ['profile', 'rename', 'prod', 'live', '-y'])).code).toBe(0);
		expect(await readFileOf(home, 'config.json')).toEqual({
			profile: 'live',
			profiles: { live: config.profiles.prod, trial: config.profiles.trial },
		});
		expect(await readFileOf(home, 'credentials.json')).toEqual({ tokens: { live: credentials.tokens.prod } });
	});

	it('"use" changes the default profile, and "rm" removes a profile with its token', async () => {
		const home = await homeWith(config, credentials);
		expect((await run(home, ['profile', 'use', 'local'])).code).toBe(0);
		const { stdout } = await run(home, ['profile', 'rm', 'prod', '-y', '-o', 'json']);
		expect(JSON.parse(stdout)).toEqual({ removed: 'prod' });
		expect(await readFileOf(home, 'config.json')).toEqual({
			profile: 'local',
			profiles: { trial: config.profiles.trial },
		});
		expect(await readFileOf(home, 'credentials.json')).toEqual({ tokens: {} });
	});

	it('"list" warns about a missing default, and other commands exit with 2 until "use" sets a default', async () => {
		const home = await homeWith({ profile: 'gone', profiles: {} });
		const { stderr } = await run(home, ['profile', 'list']);
		expect(stderr).toBe('warning: unknown default profile "gone"\nhint: mailctl profile use NAME\n');
		expect((await run(home, ['lists', 'list'])).code).toBe(2);
		expect((await run(home, ['profile', 'use', 'local'])).code).toBe(0);
		expect((await run(home, ['lists', 'list'])).code).toBe(0);
	});

	it('changes nothing with --dry-run', async () => {
		const home = await homeWith(config, credentials);
		for (const words of [
			['profile', 'add', 'x', '--db', 'a'],
			['profile', 'remove', 'trial'],
			['logout'],
			['login', '-p', 'x', '--base-url', url, '--token-stdin', '--no-check'],
		]) {
			const stdin = 'secret';
			const { code, stdout } = await run(home, [...words, '-n', '-o', 'json'], { stdin });
			expect({ words, code, dry: JSON.parse(stdout).dry_run }).toEqual({ words, code: 0, dry: true });
		}
		expect(await readFileOf(home, 'config.json')).toEqual(config);
		expect(await readFileOf(home, 'credentials.json')).toEqual(credentials);
	});
});

it.each([
	'help',
	'version',
	'completion bash',
	'lists list --help -o json',
])('mailctl %s works despite a broken configuration file or an unknown profile', async (line) => {
	const home = await homeWith('{broken');
	expect(await run(home, line.split(' '))).toMatchObject({ code: 0, stderr: '' });
	const named = { HOME: home, MAILCTL_PROFILE: 'none', MAILCTL_BASE_URL: 'no url' };
	expect(await cli(line.split(' '), { env: named })).toMatchObject({ code: 0, stderr: '' });
});

it.each([
	['retries', '1e3'],
	['output', 'xml'],
	['timeZone', 'Mars/Base'],
])('mailctl config set rejects an invalid value: %s %s', async (key, value) => {
	const home = await makeHome();
	const { code, stderr } = await run(home, ['config', 'set', key, value]);
	expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(key) });
	expect((await run(home, ['config', 'list'])).code).toBe(0);
});

/** Types each answer after its question appears. */
async function typed(home: string, argv: readonly string[], answers: readonly (readonly [string, string])[]) {
	const { typing } = await import('../../support/typing.js');
	return typing(answers, (options) => run(home, argv, options));
}
