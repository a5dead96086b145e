/**
 * Faults of a PostgreSQL server while `serve` and commands use it: disk space, connections, time, the password. Errors
 * say what to do without the password, and `serve` continues after the fault.
 */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { cli, makeHome } from '../support/cli.js';
import { type CountingSink, startCountingSink } from '../support/counting-sink.js';
import { expectWhole } from '../support/databases.js';
import { eventually } from '../support/eventually.js';
import { ask, canRunPostgres, type OwnPostgres, startOwn } from '../support/postgres.js';
import { startServer } from '../support/running-server.js';
import { fill, smallDisk } from '../support/small-disk.js';

const password = 'geheim';

describe.skipIf(!canRunPostgres())('a PostgreSQL server', () => {
	let server: OwnPostgres;
	beforeAll(async () => {
		server = await startOwn({ settings: { max_connections: 20 } });
	});
	afterAll(() => server.stop());

	async function begin(admin: string) {
		const name = new URL(admin).pathname.slice(1);
		await ask(
			admin,
			`DO $$ BEGIN CREATE ROLE guarded LOGIN PASSWORD '${password}'; EXCEPTION WHEN OTHERS THEN NULL; END $$`,
		);
		await ask(admin, `ALTER DATABASE ${name} OWNER TO guarded`, 'ALTER SCHEMA public OWNER TO guarded');
		const url = new URL(admin);
		url.username = 'guarded';
		url.password = password;
		const sink = await startCountingSink();
		onTestFinished(sink.close);
		const env = { HOME: await makeHome(), MAILCTL_DB: url.href };
		const run = async (...words: string[]) => {
			const result = await cli(words, { env });
			expect(result.stdout + result.stderr).not.toContain(password);
			return result;
		};
		const smtp = `smtp://127.0.0.1:${sink.port}`;
		for (const words of [
			['engine', 'init', '--smtp', smtp, '--sender', 'news@example.com'],
			['lists', 'create', '--name', 'News', '--email-reason', 'x'],
		]) {
			const { code, stderr } = await run(...words);
			expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
		}
		return { admin, name, url: url.href, run, sink };
	}

	async function serve(db: string) {
		const serving = await startServer(db);
		onTestFinished(async () => {
			expect(await serving.stop()).toBe(0);
			expect(serving.log()).not.toContain(password);
		});
		const headers = { 'X-Secure-Token': serving.token, 'Content-Type': 'application/json' };
		const call = async (path: string, body?: object) => {
			const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
			const answer = await fetch(serving.baseUrl + path, { headers, ...init });
			const text = await answer.text();
			expect(text).not.toContain(password);
			return { status: answer.status, text, retryAfter: answer.headers.get('Retry-After') };
		};
		let people = 0;
		return {
			call,
			add: () => {
				people += 1;
				return call('/sub/lists/1/subscribers/', { email: `p${people}@example.org`, name: 'x'.repeat(100) });
			},
			send: (to: string) =>
				call('/message/send/', { from: 'news@example.com', to: [to], subject: 'Hi', html_body: 'Hello' }),
		};
	}

	async function expectWell(
		{ add, send }: Awaited<ReturnType<typeof serve>>,
		{ url, sink }: { url: string; sink: CountingSink },
	): Promise<void> {
		await eventually(async () => expect(await add()).toMatchObject({ status: 201 }));
		const before = sink.received();
		expect(await send('ann@example.org')).toMatchObject({ status: 200 });
		await eventually(() => expect(sink.received()).toBe(before + 1));
		await expectWhole(url);
	}

	it('with a full disk rejects writes, answers reads, and accepts writes again when there is space', async (context) => {
		const disk = smallDisk(48, '/tmp');
		if (disk === null) return context.skip('no disk can be mounted here');
		const own = await startOwn();
		onTestFinished(() => own.stop());
		const project = await begin(await own.createDatabaseIn(disk));
		const serving = await serve(project.url);
		expect(await serving.add()).toMatchObject({ status: 201 });

		fill(disk);
		let last = await serving.add();
		for (let tries = 0; last.status === 201 && tries < 2_000; tries += 1) last = await serving.add();
		expect(last).toMatchObject({ status: 507, text: expect.stringContaining('disk of the service is full') });
		expect(await serving.call('/sub/lists/1/')).toMatchObject({ status: 200 });
		const page = join(await makeHome(), 'page.html');
		await writeFile(page, randomBytes(400_000).toString('base64'));
		expect(await project.run('templates', 'create', '--name', 'T', '--html-file', page)).toMatchObject({
			code: 74,
			stderr: expect.stringMatching(/no room is left on the disk of the server \(could not extend file/),
		});
		rmSync(join(disk, 'ballast'));
		await expectWell(serving, project);
	});

	it('stops when the disk of its WAL is full, and loses no acknowledged row', async (context) => {
		const disk = smallDisk(192, '/tmp');
		const tables = smallDisk(64, '/tmp');
		if (disk === null || tables === null) return context.skip('no disk can be mounted here');
		await chmod(disk, 0o755);
		const folder = join(disk, 'server');
		await mkdir(folder);
		const settings = { min_wal_size: '32MB', max_wal_size: '64MB', restart_after_crash: 'off' };
		const own = await startOwn({ folder, settings });
		onTestFinished(() => own.stop());
		const project = await begin(await own.createDatabaseIn(tables));
		const serving = await serve(project.url);
		let added = 0;
		const add = async () => {
			const answer = await serving.add();
			if (answer.status === 201) added += 1;
			return answer;
		};

		fill(disk);
		let last = await add();
		for (let tries = 0; last.status === 201 && tries < 50; tries += 1) {
			await ask(project.admin, 'SELECT pg_switch_wal()').catch(() => undefined);
			last = await add();
		}
		expect(last).toMatchObject({ status: 503, text: expect.stringContaining('cannot be reached') });
		expect(await project.run('lists', 'list')).toMatchObject({ code: 6 });
		rmSync(join(disk, 'ballast'));
		await own.restart();
		await expectWell(serving, project);
		const [kept] = await ask(project.admin, 'SELECT count(*)::int AS kept FROM subscribers');
		expect([added + 1, added + 2]).toContain(kept?.['kept']);
	});

	function occupy(url: string): () => Promise<void> {
		const held: pg.Client[] = [];
		let isOver = false;
		const take = async () => {
			while (!isOver) {
				const client = new pg.Client({ connectionString: url });
				client.on('error', () => undefined);
				const isTaken = await client.connect().then(
					() => held.push(client) > 0,
					() => false,
				);
				if (!isTaken) await ask(adminOf(url), others);
			}
			await Promise.all(held.map((client) => client.end()));
		};
		const taking = take();
		const free = () => {
			isOver = true;
			return taking;
		};
		onTestFinished(free);
		return free;
	}

	it('refuses connections beyond its limit, and `serve` continues when a connection is free', async () => {
		const project = await begin(await server.createDatabase());
		const serving = await serve(project.url);
		const free = occupy(project.url);
		await eventually(async () =>
			expect(await serving.call('/sub/lists/1/')).toMatchObject({
				status: 503,
				text: expect.stringContaining('The database is busy. Try again.'),
				retryAfter: '1',
			}),
		);
		await eventually(async () =>
			expect(await project.run('lists', 'list')).toMatchObject({
				code: 6,
				stderr: expect.stringMatching(
					/no connection is left \(max_connections\); use a smaller \?pool=, or raise/,
				),
			}),
		);
		await free();
		await expectWell(serving, project);
	});

	it('with a changed password refuses commands, and `serve` continues when the old password is restored', async () => {
		const project = await begin(await server.createDatabase());
		const serving = await serve(project.url);
		const change = (to: string) => ask(project.admin, `ALTER ROLE guarded PASSWORD '${to}'`, others);
		await change('other');
		expect(await serving.add()).toMatchObject({
			status: 500,
			text: expect.stringContaining('The database refuses the user of the service.'),
		});
		expect(await project.run('lists', 'list')).toMatchObject({
			code: 4,
			stderr: expect.stringContaining('the server refuses the user or the password'),
		});
		await change(password);
		await expectWell(serving, project);
	});
});

const others = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE usename = 'guarded' AND application_name LIKE 'mailctl%'`;

function adminOf(url: string): string {
	const admin = new URL(url);
	admin.username = 'postgres';
	admin.password = '';
	return admin.href;
}
