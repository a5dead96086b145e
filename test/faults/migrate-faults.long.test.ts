/**
 * `engine migrate` with a full remote or local disk, and with a server that then refuses the password. The error says
 * how to continue, one database is in use at any time, and a second run continues.
 */
import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli, makeHome } from '../support/cli.js';
import { ask, canRunPostgres, type OwnPostgres, startOwn } from '../support/postgres.js';
import { fill, smallDisk } from '../support/small-disk.js';

const mebibyte = 1_048_576;
const people = 20_000;
const password = 'geheim';

describe.skipIf(!canRunPostgres())('engine migrate', () => {
	let server: OwnPostgres;
	let home: string;
	let file: string;
	beforeAll(async () => {
		server = await startOwn();
		await ask(await server.createDatabase(), `CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '${password}'`);
		home = await makeHome();
		file = join(home, 'news.db');
		const rows = Array.from({ length: people }, (_, n) => `p${n}@example.org,${'Ann '.repeat(40)}${n}\n`);
		for (const words of [
			['engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9'],
			['lists', 'create', '--name', 'News', '--email-reason', 'x'],
			['subscribers', 'import', '-', '--list', 'News', '--rejects', join(home, 'rejects.csv')],
		]) {
			const { code, stderr } = await run(['--db', file, ...words], `email,name\n${rows.join('')}`);
			expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
		}
	}, 120_000);
	afterAll(() => server.stop());

	async function run(words: readonly string[], stdin = '') {
		const result = await cli(words, { env: { HOME: home }, stdin });
		expect(result.stdout + result.stderr).not.toContain(password);
		return result;
	}
	const migrate = (from: string, to: string) =>
		run(['engine', 'migrate', '--from', from, '--to', to, '--yes']);
	const copyOf = (name: string) => {
		const copy = join(home, name);
		copyFileSync(file, copy);
		return copy;
	};
	async function counted(db: string): Promise<number | null> {
		const { code, stdout } = await run(['--db', db, 'subscribers', 'stats', '-l', 'News', '-o', 'json']);
		return code === 0 ? JSON.parse(stdout).active : null;
	}
	async function expectMoved(from: string, to: string): Promise<void> {
		expect(await migrate(from, to)).toMatchObject({ code: 0 });
		expect([await counted(from), await counted(to)]).toEqual([null, people]);
	}

	it('continues when the server’s disk has space again, and rejects a wrong password', async (context) => {
		const disk = smallDisk(64, '/tmp');
		if (disk === null) return context.skip('no disk can be mounted here');
		const url = new URL(await server.createDatabaseIn(disk));
		const as = (password: string) => Object.assign(new URL(url), { username: 'guarded', password }).href;
		const from = copyOf('there.db');
		fill(disk, 4 * mebibyte);
		expect(await migrate(from, as(password))).toMatchObject({
			code: 74,
			stderr: expect.stringMatching(/no room is left on the disk of the server/),
		});
		expect([await counted(from), await counted(as(password))]).not.toEqual([people, people]);
		rmSync(join(disk, 'ballast'));
		expect(await migrate(from, as('wrong'))).toMatchObject({
			code: 4,
			stderr: expect.stringContaining('the server refuses the user or the password'),
		});
		await expectMoved(from, as(password));
	});

	it('continues when the local disk has space again', async (context) => {
		const disk = smallDisk(64);
		if (disk === null) return context.skip('no disk can be mounted here');
		const from = await server.createDatabase();
		await expectMoved(copyOf('back.db'), from);
		fill(disk, 2 * mebibyte);
		const to = join(disk, 'news.db');
		expect(await migrate(from, to)).toMatchObject({
			code: 74,
			stderr: expect.stringMatching(/no space left/),
		});
		expect([await counted(from), await counted(to)]).not.toEqual([people, people]);
		rmSync(join(disk, 'ballast'));
		await expectMoved(from, to);
	});
});
