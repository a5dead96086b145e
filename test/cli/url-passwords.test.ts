// A password in a URL is a secret: commands show it only with --show-secrets or through `api`.
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { cli, makeHome } from '../support/cli.js';
import { makeProject, type Project } from '../support/project.js';

const database = 'postgres://ann:hunter2@127.0.0.1:1/mail';
const database2 = 'postgres://127.0.0.1:1/mail?user=ann&password=hunter2';
const broken = 'postgres://ann:hunter2@127.0.0.1:port/mail';
const misspelt = 'postgre://ann:hunter2@127.0.0.1:1/mail';
const target = 'https://ann:hunter2@hooks.example.com/in';
const hidden = 'https://ann:********@hooks.example.com/in';

describe('a database URL with a password', () => {
	let home: string;
	beforeEach(async () => {
		home = await makeHome();
	});
	const run = (...words: string[]) => cli(words, { env: { HOME: home, TERM: 'dumb' } });

	it.each([
		database,
		database2,
		broken,
	])('is never printed with its password by config and profile commands: %s', async (url) => {
		const calls = [
			['profile', 'add', 'p', '--db', url],
			['config', 'set', 'db', url, '--profile', 'p', '-o', 'json'],
			['config', 'get', 'db', '--profile', 'p', '-o', 'json'],
			['config', 'list', '--profile', 'p'],
			['config', 'explain', '--profile', 'p'],
			['profile', 'list', '-o', 'json'],
			['profile', 'show', 'p'],
			['profile', 'remove', 'p'],
		];
		for (const words of calls) {
			const { stdout, stderr } = await run(...words);
			expect([words, `${stdout}${stderr}`]).toEqual([words, expect.not.stringContaining('hunter2')]);
		}
	});

	it('is shown by config get without its password', async () => {
		await run('profile', 'add', 'p', '--db', database);
		const { stdout } = await run('config', 'get', 'db', '--profile', 'p');
		expect(stdout).toBe('postgres://ann@127.0.0.1:1/mail\n');
	});

	it.each([
		[['login', database]],
		[['lists', 'list', '--base-url', database]],
		[['lists', 'list', '--db', broken, '--debug']],
		[['config', 'set', 'timeout', database]],
		[['lists', database2]],
		[['engine', 'restore', database, '--db', 'x.db']],
		[['lists', 'list', '--db', misspelt]],
		[['config', 'set', 'db', misspelt, '--profile', 'p']],
		[['engine', 'migrate', '--from', 'x.db', '--to', misspelt]],
	])('is not printed with its password if the command fails: %j', async (words) => {
		for (const format of [[], ['-o', 'json']]) {
			const { code, stdout, stderr } = await run(...words, ...format);
			expect([code, stdout]).toEqual([expect.any(Number), '']);
			expect(code).not.toBe(0);
			expect(stderr).not.toContain('hunter2');
			if (format.length > 0)
				expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '')).toHaveProperty('error');
		}
	});
});

describe('a database name that is neither a path nor a PostgreSQL URL', () => {
	const kinds = 'a database is a file, or a URL that begins with postgres://';
	const from = (flag: string, ...words: string[]) => [words, {}, `${flag}: ${kinds}`] as const;

	it.each<readonly [readonly string[], Readonly<Record<string, string>>, string]>([
		from('--db', 'engine', 'init', '--db', 'mysql://x/y'),
		from('--db', 'engine', 'init', '--db', ':memory:'),
		from('--db', 'engine', 'init', '--db', 'file:y.db'),
		from('--db', 'lists', 'list', '--db', 'FILE:///y.db'),
		from('--from', 'engine', 'migrate', '--from', misspelt, '--to', 'y.db'),
		from('--to', 'engine', 'migrate', '--from', 'x.db', '--to', misspelt),
		[['lists', 'list'], { MAILCTL_DB: ':memory:' }, `MAILCTL_DB: ${kinds}`],
		[['lists', 'list'], { MAILCTL_DB: misspelt }, `MAILCTL_DB: ${kinds}`],
		[['lists', 'list'], { MAILCTL_DB: 'postgresql//ann:hunter2@db/mail' }, kinds],
		[['lists', 'list', '--db', misspelt], {}, 'did you mean postgres or postgresql?'],
		[['profile', 'add', 'q', '--db', misspelt], {}, kinds],
		[['config', 'set', 'db', misspelt, '--profile', 'p'], {}, kinds],
		...[
			'host=db.example.com user=ann password=hunter2 dbname=mail',
			'jdbc:postgresql://db/mail?user=ann&password=hunter2',
			'ann:hunter2@db.example.com:5432/mail',
			'mail passwd: hunter2',
			'//ann:1/hunter2@db/mail',
			...['postgres:/', 'pg://'].map((scheme) => `${scheme}ann:hunter2@db/mail`),
		].flatMap((named) => [
			from('--db', 'lists', 'list', '--db', named),
			from('--from', 'engine', 'migrate', '--from', named, '--to', 'y'),
		]),
	])('is rejected instead of being used as a file path: %j', async (words, env, said) => {
		const home = await makeHome();
		await cli(['profile', 'add', 'p', '--db', 'x.db'], { env: { HOME: home } });
		const found = await cli(words, { env: { HOME: home, ...env } });
		expect(found).toMatchObject({ code: 2, stderr: expect.stringContaining(said) });
		expect(found.stderr).not.toContain('hunter2');
		expect(existsSync('mysql:')).toBe(false);
	});

	it.each([
		misspelt,
		"dbname=mail password='hunter2 x'",
		'ann:hunter2@db/mail',
	])('in an old profile is shown without its password, and rejected: %s', async (db) => {
		const home = await makeHome();
		const folder = join(home, '.config/mailctl');
		await mkdir(folder, { recursive: true, mode: 0o700 });
		await writeFile(join(folder, 'config.json'), JSON.stringify({ profiles: { p: { db } } }), {
			mode: 0o600,
		});
		for (const [words, code] of [
			[['lists', 'list', '-p', 'p'], 2],
			[['config', 'list', '-p', 'p'], 0],
			[['profile', 'show', 'p'], 0],
			[['config', 'unset', 'db', '-p', 'p'], 0],
		] as const) {
			const found = await cli(words, { env: { HOME: home } });
			expect([words, found.code, found.stderr]).toEqual([words, code, expect.any(String)]);
			expect(found.stdout + found.stderr).not.toContain('hunter2');
		}
	});
});

describe('the URL of a webhook', () => {
	let project: Project;
	const said = async (...words: string[]) => {
		const { stdout, stderr } = await project.run(words);
		return `${stdout}${stderr}`;
	};
	beforeEach(async () => {
		project = await makeProject();
	});

	it('is printed without its password whatever the command does with it', async () => {
		const create = ['webhooks', 'create', '--url', target, '--type', 'OPENED'];
		const calls = [
			[...create, '-n', '-o', 'json'],
			[...create, '--debug'],
			[...create, '-o', 'json'],
			['webhooks', 'list', '--debug'],
			['webhooks', 'list', '-o', 'csv'],
			['webhooks', 'get', '1', '-o', 'json'],
			['webhooks', 'update', '1', '--url', target, '-n', '-o', 'json'],
			['webhooks', 'update', '1', '--type', 'REDIRECTED', '-o', 'json'],
			['webhooks', 'test', '1', '-o', 'json'],
			['webhooks', 'deliveries', '1', '-o', 'json'],
			['doctor', '-o', 'json'],
			['webhooks', 'delete', '1', '2'],
		];
		for (const words of calls)
			expect([words, await said(...words)]).toEqual([words, expect.not.stringContaining('hunter2')]);
	});

	it('is shown with its password by --show-secrets', async () => {
		await project.run(['webhooks', 'create', '--url', target, '--type', 'OPENED']);
		expect(JSON.parse((await project.run(['webhooks', 'get', '1', '-o', 'json'])).stdout)).toMatchObject({
			url: hidden,
			password: null,
		});
		expect(await said('webhooks', 'get', '1', '--show-secrets')).toContain(target);
		expect(await said('webhooks', 'list', '--show-secrets', '-o', 'json')).toContain(target);
		expect(await said('api', 'GET', '/webhooks/1/')).toContain(target);
	});

	it('has its user and token masked in table and markdown, but not in json and tsv', async () => {
		const url = 'https://S3cretUser@hooks.example.com/in?id=7&token=S3cretToken';
		const masked = 'https://********@hooks.example.com/in?id=7&token=********';
		for (let at = 0; at < 2; at += 1)
			await project.run(['webhooks', 'create', '--url', url, '--type', 'OPENED']);
		const file = join(await mkdtemp(join(tmpdir(), 'mailctl-apply-')), 'mail.yaml');
		await writeFile(file, `webhooks:\n  - url: ${url}9\n    type: OPENED\n`);
		const people = [
			...['table', 'markdown'].flatMap((format) => [
				['webhooks', 'list', '-o', format],
				['webhooks', 'get', '1', '-o', format],
				['webhooks', 'update', '1', '--type', 'OPENED', '-o', format],
				['webhooks', 'create', '--url', url, '--type', 'OPENED', '-n', '-o', format],
				['apply', '-f', file, '-n', '-o', format],
			]),
			['webhooks', 'delete', '1', '-n'],
			['webhooks', 'delete', '1'],
		];
		for (const words of people)
			expect([words, await said(...words)]).toEqual([words, expect.not.stringContaining('S3cret')]);
		const listed = await said('webhooks', 'list', '-o', 'table');
		expect(listed).toContain(masked);
		expect(await said('webhooks', 'list', '--show-secrets', '-o', 'table')).toContain(url);
		for (const format of ['json', 'tsv']) {
			const { stdout, stderr } = await project.run(['webhooks', 'get', '1', '-o', format]);
			expect([format, stdout.includes(url), stderr]).toEqual([format, true, '']);
		}
	});

	it('is never printed with its password by apply, and a second apply changes nothing', async () => {
		const file = join(await mkdtemp(join(tmpdir(), 'mailctl-apply-')), 'mail.yaml');
		await writeFile(file, `webhooks:\n  - url: ${target}\n    type: OPENED\n`);
		for (const words of [['-n'], ['-o', 'json']]) {
			const text = await said('apply', '-f', file, ...words);
			expect([words, text]).toEqual([words, expect.not.stringContaining('hunter2')]);
		}
		expect(await said('apply', '-f', file)).toContain('nothing to change');
		await writeFile(file, 'webhooks: []\n');
		expect(await said('apply', '-f', file, '--prune', '-o', 'json')).not.toContain('hunter2');
	});
});

it.each([
	[2, '--db', ` ${database}`, 'lists', 'list'],
	[2, '--db', 'postgresql:/ann:hunter2@127.0.0.1/mail', 'lists', 'list'],
	[2, '--db', 'postgres://ann:1/hunter2@127.0.0.1:1/mail', 'lists', 'list'],
	[6, '--db', 'postgres://ann@127.0.0.1:1/mail?PASSWORD=hunter2', 'lists', 'list'],
	[2, '--db', 'file://ann:hunter2@127.0.0.1/mail', 'config', 'explain'],
	[2, 'engine', 'backup', database, '--debug'],
])('mailctl exits with an error that hides the password of a malformed database URL: %i %s %s', async (code, ...words) => {
	const { run } = await makeProject();
	const env = { HOME: await makeHome(), TERM: 'dumb' };
	const result = words[0] === '--db' ? await cli(words, { env }) : await run(words);
	expect(result.code, result.stderr).toBe(code);
	expect(result.stdout + result.stderr).not.toContain('hunter2');
});

const secretive = 'S3cretUser@h.example.com/in?id=S3cretId&token=S3cretToken';
const secretiveLocal = `http://S3cretUser:S3cretPass@127.0.0.1/in?id=S3cretId&token=S3cretToken`;

const refused: readonly (readonly string[])[] = [
	['engine', 'settings', 'set', 'public_url', `https://${secretive}`],
	['engine', 'settings', 'set', 'page_logo_url', `https://${secretive}`],
	['engine', 'settings', 'set', 'smtp_url', `smtp://${secretive}`],
	['engine', 'init', '--public-url', `https://${secretive}`],
	['engine', 'init', '--smtp', `smpt://${secretive}`],
	['webhooks', 'create', '--type', 'OPENED', '--url', `ftp://${secretive}`],
	['webhooks', 'create', '--type', 'OPENED', '--url', secretiveLocal],
	['webhooks', 'listen', '--forward-to', `ftp://${secretive}`],
	['api', 'GET', `https://${secretive}`],
	['profile', 'add', 'x', '--base-url', `https://${secretive}`],
	['login', '--base-url', `ftp://${secretive}`, '--no-check'],
];

it.each(
	refused,
)('mailctl prints neither user nor parameters in an error about a URL: %s %s %s %s %s %s', async (...argv) => {
	const { run } = await makeProject();
	for (const more of [[], ['-o', 'json'], ['--debug']]) {
		const { code, stdout, stderr } = await run([...argv, ...more]);
		expect([code === 0, stdout + stderr]).toEqual([false, expect.not.stringContaining('S3cret')]);
	}
});
