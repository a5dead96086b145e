import { describe, expect, it } from 'vitest';
import { cli, makeHome } from '../../support/cli.js';
import { freePort } from '../../support/listen.js';
import { makeProject } from '../../support/project.js';

describe('mailctl serve', () => {
	it.each([
		['--host', 'no such host'],
		['--rate', 'fast'],
		['--tls-cert', '/etc/hostname', '--tls-key', '/etc/hostname'],
	])('creates no token if %s %j prevents its start', async (...words) => {
		const { run, json } = await makeProject({ smtp: 2525 });
		const { code, stderr } = await run(['serve', '--port', '0', ...words]);
		expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: --/)]);
		expect(await json(['engine', 'tokens', 'list'])).toEqual([]);
	});
});

describe('mailctl serve without a mail server', () => {
	it('warns that messages wait, and prints how to log in with the new token', async () => {
		const HOME = await makeHome();
		const { stderr } = await cli(['serve', '--port', '0', '--deadline', '2s'], { env: { HOME } });
		expect(stderr).toContain(
			'warning: no mail server is configured, so messages wait\nhint: mailctl engine init\n',
		);
		const path = `${HOME}/.local/share/mailctl/mailctl.db.token`;
		expect(stderr).toMatch(/hint: mailctl login http:\/\/127\.0\.0\.1:\d+ --token-file \S+\n/);
		expect(stderr).toContain(` --token-file ${path}\n`);
	});
});

describe('mailctl serve at its start', () => {
	const words = ['--deadline', '2s'];

	it('warns if public_url is missing, and prints the command that sets public_url', async () => {
		const { run, db } = await makeProject({ smtp: 2525 });
		const { stderr } = await run(['serve', '--port', '0', ...words]);
		expect(stderr).toMatch(/^warning: links in mails point to http:\/\/127\.0\.0\.1:\d+: set /m);
		expect(stderr).toContain(
			`hint: mailctl --db ${db} engine settings set public_url https://mail.example.com\n`,
		);
	});

	it('does not warn if public_url is set, even to the listening address', async () => {
		const { run, json } = await makeProject({ smtp: 2525 });
		const port = await freePort();
		const url = `http://127.0.0.1:${port}`;
		await json(['engine', 'settings', 'set', 'public_url', url]);
		const { stderr } = await run(['serve', '--port', String(port), ...words]);
		expect(stderr).toContain(`listening on ${url}\n`);
		expect(stderr).not.toContain('links in mails');
	});
});
