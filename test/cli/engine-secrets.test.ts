import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { makeProject, type Project } from '../support/project.js';
import { type RunningServer, startServer } from '../support/running-server.js';
import { startSmtpSink } from '../support/smtp-sink.js';

const password = 'mail-server-password-1';
const hookPassword = 'webhook-password-2';
let project: Project;
let keyFile: string;
let env: { MAILCTL_KEY_FILE: string };

beforeEach(async () => {
	project = await makeProject();
	keyFile = await project.file('key', `${randomBytes(32).toString('hex')}\n`);
	await chmod(keyFile, 0o600);
	env = { MAILCTL_KEY_FILE: keyFile };
	const smtp = ['--smtp', 'smtp://user@127.0.0.1:2525', '--smtp-password-file'];
	await project.json(['engine', 'init', ...smtp, await project.file('pass', password)]);
	const hook = [
		'webhooks',
		'create',
		'--url',
		'https://hooks.example.com/',
		'--type',
		'OPENED',
		'--login',
		'me',
	];
	await project.json([...hook, '--password-file', await project.file('hook', hookPassword)]);
	await project.json([
		'engine',
		'dkim',
		'add',
		'--domain',
		'example.com',
		'--type',
		'ed25519',
		'--selector',
		's1',
	]);
	await project.json(['webhooks', 'secret']);
});

function stored(): string[] {
	const db = new Database(project.db);
	const texts = db
		.prepare<[], string>(
			`SELECT value FROM settings WHERE name = 'smtp_password'
			UNION ALL SELECT secret FROM keyring
			UNION ALL SELECT password FROM webhooks`,
		)
		.pluck()
		.all();
	db.close();
	return texts;
}

describe('engine secrets', () => {
	it('wrap encrypts stored and new secrets, and unwrap restores them', async () => {
		const before = stored();
		expect(before).toContain(password);
		expect(await project.json(['engine', 'secrets', 'wrap'], { env })).toEqual([
			{ key: expect.stringMatching(/^[\da-f]{12}$/), secrets: before.length },
		]);
		for (const text of stored()) expect(text).toMatch(/^wrapped:v1:[\da-f]{12}:/);
		const file = readFileSync(project.db).toString('latin1');
		for (const text of before) expect(file).not.toContain(text);
		await project.json(['engine', 'backup', join(project.folder, 'copy.db')]);
		const backup = readFileSync(join(project.folder, 'copy.db')).toString('latin1');
		for (const text of before) expect(backup).not.toContain(text);
		await project.json(['webhooks', 'secret', '--rotate'], { env });
		expect(stored().filter((text) => !text.startsWith('wrapped:'))).toEqual([]);
		const [hook] = (await project.json(['webhooks', 'list', '--show-secrets'], { env })) as {
			password: string;
		}[];
		expect(hook?.password).toBe(hookPassword);
		await project.json(['engine', 'secrets', 'unwrap', '--yes'], { env });
		expect(stored()).toEqual(expect.arrayContaining(before));
		expect((await project.run(['engine', 'status'])).code).toBe(0);
	});

	it('wrap rejects a device as the key file without reading it', async () => {
		const device = '/dev/zero';
		const env = { MAILCTL_KEY_FILE: device };
		const { code, stderr } = await project.run(['engine', 'secrets', 'wrap'], { env });
		expect([code, stderr]).toEqual([78, expect.not.stringContaining('chmod')]);
		expect(stderr).toContain(`MAILCTL_KEY_FILE: ${device} is not a file with keys\n`);
		const { stdout } = await project.run(['doctor', '--only', 'config'], { env });
		expect(stdout).not.toContain('chmod');
	});

	it('after wrap, engine smtp-test still logs in with the SMTP password', async () => {
		const logins: string[] = [];
		const sink = await startSmtpSink({
			authOptional: false,
			allowInsecureAuth: true,
			onAuth: ({ password: given }, _session, callback) => {
				logins.push(given ?? '');
				callback(null, { user: 'user' });
			},
		});
		const url = `smtp://user@127.0.0.1:${sink.port}?tls=never`;
		await project.json(['engine', 'secrets', 'wrap'], { env });
		const set = await project.run(['engine', 'settings', 'set', 'smtp_url', url], { env });
		expect(set.code, set.stderr).toBe(0);
		await project.run(['engine', 'smtp-test'], { env });
		await sink.close();
		expect(logins).toEqual([password]);
	});

	it('wrap makes commands exit with 78 if they have no key or a wrong key', async () => {
		await project.json(['engine', 'secrets', 'wrap'], { env });
		const other = {
			MAILCTL_KEY_FILE: await project.file('other', `${randomBytes(32).toString('base64')}\n`),
		};
		const short = { MAILCTL_KEY_FILE: await project.file('short', 'abc\n') };
		for (const [given, says] of [
			[{}, 'no key is given'],
			[other, 'the key given is'],
			[short, 'is not 32 bytes'],
			[{ MAILCTL_KEY_FILE: '/nowhere' }, 'cannot be read: no such file or directory'],
		] as const) {
			const { code, stderr } = await project.run(['worker', '--drain'], { env: given });
			expect({ code, stderr }).toMatchObject({ code: 78, stderr: expect.stringContaining(says) });
		}
		for (const [given, level] of [
			[other, 'problem'],
			[env, 'ok'],
		] as const) {
			const { stdout } = await project.run(['doctor', '--offline', '-o', 'json'], { env: given });
			const found = JSON.parse(stdout).find(({ check }: { check: string }) => check === 'settings.secrets');
			expect(found).toMatchObject({ level });
		}
	});

	it('wrap rotates the key if the key file contains a new key above the old one', async () => {
		await project.json(['engine', 'secrets', 'wrap'], { env });
		const old = readFileSync(keyFile, 'utf8');
		const fresh = `# November\n${randomBytes(32).toString('base64')}\n`;
		const both = { MAILCTL_KEY_FILE: await project.file('both', `${fresh}${old}`) };
		const { stdout } = await project.run(['doctor', '--offline', '-o', 'json'], { env: both });
		expect(stdout).toContain('engine secrets wrap');
		expect(await project.json(['engine', 'secrets', 'wrap'], { env: both })).toHaveLength(1);
		const alone = { MAILCTL_KEY_FILE: await project.file('alone', fresh) };
		expect((await project.run(['lists', 'list'], { env: alone })).code).toBe(0);
		expect((await project.run(['lists', 'list'], { env })).code).toBe(78);
	});

	it('status prints the id of the required key even without the key, and changes nothing', async () => {
		const [wrapped] = (await project.json(['engine', 'secrets', 'wrap'], { env })) as object[];
		const broken = { MAILCTL_KEY_FILE: '/nowhere' };
		for (const given of [{}, broken])
			expect(await project.json(['engine', 'secrets', 'status'], { env: given })).toEqual([wrapped]);
	});

	it('wrap warns if others can read the key file, and doctor prints the fix', async () => {
		await chmod(keyFile, 0o644);
		const open = await project.run(['engine', 'secrets', 'wrap'], { env });
		expect(open).toMatchObject({ code: 0, stderr: expect.stringContaining(`chmod 600 ${keyFile}`) });
		const access = async () => {
			const { stdout } = await project.run(['doctor', '--offline', '-o', 'json'], { env });
			return (JSON.parse(stdout) as { check: string; message: string; fix: string | null }[]).filter(
				({ check, message }) => check === 'config.access' && message.includes(keyFile),
			);
		};
		expect(await access()).toMatchObject([{ level: 'problem', fix: `chmod 600 ${keyFile}` }]);
		await chmod(keyFile, 0o600);
		expect(await access()).toEqual([]);
		expect((await project.run(['engine', 'settings', 'get'], { env })).stderr).toBe('');
	});

	it('wrap binds each secret to its table, so mailctl rejects a copy in another table', async () => {
		await project.json(['engine', 'secrets', 'wrap'], { env });
		const db = new Database(project.db);
		db.prepare(
			"UPDATE webhooks SET password = (SELECT value FROM settings WHERE name = 'smtp_password')",
		).run();
		db.close();
		const shown = await project.run(['webhooks', 'list', '--show-secrets'], { env });
		expect(shown.code).toBe(78);
		expect(`${shown.stdout}${shown.stderr}`).not.toContain(password);
	});
});

describe('while a server runs, engine secrets', () => {
	let server: RunningServer;
	beforeEach(async () => {
		await project.run(['engine', 'settings', 'set', 'smtp_url', 'smtp://127.0.0.1:2525']);
		await project.run(['engine', 'settings', 'unset', 'smtp_password']);
		server = await startServer(project.db);
		return async () => {
			await server.stop();
		};
	});

	it.each([
		['wrap', '--dry-run'],
		['unwrap', '--yes'],
	])('%s %s exits with 2, prints the running process and the fix, and changes nothing', async (...words) => {
		const before = stored();
		const { code, stderr } = await project.run(['engine', 'secrets', ...words], { env });
		expect({ code, stderr }).toMatchObject({
			code: 2,
			stderr: expect.stringContaining(`serve (pid ${process.pid} on ${hostname()})`),
		});
		expect(stderr).toMatch(/stop .* start/);
		expect(stored()).toEqual(expect.arrayContaining(before));
		expect(stored().filter((text) => text.startsWith('wrapped:'))).toEqual([]);
	});

	it('wrap succeeds if the processes table is empty, but /readyz then fails and send names the cause', async () => {
		expect((await fetch(`${server.baseUrl}/readyz`)).status).toBe(200);
		await eventually(async () => {
			const db = new Database(project.db);
			db.exec('DELETE FROM processes');
			db.close();
			expect((await project.run(['engine', 'secrets', 'wrap'], { env })).code).toBe(0);
		});
		const ready = await fetch(`${server.baseUrl}/readyz`);
		expect(ready.status).toBe(503);
		expect(await ready.json()).toMatchObject({
			detail: expect.stringMatching(/^The secrets of the database are encrypted with key [\da-f]{12}/),
		});
		const there = { MAILCTL_BASE_URL: server.baseUrl, MAILCTL_TOKEN: server.token };
		const words = ['send', '--from', 'news@example.com', '--to', 'ann@example.org', '--subject', 'Hello'];
		const sent = await cli([...words, '--text', 'Hello'], { env: { ...there, HOME: project.folder } });
		expect(sent.code, sent.stderr).toBe(14);
		expect(sent.stderr).toContain(
			'accepted and queued, so do not repeat the command: nothing is sent: the secrets of this database are wrapped with key',
		);
		expect(sent.stderr).not.toMatch(/is not accepting mail|StoreError/);
	});
});
