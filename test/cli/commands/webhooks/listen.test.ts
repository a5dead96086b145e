import { mkdir, symlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../src/api/datetime.js';
import { formatSecret, signedHeaders } from '../../../../src/api/webhook-signatures.js';
import { unregister } from '../../../../src/cli/commands/webhooks/registration.js';
import { hintText } from '../../../../src/cli/frame/command-line.js';
import type { CommandContext } from '../../../../src/cli/frame/context.js';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { cli, makeHome } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type ServedEngine, serveEngine } from '../../../support/served-engine.js';
import { type NotifiedTarget, startTarget } from '../../../support/target.js';
import { typing } from '../../../support/typing.js';

describe('a receiver of notifications on this machine', () => {
	let project: Project;
	let target: NotifiedTarget | undefined;
	beforeEach(async () => {
		project = await makeProject();
		await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'true']);
	});
	afterEach(() => target?.close());
	/** Starts the command; `heard` waits for a line on stderr and gives what it matched. */
	const listen = (argv: readonly string[], more = {}) => {
		let text = '';
		let tell = () => {};
		const running = project.run(['webhooks', 'listen', ...argv], {
			heard: (all: string) => {
				text = all;
				tell();
			},
			...more,
		});
		const heard = async (pattern: RegExp): Promise<string> => {
			for (;;) {
				const found = pattern.exec(text);
				if (found !== null) return found[1] ?? '';
				const ended = running.then((end) => Promise.reject(new Error(`it ended: ${JSON.stringify(end)}`)));
				await Promise.race([
					new Promise<void>((resolve) => {
						tell = resolve;
					}),
					ended,
				]);
			}
		};
		return { running, heard };
	};
	const hooks = async () => (await project.json(['webhooks', 'list'])) as unknown[];
	const listening = /listening on (http:\S+)/;
	const registered = /registered webhook (\d+)/;

	it('registers itself, verifies, prints and ends after the first; its webhook is gone then', async () => {
		const { running, heard } = listen([
			'--register',
			'--type',
			'OPENED',
			'--once',
			'--wait',
			'1m',
			'-o',
			'json',
		]);
		const id = await heard(registered);
		expect(await hooks()).toMatchObject([{ id: Number(id), type: 'OPENED' }]);
		expect(await project.json(['webhooks', 'test', id])).toMatchObject({ result: true, status_code: 204 });
		const { code, stdout } = await running;
		expect(code).toBe(0);
		expect(JSON.parse(stdout)).toMatchObject([
			{ type: 'OPENED', verified: true, refused: null, forwarded: null, body: { test: true } },
		]);
		expect(await hooks()).toEqual([]);
	});

	it('says at its start and in its end what sends notifications, where no such process runs', async () => {
		const sends = 'mailctl serve or mailctl worker';
		const { code, stderr } = await listen(['--register', '--type', 'OPENED', '--wait', '300ms']).running;
		const said = stderr.replaceAll(`--db ${project.db} `, '');
		expect(code).toBe(12);
		expect(said).toContain(`hint: notifications are sent while ${sends} runs on this database`);
		expect(said).toMatch(
			/error: no notification came within --wait\nhint: notifications are sent while mailctl serve or mailctl worker runs/,
		);
	});

	it('says nothing of that where one runs', async () => {
		const db = new Database(project.db);
		const now = systemClock.now();
		db.prepare(
			'INSERT INTO processes (id, role, host, pid, started_at, heartbeat_at) VALUES (?, ?, ?, ?, ?, ?)',
		).run('worker', 'worker', hostname(), process.ppid, now, now);
		db.close();
		const { code, stderr } = await listen(['--register', '--type', 'OPENED', '--wait', '100ms']).running;
		expect([code, stderr]).toEqual([12, expect.not.stringContaining('notifications are sent while')]);
	});

	it('has a test sent by the deployment with --test, shows it and ends', async () => {
		const { code, stdout, stderr } = await listen([
			'--register',
			'--test',
			'--once',
			'--wait',
			'1m',
			'-o',
			'json',
		]).running;
		expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ verified: true, body: { test: true } }]]);
		expect(stderr).not.toContain('another terminal');
		expect(await hooks()).toEqual([]);
	});

	it('says of which events the webhooks are, and which one is tested', async () => {
		const asked = ['--type', 'HARDBOUNCED', '--type', 'OPENED'];
		const { running } = listen(['--register', ...asked, '--test', '--once', '--wait', '1m']);
		const { code, stdout, stderr } = await running;
		expect([code, stdout]).toEqual([0, expect.stringContaining('HARDBOUNCED')]);
		expect(stderr).toMatch(/registered webhooks \d+ \(HARDBOUNCED\), \d+ \(OPENED\)/);
		expect(stderr).toContain('the test is of HARDBOUNCED alone; --type names another event');
	});

	it('ends with 9 when the test of --test does not arrive, and removes its webhooks', async () => {
		const nowhere = 'http://127.0.0.1:11/';
		const { running } = listen(['--register', '--url', nowhere, '--test', '--once', '--wait', '1m']);
		expect(await running).toMatchObject({
			code: 9,
			stderr: expect.stringMatching(/^error: the target was not reached/m),
		});
		expect(await hooks()).toEqual([]);
	});

	it('refuses --test without --register', async () => {
		expect(await project.run(['webhooks', 'listen', '--test'])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('--url, --type and --test go with --register'),
		});
	});

	it('hands on what came, octet by octet, and answers what it was answered', async () => {
		target = await startTarget(503);
		const { running, heard } = listen([
			'--register',
			'--type',
			'OPENED',
			'--once',
			'--forward-to',
			target.url,
			'-o',
			'ndjson',
		]);
		const id = await heard(registered);
		const test = await project.json(['webhooks', 'test', id], { code: 9 });
		expect(test).toMatchObject({ result: false, status_code: 503 });
		const line = JSON.parse((await running).stdout);
		expect(line).toMatchObject({ verified: true, forwarded: 503 });
		expect(JSON.parse(target.received[0] ?? '')).toEqual(line.body);
	});

	it('hands on with the credentials of the URL', async () => {
		target = await startTarget(200);
		const to = target.url.replace('//', '//ann:s%40crct@');
		const { running, heard } = listen(['--register', '--type', 'OPENED', '--once', '--forward-to', to]);
		await project.json(['webhooks', 'test', await heard(registered)]);
		expect((await running).code).toBe(0);
		expect(target.authorizations).toEqual([`Basic ${Buffer.from('ann:s@crct').toString('base64')}`]);
	});

	it('answers 502 and says why when what it hands on to cannot be reached', async () => {
		target = await startTarget(200);
		const { url } = target;
		await target.close();
		const to = url.replace('//', '//ann:secret@');
		const { running, heard } = listen(['--register', '--type', 'OPENED', '--once', '--forward-to', to]);
		await project.json(['webhooks', 'test', await heard(registered)], { code: 9 });
		const { stderr } = await running;
		expect(stderr).toContain(`warning: ${url} did not answer: connect ECONNREFUSED`);
		expect(stderr).not.toContain('secret');
	});

	it('answers 401 to what its secret did not sign, and goes on waiting', async () => {
		const { running, heard } = listen(['--once', '--wait', '1m', '-o', 'json']);
		const url = await heard(listening);
		const body = '{"type":"OPENED"}';
		const signed = { id: 'msg_1', timestamp: Math.floor(Date.now() / 1000), body };
		const post = (headers: Record<string, string>) => fetch(url, { method: 'POST', body, headers });
		expect((await post({})).status).toBe(401);
		expect((await post(signedHeaders(signed, [formatSecret('b3RoZXI')]))).status).toBe(401);
		const [secret] = (await project.json(['webhooks', 'secret'])) as { secret: string }[];
		const stale = { ...signed, timestamp: signed.timestamp - 600 };
		expect((await post(signedHeaders(stale, [secret?.secret ?? '']))).status).toBe(401);
		expect((await fetch(url)).status).toBe(405);
		expect((await post(signedHeaders(signed, [secret?.secret ?? '']))).status).toBe(204);
		const { code, stdout } = await running;
		expect(code).toBe(0);
		expect(JSON.parse(stdout).map((one: { verified: boolean }) => one.verified)).toEqual([
			false,
			false,
			false,
			true,
		]);
	});

	it('is out of time when nothing came (12), and leaves no webhook behind', async () => {
		const { code, stdout, stderr } = await project.run([
			...['webhooks', 'listen', '--register', '--once', '--wait', '50ms', '-o', 'json'],
		]);
		expect(code).toBe(12);
		expect(stdout).toBe('[]\n');
		expect(stderr).toContain('no notification came');
		expect(stderr).not.toContain('only a webhook');
		expect(await hooks()).toEqual([]);
	});

	it('says without --register what would have been received', async () => {
		const { code, stderr } = await project.run(['webhooks', 'listen', '--wait', '50ms']);
		expect(code).toBe(12);
		expect(stderr).toMatch(
			/^hint: only a webhook whose URL leads to http:\/\/127\.0\.0\.1:\d+\S* is received here; --register makes one/m,
		);
		expect(stderr.match(/only a webhook/g)).toHaveLength(1);
	});

	it('says while it waits how to have something sent', async () => {
		const interrupt = new AbortController();
		const alone = listen([], { interrupts: interrupt.signal });
		await alone.heard(/--register makes one for as long as this runs/);
		const own = listen(['--register', '--type', 'OPENED'], { interrupts: interrupt.signal });
		const id = await own.heard(registered);
		await own.heard(new RegExp(`in another terminal this sends one: mailctl .*webhooks test ${id}`));
		interrupt.abort(new Interrupted('SIGINT'));
		expect([(await alone.running).code, (await own.running).code]).toEqual([130, 130]);
	});

	describe('with --register, where private addresses are refused', () => {
		const words = ['webhooks', 'listen', '--register', '--wait', '50ms'];
		const setting = async () =>
			(await project.run(['engine', 'settings', 'get', 'allow_private_webhooks'])).stdout;
		beforeEach(async () => {
			await project.json(['engine', 'settings', 'unset', 'allow_private_webhooks']);
		});

		it('asks a person to allow them, and goes on', async () => {
			const { code, stderr } = await typing([['Set it to true?', 'y']], (options) =>
				project.run(words, options),
			);
			expect(stderr).toContain('registered webhooks');
			expect(stderr).toMatch(/engine settings unset allow_private_webhooks/);
			expect(code).toBe(12);
			expect(await setting()).toBe('true\n');
		});

		it('changes nothing without the agreement', async () => {
			const { code, stderr } = await typing([['Set it to true?', 'n']], (options) =>
				project.run(words, options),
			);
			expect(code).toBe(130);
			expect(stderr).not.toContain('registered');
			expect(await setting()).toBe('\n');
		});

		it('is refused to a script before anything else, until it agrees', async () => {
			const { code, stderr } = await project.run(words);
			expect([code, stderr]).toEqual([
				2,
				'error: this will set allow_private_webhooks to true\nhint: add --yes to agree\n',
			]);
			expect(await setting()).toBe('\n');
			const agreed = await project.run([...words, '--yes']);
			expect([agreed.code, agreed.stderr]).toEqual([12, expect.stringContaining('registered webhooks')]);
			expect(await setting()).toBe('true\n');
		});
	});

	describe('with --register, from a deployment on this machine that refuses private addresses', () => {
		let served: ServedEngine;
		beforeEach(async () => {
			served = await serveEngine();
		});
		afterEach(() => served.close());
		const words = [
			'webhooks',
			'listen',
			'--register',
			'--test',
			'--once',
			'--type',
			'OPENED',
			'--wait',
			'1m',
		];
		/** The default database of the home, and the deployment as the target. */
		const homeWith = async (database: string) => {
			const home = await makeHome();
			await mkdir(join(home, '.local/share/mailctl'), { recursive: true });
			await symlink(database, join(home, '.local/share/mailctl/mailctl.db'));
			return { HOME: home, MAILCTL_BASE_URL: served.url, MAILCTL_TOKEN: served.token };
		};

		it('asks a person to allow them where it serves the default database, and goes on', async () => {
			const env = await homeWith(served.db);
			const { code, stderr } = await typing([['Set it to true?', 'y']], (options) =>
				cli(words, { ...options, env }),
			);
			expect(stderr).toMatch(/\/mailctl\.db\s+refuses webhooks to private addresses/);
			expect(stderr).toContain('registered webhook 1 (OPENED)');
			expect(stderr).toMatch(/hint: mailctl -p local engine settings unset allow_private_webhooks/);
			expect(code).toBe(0);
		});

		it('takes it back where the default database is a copy of the one that is served', async () => {
			const copy = `${served.db}.copy`;
			expect((await cli(['engine', 'backup', copy, '--db', served.db])).code).toBe(0);
			const { code, stderr } = await cli([...words, '--yes'], { env: await homeWith(copy) });
			expect([code, stderr]).toEqual([
				5,
				expect.stringContaining(
					'allow_private_webhooks is unset again: the deployment has not taken the webhook',
				),
			]);
			const setting = await cli(['engine', 'settings', 'get', 'allow_private_webhooks', '--db', copy]);
			expect(setting.stdout).toBe('\n');
		});

		it('needs no default database that can be opened', async () => {
			const open = await serveEngine({ settings: { allow_private_webhooks: 'true' } });
			const env = await homeWith(await project.file('damaged.db', 'garbage '.repeat(100)));
			const target = { MAILCTL_BASE_URL: open.url, MAILCTL_TOKEN: open.token };
			const { code } = await cli(words, { env: { ...env, ...target } });
			await open.close();
			expect(code).toBe(0);
		});

		it('leaves another default database alone', async () => {
			const env = await homeWith(project.db);
			await project.json(['engine', 'settings', 'unset', 'allow_private_webhooks']);
			const { code, stderr } = await cli([...words, '--yes'], { env });
			expect([code, stderr.replaceAll(/\s+/g, ' ')]).toEqual([
				5,
				expect.stringContaining(
					'mailctl --db DATABASE engine settings set allow_private_webhooks true, on the database that the deployment serves,',
				),
			]);
			expect((await project.run(['engine', 'settings', 'get', 'allow_private_webhooks'])).stdout).toBe('\n');
		});
	});

	it('is interrupted with 130, and leaves no webhook behind', async () => {
		const interrupt = new AbortController();
		const { running, heard } = listen(['--register'], { interrupts: interrupt.signal });
		await heard(/registered webhooks (\d+)/);
		expect(await hooks()).toHaveLength(5);
		interrupt.abort(new Interrupted('SIGINT'));
		expect((await running).code).toBe(130);
		expect(await hooks()).toEqual([]);
	});

	it('names the webhooks that a killed run has left, and neither those of a living one nor of people', async () => {
		const closed = await startTarget(204);
		const dead = new URL('/mailctl-listen', closed.url).href;
		await closed.close();
		target = await startTarget(204);
		for (const url of [dead, target.url, new URL('/mailctl-listen', target.url).href, dead])
			await project.json(['webhooks', 'create', '--url', url, '--type', 'OPENED']);
		const { stderr } = await project.run(['webhooks', 'listen', '--register', '--wait', '50ms']);
		expect(stderr).toMatch(
			/^hint: webhooks 1, 4 seem left by a killed listen: mailctl .*webhooks delete 1 4$/m,
		);
		expect(await hooks()).toHaveLength(4);
	});

	it('tells how to delete a webhook that it could not, on the same target', async () => {
		const warned: string[] = [];
		const warn: CommandContext['warn'] = async (text, ...hints) => {
			warned.push(
				text,
				...hints.map((hint) => hintText(hint, { words: ['--db', 'a b.db'], isRemote: false })),
			);
		};
		const webhooks = { delete: async () => Promise.reject(new Error('gone')) };
		await unregister({ warn }, { webhooks }, [{ id: 7 }]);
		expect(warned).toEqual(['webhook 7 is left', "mailctl --db 'a b.db' webhooks delete 7"]);
	});

	it('says what is wrong with its own words', async () => {
		for (const argv of [
			['--type', 'OPENED'],
			['--forward-to', 'x'],
			['--register', '--url', 'ftp://x'],
		])
			expect((await project.run(['webhooks', 'listen', ...argv])).code).toBe(2);
		await project.json(['engine', 'settings', 'set', 'allow_private_webhooks', 'false']);
		const { code, stderr } = await project.run(['webhooks', 'listen', '--register', '--wait', '1s']);
		expect(code).toBe(2);
		expect(stderr).toContain('allow_private_webhooks');
	});
});
