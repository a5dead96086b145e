import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../support/cli.js';
import { errorOf, makeProject, type Project } from '../../support/project.js';

let project: Project;
beforeEach(async () => {
	project = await makeProject();
});

describe('smoke on a database', () => {
	it('passes all checks without a server, and leaves no records', async () => {
		const { code, stdout } = await project.run(['smoke', '--full']);
		expect({ code, sum: stdout.trimEnd().split('\n').at(-1) }).toEqual({
			code: 0,
			sum: expect.stringMatching(/^64 checks: 6\d passed, 0 failed, \d skipped; 0 deviations; [\d.]+ s$/),
		});
		expect(await project.json(['lists', 'list'])).toEqual([]);
		expect(await project.json(['fields', 'list'])).toEqual([]);
		expect(await project.json(['webhooks', 'list'])).toEqual([]);
	});

	it('prints one JSON document with -o json', async () => {
		const report = await project.json(['smoke', '--only', 'auth']);
		expect(report).toEqual({
			run: expect.stringMatching(/^\d{8}T\d{6}-[0-9a-f]{6}$/),
			target: project.db,
			started: expect.stringMatching(/^2\d{3}-\d\d-\d\dT[\d:.]+Z$/),
			duration_ms: expect.any(Number),
			checks: ['auth.token', 'auth.wrong', 'auth.none'].map((id) => ({
				id,
				title: expect.any(String),
				group: 'auth',
				outcome: 'pass',
				detail: null,
				duration_ms: expect.any(Number),
			})),
			deviations: [],
			leftovers: [],
			counts: { passed: 3, failed: 0, skipped: 0, deviations: 0, leftovers: 0 },
		});
	});

	it('prints a row for each check in other formats', async () => {
		const { stdout } = await project.run(['smoke', '--only', 'auth', '-o', 'tsv', '--fields', 'id,outcome']);
		expect(stdout).toBe('auth.token\tpass\nauth.wrong\tpass\nauth.none\tpass\n');
	});

	it('accepts --only and --skip several times', async () => {
		const only = (await project.json(['smoke', '--only', 'auth', '--only', 'report'])) as Groups;
		const skip = (await project.json(['smoke', '--skip', 'connection', '--skip', 'subscribers'])) as Groups;
		expect([groupsOf(only), groupsOf(skip)]).toEqual([
			['auth', 'report'],
			['auth', 'lists', 'fields', 'webhooks', 'report'],
		]);
	});

	it.each([
		[['--only', 'list'], '--only: unknown value "list"'],
		[['--only', 'lists', '--skip', 'lists'], '--only and --skip leave no checks'],
		[['--only', 'send'], '--only send needs --send-to and --from'],
		[['--send-to', 'a@example.com'], '--send-to needs --from'],
		[['--from', 'a@example.com'], '--from needs --send-to'],
		[['--send-to', 'nobody', '--from', 'a@example.com'], '--send-to: "nobody" is not an address'],
		[['--cleanup-only', '--full'], 'use --cleanup-only without --full, --only, --skip and --send-to'],
		[
			['--report-file', '/nowhere/at/all.xml'],
			/^\/nowhere\/at\/all\.xml cannot be written: there is no folder/,
		],
		[['--report-file', tmpdir()], `${tmpdir()} is a directory`],
	])('rejects the options %j and runs no check', async (words, message) => {
		const result = await project.run(['smoke', ...words, '-o', 'json']);
		expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 2, stdout: '' });
		const said = errorOf(result)['message'];
		if (typeof message === 'string') expect(said).toBe(message);
		else expect(said).toMatch(message);
	});

	it('lists its checks but runs none with --dry-run', async () => {
		const plan = await project.json(['smoke', '--full', '--only', 'fields', '--dry-run']);
		expect(plan).toMatchObject({
			dry_run: true,
			check: expect.arrayContaining([
				{ id: 'fields.page', group: 'fields', title: expect.any(String), changes: false },
				{ id: 'fields.create', group: 'fields', title: expect.any(String), changes: true },
			]),
		});
		const { code, stdout } = await project.run(['smoke', '-n', '--only', 'auth']);
		expect({ code, stdout }).toEqual({
			code: 0,
			stdout: expect.stringMatching(/^auth\.token +the token is accepted\n/),
		});
	});

	it('with --cleanup-only deletes only the records that earlier runs left', async () => {
		const run = '20261121T081237-3fa9c2';
		for (const name of [`mailctl-smoke-${run}-patched`, 'mailctl-smoke-tests', 'News'])
			await project.json(['lists', 'create', '--name', name, '--email-reason', 'r']);
		const variable = 'mailctl_smoke_20261121t081237_3fa9c2';
		await project.json(['fields', 'create', '--variable', variable, '--name', 'x']);
		await project.json(['fields', 'create', '--variable', 'mailctl_smoke_city', '--name', 'City']);
		const url = `https://mailctl-smoke.invalid/mailctl-smoke-${run}`;
		await project.json(['webhooks', 'create', '--url', url, '--type', 'OPENED']);

		const { checks } = (await project.json(['smoke', '--cleanup-only'])) as { checks: { title: string }[] };
		expect(checks.map(({ title }) => title)).toEqual([
			`list 1 "mailctl-smoke-${run}-patched" is deleted`,
			`field 1 "${variable}" is deleted`,
			`webhook 1 "${url}" is deleted`,
		]);
		const left = await Promise.all(
			['lists', 'fields', 'webhooks'].map((word) => project.json([word, 'list'])),
		);
		expect(left).toMatchObject([
			[{ name: 'mailctl-smoke-tests' }, { name: 'News' }],
			[{ variable: 'mailctl_smoke_city' }],
			[],
		]);
	});

	it('replaces an existing report file, and prints only a summary on stderr', async () => {
		const file = join(project.folder, 'smoke.xml');
		await writeFile(file, 'an older report that is longer than nothing');
		const words = ['smoke', '--only', 'auth', '--reporter', 'junit', '--report-file', file];
		const { code, stdout, stderr } = await project.run(words);
		expect({ code, stdout, stderr }).toEqual({
			code: 0,
			stdout: '',
			stderr: expect.stringMatching(/^3 checks: 3 passed, 0 failed, 0 skipped; 0 deviations; [\d.]+ s\n$/),
		});
		expect(await readFile(file, 'utf8')).toMatch(/^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuite /);
		expect((await readdir(project.folder)).filter((name) => name.startsWith('smoke.xml'))).toEqual([
			'smoke.xml',
		]);
	});

	it('prints JSON with -o json even if the report file has another format', async () => {
		const file = join(project.folder, 'smoke.tap');
		const words = ['smoke', '--only', 'auth', '--reporter', 'tap', '--report-file', file];
		const report = (await project.json(words)) as Groups;
		expect(groupsOf(report)).toEqual(['auth']);
		expect(await readFile(file, 'utf8')).toMatch(/^TAP version 14\n1\.\.3\n/);
	});

	it('rejects -o json if another format would go to standard output too', async () => {
		for (const more of [[], ['--report-file', '-']]) {
			const words = ['smoke', '--only', 'auth', '--reporter', 'tap', '-o', 'json', ...more];
			const { code, stdout, stderr } = await project.run(words);
			expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
			expect(JSON.parse(stderr).error.message).toBe('use either -o json or --reporter tap, not both');
		}
	});

	it('fails the delivery check with the reason if the mail server refuses connections', async () => {
		const closed = await makeProject({ smtp: 1 });
		const words = ['--only', 'send', '--send-to', 'sink@example.com', '--from', 'news@example.com'];
		const { checks } = (await closed.json(['smoke', ...words], { code: 11 })) as { checks: object[] };
		expect(checks.at(-1)).toMatchObject({
			id: 'send.delivered',
			outcome: 'fail',
			detail: expect.stringMatching(/^the mail server is not accepting mail: .*ECONNREFUSED/),
		});
	});

	it('skips the delivery check if there is no mail server', async () => {
		const words = ['--only', 'send', '--send-to', 'sink@example.com', '--from', 'news@example.com'];
		const { checks } = (await project.json(['smoke', ...words])) as {
			checks: { id: string; detail: string }[];
		};
		expect(checks).toMatchObject([
			{ id: 'send.requires-body', outcome: 'pass' },
			{ id: 'send.message', outcome: 'pass' },
			{
				id: 'send.delivered',
				outcome: 'skip',
				detail: 'no mail server is configured, so the message stays queued',
			},
		]);
	});
});

describe('smoke with a restricted profile', () => {
	const home = async (profile: object) => {
		const folder = join(project.folder, '.config/mailctl');
		await mkdir(folder, { recursive: true, mode: 0o700 });
		const profiles = { prod: { db: project.db, ...profile } };
		await writeFile(join(folder, 'config.json'), JSON.stringify({ profiles }), { mode: 0o600 });
		return (words: readonly string[]) =>
			cli(['-p', 'prod', 'smoke', ...words], { env: { HOME: project.folder } });
	};

	it('needs --yes for changes, but not for reads, if the profile is protected', async () => {
		const run = await home({ protected: true });
		const codes = [];
		for (const words of [
			['--only', 'lists'],
			['--only', 'lists', '--full'],
			['--cleanup-only'],
			['--full', '-n'],
		])
			codes.push((await run(words)).code);
		expect(codes).toEqual([0, 2, 2, 0]);
		expect((await run(['--only', 'lists', '--full', '--yes'])).code).toBe(0);
	});

	it('rejects a --send-to address outside the profile’s allowed recipients', async () => {
		const run = await home({ allowRecipients: ['*@example.com'] });
		const { code, stderr } = await run(['--send-to', 'sink@example.org', '--from', 'news@example.com']);
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr: expect.stringContaining('this profile may not send to sink@example.org'),
		});
	});
});

interface Groups {
	checks: { group: string }[];
}

function groupsOf({ checks }: Groups): string[] {
	return [...new Set(checks.map(({ group }) => group))];
}
