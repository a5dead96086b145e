// A real Postfix takes our mail and sends its bounces back: by SMTP, into a Maildir, and through a pipe.
import { execFile } from 'node:child_process';
import { chmod, chown, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { isBuilt, programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/listen.js';
import { noPostfix, startPostfix } from '../support/postfix.js';
import { startRefusing } from '../support/refusing-server.js';
import { mailServerSuite } from './mail-server.suite.js';

const run = promisify(execFile);
// Postfix runs no program as root.
const nobody = { uid: 65_534, gid: 65_534 };
const nobodyRunsIt = () =>
	run(process.execPath, [programPath, '--version'], { ...nobody, env: {} }).then(
		() => true,
		() => false,
	);

mailServerSuite({
	name: 'Postfix',
	why: noPostfix,
	start: startPostfix,
	unknown: { code: 550, enhanced: '5.1.1', text: 'User unknown' },
	own: () => {
		it('pipes a bounce to "engine bounces ingest -"', async ({ skip }) => {
			if (!isBuilt) return skip('npm run build has not been run');
			if (!(await nobodyRunsIt())) return skip('nobody may not read this checkout, or run this node');
			const folder = await mkdtemp('/tmp/mailctl-piped-');
			await chown(folder, nobody.uid, nobody.gid);
			await chmod(folder, 0o755);
			const db = join(folder, 'news.db');
			const json = async (...argv: string[]) => {
				const words = [programPath, '--db', db, ...argv, '-o', 'json'];
				const options = { ...nobody, cwd: folder, env: { HOME: folder, PATH: process.env['PATH'] } };
				return JSON.parse((await run(process.execPath, words, options)).stdout);
			};
			const port = await freePort();
			// Until then no recipient is refused, so that no bounce comes back while "send" still waits.
			let sent: () => void = () => undefined;
			const refusing = await startRefusing({ after: new Promise((resolve) => (sent = resolve)) });
			onTestFinished(refusing.close);
			const pipe = `${process.execPath} ${programPath} --db ${db} engine bounces ingest -`;
			const postfix = await startPostfix({ port, next: refusing.port, bounces: 0, pipe });
			onTestFinished(postfix.stop);
			const smtp = ['--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${port}`];
			await json('engine', 'init', ...smtp, '--bounce-address', 'news@bounces.example.com');
			await json('lists', 'create', '--name', 'Readers', '--email-reason', 'You asked for it');
			await json('subscribers', 'create', '-l', '1', '--email', 'ann@example.org');
			const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hello'];
			await json('send', ...mail, '--to', 'ann@example.org');
			sent();
			await eventually(async () => {
				const { disable_reason } = await json('subscribers', 'get', '-l', '1', 'ann@example.org');
				expect(disable_reason ?? (await postfix.log())).toBe('HARDBOUNCED');
			});
			await eventually(async () => expect(await postfix.log()).toMatch(/relay=bounces.*status=sent/));
		});
	},
});
