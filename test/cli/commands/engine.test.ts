import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeCertificates } from '../../support/certificates.js';
import { cli, makeHome, withValues } from '../../support/cli.js';
import { errorOf, makeProject } from '../../support/project.js';
import { startFaultServer } from '../../support/smtp-fault.js';
import { startSmtpSink } from '../../support/smtp-sink.js';

describe('mailctl engine init', () => {
	const fresh = async () => join(await makeHome(), 'news.db');

	it('changes only the given settings when it runs a second time', async () => {
		const { json } = await makeProject();
		const file = await (await makeProject()).file('pass', 'hunter2\n');
		await json(['engine', 'init', '--time-zone', 'Europe/Oslo']);
		const given = ['--sender', 'Our news <NEWS@example.com>', '--smtp', 'smtps://u@mail.example.com'];
		const again = ['engine', 'init', ...given];
		expect(
			await json([...again, '--smtp-password-file', file, '--public-url', 'https://m.example.com/']),
		).toMatchObject({
			created: false,
			settings: {
				time_zone: 'Europe/Oslo',
				smtp_url: 'smtps://u@mail.example.com',
				smtp_password: '********',
				public_url: 'https://m.example.com',
			},
			sender: { id: 1, from_email: 'news@example.com', full_name: 'Our news' },
		});
	});

	it.each([
		[['--sender', 'nobody'], 2, '--sender: "nobody" is not an e-mail address: it has no @'],
		[['--time-zone', 'Mars/Base'], 2, '--time-zone: unknown time zone "Mars/Base"'],
		[['--public-url', 'ftp://x'], 2, 'public_url: Enter a valid URL. (ftp://x)'],
		[['--smtp', 'mail.example.com'], 2, /^smtp_url: /],
		[['--smtp-password-file', '/nowhere'], 2, '--smtp-password-file: /nowhere: no such file'],
	] as const)('rejects %j and changes nothing', async (words, code, message) => {
		const project = await makeProject();
		const before = await project.json(['engine', 'settings', 'get']);
		const [flag, value] = words;
		const valid = ['engine', 'init', '--time-zone', 'Europe/Oslo'];
		const result = await project.run(withValues(valid, { [flag]: value }));
		expect({ code: result.code, stdout: result.stdout }).toEqual({ code, stdout: '' });
		expect(result.stderr.split('\n')[0]?.replace('error: ', '')).toMatch(message);
		expect(await project.json(['engine', 'settings', 'get'])).toEqual(before);
	});

	it('never prints a password that is in the URL', async () => {
		const project = await makeProject();
		const run = await project.run(['engine', 'init', '--smtp', 'smtp://u:hunter2@mail.example.com:587']);
		expect(`${run.stdout}${run.stderr}`).not.toContain('hunter2');
	});

	it.each([
		['news@example.com', '"Our, news" <news@example.com>'],
		['NEWS@example.com', '"Our, news" <NEWS@example.com>'],
		['Other <news@example.com>', 'Other <news@example.com>'],
		['plain@example.com', 'plain@example.com'],
	])('stores the sender’s name, so that send --from %s uses the sender %s', async (from, expected) => {
		const project = await makeProject({ smtp: 9 });
		await project.json(['engine', 'init', '--sender', '"Our, news" <news@example.com>']);
		await project.json(['engine', 'init', '--sender', 'plain@example.com']);
		const words = ['send', '--from', from, '--to', 'a@example.com', '--subject', 'S', '--text', 'x', '-n'];
		expect(await project.json(words)).toMatchObject({ send: { from: expected } });
	});

	it('creates nothing in a dry run', async () => {
		const db = await fresh();
		const run = await cli(['--db', db, 'engine', 'init', '--sender', 'n@example.com', '-n', '-o', 'json']);
		expect(JSON.parse(run.stdout)).toEqual({
			...{ dry_run: true, init: db, created: true },
			with: { settings: {}, sender: 'n@example.com' },
		});
		expect(existsSync(db)).toBe(false);
	});
});

describe('mailctl engine', () => {
	it('status shows signing, limits, bounces and the reason for a pause', async () => {
		const project = await makeProject({ smtp: 2525 });
		const keys = ['engine', 'dkim', 'add', '--type', 'ed25519', '--domain', 'example.com', '--selector'];
		for (const selector of ['a', 'b']) await project.json([...keys, selector]);
		await project.json(['engine', 'settings', 'set', 'bounce_address', 'bounces@example.com']);
		await project.json(['engine', 'settings', 'set', 'send_limit', '100/1m']);
		await project.json(['engine', 'settings', 'set', 'recipient_domain_limits', 'gmail.com=10/1m']);
		await project.json(['engine', 'queue', 'pause', '--reason', 'moving']);
		expect(await project.json(['engine', 'status'])).toMatchObject({
			paused: { kind: 'manual', reason: 'moving', since: expect.any(String) },
			bounce_address: 'bounces@example.com',
			verp: true,
			dkim_domains: ['example.com'],
			limits: { send_limit: '100/m', recipient_domain_limits: 'gmail.com=10/m' },
		});
		const { stdout } = await project.run(['engine', 'status', '--no-color'], { columns: 120 });
		expect(stdout).toMatch(/^QUEUE +paused by hand since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: moving$/m);
		expect(stdout).toMatch(/^BOUNCES +bounces@example\.com, with a signed return path/m);
		expect(stdout).toMatch(/^MESSAGES +0$[\s\S]*^SIGNED +example\.com$/m);
		expect(stdout).toMatch(/^LIMITS +recipient_domain_limits gmail\.com=10\/m; send_limit 100\/m$/m);
	});

	it('settings get shows each setting with its purpose and its value or default', async () => {
		const project = await makeProject({ smtp: 2525 });
		for (const columns of [80, 120]) {
			const { stdout } = await project.run(['engine', 'settings', 'get'], { columns });
			const lines = stdout.split('\n');
			expect(lines).toContain('smtp_url = smtp://127.0.0.1:2525');
			expect(lines).toContain('time_zone = UTC (default)');
			expect(lines).toContain('    IANA time zone in which the days of reports begin and end');
			expect(lines).toContain('send_limit is not set');
			expect(lines.filter((line) => line.length > columns)).toEqual([]);
		}
		const wide = await project.run(['engine', 'settings', 'get', '-o', 'wide', '--no-truncate'], {
			columns: 80,
		});
		expect(wide.stdout).toMatch(/^time_zone +UTC +IANA time zone/m);
	});

	it('settings get shortens a certificate on a terminal, but prints the whole certificate into a pipe', async () => {
		const project = await makeProject();
		const { ca } = await makeCertificates(['IP:127.0.0.1']);
		const pem = `${ca}${ca}`.trimEnd();
		const words = ['engine', 'settings', 'set', 'smtp_ca', '-', '-o', 'table'];
		const set = await project.run(words, { stdin: pem });
		const summary = '-----BEGIN CERTIFICATE-----…\n';
		expect(set.stderr).toBe(`smtp_ca is ${summary}`);
		const { stdout } = await project.run(['engine', 'settings', 'get', 'smtp_ca'], { columns: 120 });
		expect(stdout).toContain(`smtp_ca = ${summary}`);
		expect((await project.run(['engine', 'settings', 'get', 'smtp_ca'])).stdout.trimEnd()).toBe(pem);
	});

	it('settings set reads a password from stdin only, and settings get masks it', async () => {
		const project = await makeProject();
		expect(await project.run(['engine', 'settings', 'set', 'smtp_password', 'hunter2'])).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: a password cannot be an argument, because other users can see arguments\n' +
				`hint: mailctl --db ${project.db} engine settings set smtp_password - < FILE\n`,
		});
		const set = await project.run(['engine', 'settings', 'set', 'smtp_password', '-'], {
			stdin: 'hunter2\n',
		});
		expect(set).toMatchObject({ code: 0, stdout: expect.stringContaining('********') });
		for (const format of ['json', 'wide', 'csv'])
			expect((await project.run(['engine', 'settings', 'get', '-o', format])).stdout).not.toContain(
				'hunter2',
			);
	});

	it('settings set suggests the right name for a misspelt setting', async () => {
		const project = await makeProject();
		expect(await project.run(['engine', 'settings', 'set', 'sendlimit', '3/1m'])).toMatchObject({
			code: 2,
			stderr: 'error: unknown setting "sendlimit"\nhint: did you mean send_limit?\n',
		});
	});
});

describe('mailctl engine smtp-test', () => {
	it('prints how to set the password if the server refuses the login', async () => {
		const sink = await startSmtpSink({
			onAuth: (_auth, _session, refuse) => refuse(new Error('wrong password')),
		});
		const project = await makeProject();
		const url = `smtp://news@127.0.0.1:${sink.port}?tls=never`;
		await project.json(['engine', 'settings', 'set', 'smtp_url', url]);
		await project.json(['engine', 'settings', 'set', 'smtp_password', '-'], { stdin: 'wrong' });
		expect(await project.run(['engine', 'smtp-test'])).toMatchObject({
			code: 6,
			stderr: expect.stringContaining(
				`hint: mailctl --db ${project.db} engine init --smtp-password-file FILE sets the password\n`,
			),
		});
		await sink.close();
	});

	it('greets the server with smtp_ehlo_name, as send does, and prints the server’s refusal of this name', async () => {
		const refusal = { answer: '421 4.7.0 Try again later', thenClose: true };
		const server = await startFaultServer({
			on: (phase, line) => (phase === 'EHLO' && line !== 'EHLO mail.example.org' ? refusal : undefined),
		});
		const project = await makeProject({ smtp: server.port });
		await project.json(['engine', 'settings', 'set', 'smtp_ehlo_name', 'Web.example.org']);
		const hint = `mailctl --db ${project.db} engine settings set smtp_ehlo_name mail.example.com`;
		expect(await project.run(['engine', 'smtp-test'])).toMatchObject({
			code: 6,
			stderr: `error: 127.0.0.1:${server.port}: ehlo: 421 4.7.0 Try again later (to EHLO web.example.org)\nhint: ${hint}\n`,
		});
		const found = await project.json(['doctor', '--only', 'smtp'], { code: 11 });
		expect((found as object[])[0]).toMatchObject({
			check: 'smtp.login',
			message: expect.stringContaining('(to EHLO web.example.org)'),
			fix: hint,
		});
		const send = [
			...['send', '--from', 'news@example.com', '--to', 'a@example.com'],
			...['--subject', 's', '--text', 't'],
		];
		expect(await project.run(send)).toMatchObject({
			code: 14,
			stderr: expect.stringContaining('4.7.0 Try again later (to EHLO web.example.org)'),
		});
		await project.json(['engine', 'settings', 'set', 'smtp_ehlo_name', 'mail.example.org']);
		const tested = await project.run(['engine', 'smtp-test', '-o', 'table']);
		expect(tested.stderr).toMatch(/accepts mail from news@example\.com \(EHLO mail\.example\.org\)/);
		expect(await project.run(send)).toMatchObject({ code: 0 });
		await server.close();
	});

	it('prints the server’s refusal and exits with 6, but exits with 2 if no mail server is configured', async () => {
		const server = await startFaultServer({
			at: { connect: { answer: '554 5.3.2 go away', thenClose: true } },
		});
		const project = await makeProject({ smtp: server.port });
		const run = await project.run(['engine', 'smtp-test', '-o', 'json']);
		expect({ code: run.code, test: JSON.parse(run.stdout) }).toMatchObject({ code: 6, test: { ok: false } });
		expect(errorOf(run)).toMatchObject({ code: 'smtp', message: expect.stringContaining('go away') });
		await server.close();
		const without = await makeProject();
		expect(await without.run(['engine', 'smtp-test'])).toMatchObject({
			code: 2,
			stderr: `error: no mail server is configured\nhint: mailctl --db ${without.db} engine init --smtp smtp://USER@HOST:587 --smtp-password-file FILE\n`,
		});
	});
});
