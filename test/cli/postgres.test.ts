/** Commands on PostgreSQL. No output contains the password. */
import { writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { cli, makeHome } from '../support/cli.js';
import { startCountingSink } from '../support/counting-sink.js';
import { ask, describePostgres } from '../support/postgres.js';
import { startServer } from '../support/running-server.js';

describePostgres('mailctl on PostgreSQL', (server) => {
	let url: string;
	let home: string;
	beforeAll(async () => {
		const place = new URL(await server.createDatabase());
		place.password = 'geheim';
		url = place.href;
		home = await makeHome();
	});

	async function run(...argv: string[]) {
		const result = await cli([...argv, '--db', url], { env: { HOME: home } });
		expect(result.stdout + result.stderr).not.toContain('geheim');
		return result;
	}

	it('rejects a URL with a misspelt parameter or a missing database, and creates nothing', async () => {
		const init = (name: string) => cli(['engine', 'init', '--db', name], { env: { HOME: home } });
		for (const [name, meant, code] of [
			[`${url}?shema=x`, 'did you mean schema?', 2],
			[`${url}?target_session_attr=any`, 'did you mean target_session_attrs?', 2],
			[`${url}?pool=abc`, '?pool= that is not a number', 2],
			[`${url}?sslrootcert=/nowhere`, '?sslrootcert=/nowhere', 2],
			[new URL('/nodb', url).href, 'this database does not exist', 74],
			[new URL('/template0', url).href, 'this database takes no connections', 74],
			[`postgres://u@${'h'.repeat(300)}/db`, 'EINVAL', 6],
		] as const) {
			const refused = await init(name);
			expect(refused).toMatchObject({ code, stderr: expect.stringContaining(meant) });
			expect(refused.stderr).not.toContain('geheim');
		}
		expect((await run('lists', 'list')).code).toBe(2);
		const named = `${url}?application_name=news&connect_timeout=5&sslmode=disable&schema=named`;
		expect((await init(named)).code).toBe(0);
	});

	it('prints how to create the tables, and engine init creates them only once', async () => {
		expect(await run('lists', 'list')).toMatchObject({
			code: 2,
			stderr: expect.stringMatching(/there is no database at postgres:.*mailctl engine init --db/s),
		});
		expect((await run('engine', 'init', '--dry-run', '-o', 'json')).code).toBe(0);
		expect((await run('lists', 'list')).code).toBe(2);
		expect(JSON.parse((await run('engine', 'init', '-o', 'json')).stdout)).toMatchObject({ created: true });
		expect(JSON.parse((await run('engine', 'init', '-o', 'json')).stdout)).toMatchObject({ created: false });
	});

	it.each([
		['?schema=one&pool=3&application_name=news&connect_timeout=5', '-one'],
		['?connect_timeout=5&schema=two', '-two'],
		['?schema=select', '-select'],
		['?pool=3&schema=public', ''],
	])('names the token file after host, database and schema (except public): %s', async (query, ending) => {
		const place = new URL(await server.createDatabase());
		const named = `${place.href}${query}`;
		expect((await cli(['engine', 'init', '--db', named], { env: { HOME: home } })).code).toBe(0);
		const { tokenFile, stop } = await startServer(named);
		await stop();
		const name = `${place.host}${place.pathname}`.replace(/[^\w.-]+/g, '-');
		expect(basename(tokenFile)).toBe(`postgres-${name}${ending}.token`);
	});

	it('counts wrapped secrets even without their key', async () => {
		const database = await server.createDatabase();
		const env = { HOME: home };
		expect(await cli(['engine', 'secrets', 'status', '--db', database], { env })).toMatchObject({ code: 2 });
		const key = join(home, 'key');
		await writeFile(key, `${'ab'.repeat(32)}\n`, { mode: 0o600 });
		const withKey = { ...env, MAILCTL_KEY_FILE: key };
		const init = ['engine', 'init', '--smtp', 'smtp://user@127.0.0.1:2525', '--smtp-password-file', key];
		expect((await cli([...init, '--db', database], { env: withKey })).code).toBe(0);
		const counted = await cli(['engine', 'secrets', 'status', '-o', 'json', '--db', database], { env });
		expect(counted).toMatchObject({ code: 0, stderr: '' });
		const [of, ...others] = JSON.parse(counted.stdout) as { key: string | null; secrets: number }[];
		expect(others).toEqual([]);
		expect(of?.key).toEqual(expect.any(String));
		expect(of?.secrets).toBeGreaterThan(0);
	});

	it('imports people, sends mail and prints a report', async () => {
		const sink = await startCountingSink();
		await run('engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${sink.port}`);
		await run('lists', 'create', '--name', 'News', '--email-reason', 'You asked.');
		const file = join(home, 'people.csv');
		const people = Array.from({ length: 50 }, (_, n) => `p${n}@example.org,P ${n}\n`);
		await writeFile(file, `email,name\n${people.join('')}`);
		const imported = await run('subscribers', 'import', file, '--list', 'News');
		expect(imported).toMatchObject({ code: 0 });
		const sent = await run(
			...['send', '--list', 'News', '--from', 'news@example.com', '--subject', 'Hi #name#'],
			...['--text', 'Hello #unsubscribe_url#', '--yes', '--expect-count', '50'],
		);
		expect(sent).toMatchObject({ code: 0 });
		expect(sink.received()).toBe(50);
		const report = JSON.parse((await run('report', '-o', 'json')).stdout);
		expect(report.data.at(-1)).toMatchObject({ sent: 50 });
		sink.close();
	});

	it('leaves no leased message if several workers drain the queue', async () => {
		const sink = await startCountingSink();
		await run('engine', 'settings', 'set', 'smtp_url', `smtp://127.0.0.1:${sink.port}`);
		for (const subject of ['One', 'Two', 'Three', 'Four'])
			await run(
				...['send', '--list', 'News', '--from', 'news@example.com', '--subject', subject],
				...['--text', 'Hello #unsubscribe_url#', '--yes', '--expect-count', '50', '--no-wait'],
			);
		const before = sink.received();
		await Promise.all([1, 2, 3, 4].map(() => run('worker', '--drain', '-o', 'json')));
		expect(sink.received() - before).toBe(200);
		const { messages } = JSON.parse((await run('engine', 'queue', 'stats', '-o', 'json')).stdout);
		expect(messages).toEqual({ sent: 250 });
		sink.close();
	});

	it('stores the URL in a profile and prints it in hints, both without the password', async () => {
		expect((await run('profile', 'add', 'pg')).code).toBe(0);
		const ofProfile = (...argv: string[]) => cli(['-p', 'pg', ...argv], { env: { HOME: home } });
		expect((await ofProfile('lists', 'list', '-o', 'json')).stdout).toContain('News');
		const listed = await cli(['profile', 'list', '-o', 'json'], { env: { HOME: home } });
		expect(JSON.parse(listed.stdout)).toContainEqual(
			expect.objectContaining({ name: 'pg', db: url.replace(':geheim', '') }),
		);
		expect(listed.stdout).not.toContain('geheim');
		const other = await cli(['engine', 'init', '--db', `${url}?schema=other`], { env: { HOME: home } });
		expect(other.stderr).toMatch(/mailctl --db 'postgres:.*schema=other' engine init --smtp/);
		expect(other.stderr).not.toContain('geheim');
	});

	it('checks the database with doctor, and rejects commands that need a database file', async () => {
		const { stdout } = await run('doctor', '--offline', '--only', 'database', '-o', 'json');
		const found: { check: string; level: string }[] = JSON.parse(stdout);
		expect(found.map(({ check, level }) => `${check} ${level}`)).toEqual([
			'database.server ok',
			'database.schema ok',
			'database.durability ok',
			'database.connections ok',
			'database.clock ok',
		]);
		expect(await run('engine', 'backup', 'copy.db')).toMatchObject({
			code: 2,
			stderr: expect.stringMatching(/^hint: pg_dump -Fc -d '?postgres:[^?]*( -n \w+)? -f copy\.db$/m),
		});
		const refused = await run('engine', 'restore', 'copy.dump');
		expect(refused).toMatchObject({
			code: 2,
			stderr: expect.stringMatching(
				/^hint: into a new, empty database: pg_restore --no-owner --exit-on-error -d '?postgres:[^? ]* copy\.dump$/m,
			),
		});
		expect(refused.stderr).toMatch(
			/^hint: before any worker uses the new database: mailctl .*engine queue pause$/m,
		);
	});

	it('detects counters that differ from the rows, and corrects them', async () => {
		await run('lists', 'create', '--name', 'Counted', '--email-reason', 'asked');
		const [{ id } = { id: 0 }] = await ask(url, "SELECT id FROM lists WHERE name = 'Counted'");
		await ask(url, `INSERT INTO list_counters (list_id, shard, active, inactive) VALUES (${id}, 15, 5, 0)`);
		const wrong = await run('engine', 'check');
		expect(wrong).toMatchObject({ code: 11, stderr: expect.stringContaining('"Counted" do not match') });
		expect(await run('engine', 'check', '--repair', '--yes')).toMatchObject({ code: 0 });
		expect(await run('engine', 'check')).toMatchObject({ code: 0 });
	});
});
