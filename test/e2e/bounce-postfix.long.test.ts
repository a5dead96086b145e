// A real mail server takes our mail, fails to deliver it, and sends its bounce back: by SMTP, and through a pipe.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, chown, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { programPath } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { noPostfix, type Postfix, startPostfix } from '../support/postfix.js';
import { makeProject, type Project } from '../support/project.js';
import { freePort, type Refusing, startRefusing } from '../support/refusing-server.js';
import { startServer } from '../support/running-server.js';
import { startTarget } from '../support/target.js';

const run = promisify(execFile);
// Postfix runs no program as root.
const nobody = { uid: 65_534, gid: 65_534 };
const nobodyRunsIt = () =>
	run(process.execPath, [programPath, '--version'], { ...nobody, env: {} }).then(
		() => true,
		() => false,
	);
const isBuilt = existsSync(join(programPath, '../../dist'));

const title = noPostfix === null ? 'a bounce of Postfix' : `a bounce of Postfix (${noPostfix})`;

describe.skipIf(noPostfix !== null)(title, () => {
	let refusing: Refusing;
	// Until then no recipient is refused, so that no bounce comes back while "send" still waits.
	let sent: () => void;
	let postfix: Postfix | null;
	beforeEach(async () => {
		postfix = null;
		refusing = await startRefusing({ after: new Promise((resolve) => (sent = resolve)) });
	});
	afterEach(async () => {
		await postfix?.stop();
		await refusing.close();
	});

	it('comes back by SMTP: message, subscriber and report show it, and a webhook is called', async () => {
		const port = await freePort();
		const project = await makeProject({ smtp: port });
		await setUp(project.json);
		const target = await startTarget(204);
		await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
		await project.json(['webhooks', 'create', '--url', target.url, '--type', 'HARDBOUNCED']);
		const server = await startServer(project.db, ['--bounce-smtp', '127.0.0.1:0']);
		const bounces = server.bounceSmtp?.split(':').at(-1);
		postfix = await startPostfix({
			port,
			transports: {
				'example.org': `smtp:[127.0.0.1]:${refusing.port}`,
				'bounces.example.com': `smtp:[127.0.0.1]:${bounces}`,
			},
		});
		try {
			await sendTo(project.json);
			sent();
			await untilInactive(project.json, postfix);
			await expectBounced(project.json);
			expect(server.log()).toContain('"bounce_smtp":"bounce"');
			await eventually(() => expect(target.received).toHaveLength(1));
			expect(JSON.parse(target.received[0] ?? '')).toMatchObject({
				type: 'HARDBOUNCED',
				test: false,
				message: { to: 'ann@example.org' },
				data: { smtp_code: '5.1.1', diagnostic: expect.stringContaining('No such user here') },
			});
		} finally {
			await target.close();
			await server.stop();
		}
	});

	it('comes back through a pipe to "engine bounces ingest -"', async ({ skip }) => {
		if (!isBuilt) return skip('npm run build has not been run');
		if (!(await nobodyRunsIt())) return skip('nobody may not read this checkout, or run this node');
		const folder = await mkdtemp('/tmp/mailctl-piped-');
		await chown(folder, nobody.uid, nobody.gid);
		await chmod(folder, 0o755);
		const db = join(folder, 'news.db');
		const json: Project['json'] = async (argv) => {
			const words = [programPath, '--db', db, ...argv, '-o', 'json'];
			const options = { ...nobody, cwd: folder, env: { HOME: folder, PATH: process.env['PATH'] } };
			return JSON.parse((await run(process.execPath, words, options)).stdout);
		};
		const port = await freePort();
		const smtp = ['--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${port}`];
		await json(['engine', 'init', ...smtp]);
		await setUp(json);
		postfix = await startPostfix({
			port,
			transports: {
				'example.org': `smtp:[127.0.0.1]:${refusing.port}`,
				'bounces.example.com': 'bounces:',
			},
			services: [
				'bounces unix - n n - 1 pipe',
				`  flags=DROX user=nobody argv=${process.execPath} ${programPath} --db ${db} engine bounces ingest -`,
			],
		});
		await sendTo(json);
		sent();
		await untilInactive(json, postfix);
		await expectBounced(json);
		await eventually(async () => expect(await postfix?.log()).toMatch(/relay=bounces.*status=sent/));
		await rm(folder, { recursive: true });
	});
});

async function setUp(json: Project['json']): Promise<void> {
	await json(['engine', 'init', '--bounce-address', 'news@bounces.example.com']);
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked for it']);
	await json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.org']);
}

async function sendTo(json: Project['json']): Promise<void> {
	const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hello'];
	await json(['send', ...mail, '--to', 'ann@example.org']);
}

async function untilInactive(json: Project['json'], postfix: Postfix): Promise<void> {
	const activity = async () => {
		const found = (await json(['subscribers', 'get', '-l', '1', 'ann@example.org'])) as Record<
			string,
			unknown
		>;
		return found['disable_reason'] ?? (await postfix.log());
	};
	await eventually(async () => expect(await activity()).toBe('HARDBOUNCED'));
}

async function expectBounced(json: Project['json']): Promise<void> {
	expect(await json(['messages', 'list', '--status', 'bounced'])).toMatchObject([
		{ to: 'ann@example.org', last_reply: expect.stringContaining('5.1.1') },
	]);
	expect(await json(['report'])).toMatchObject({ total: { sent: 1, hardbounced_percent: 100 } });
}
