import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { cli, programPath } from '../support/cli.js';
import {
	asked,
	databaseCalls,
	expectSound,
	type Fault,
	hasStrace,
	killAtEach,
	measurePoints,
	runNode,
	spread,
	timeLimit,
} from '../support/fault-points.js';
import { ask, describePostgres } from '../support/postgres.js';

const kills = asked('MAILCTL_KILLS', 8);
const faults = asked('MAILCTL_FAULTS', 4);

const calls = `${databaseCalls},write,writev`;

const rows = 9_000;

it.skipIf(!hasStrace)('an early kill of engine migrate leaves at most one database that works', async () => {
	const home = mkdtempSync(join(tmpdir(), 'mailctl-migrate-'));
	const place = { env: { ...process.env, HOME: home } };
	const works = async (db: string) => (await cli(['--db', db, 'lists', 'list', '-q'])).code === 0;
	const newMove = async (at: number | string) => {
		const [from, to] = [join(home, `from${at}.db`), join(home, `to${at}.db`)];
		expect(await cli(['--db', from, 'engine', 'init', '-q'])).toMatchObject({ code: 0 });
		return { from, to, words: [programPath, 'engine', 'migrate', '--from', from, '--to', to, '--yes'] };
	};
	const { points } = await measurePoints({ calls: 'fdatasync,fsync,link' }, (await newMove('')).words, place);
	for (const [at, point] of points.slice(0, 5).entries()) {
		const { from, to, words } = await newMove(at);
		expect(await runNode(words, { ...point, does: 'KILL' }, place)).toMatchObject({ code: null });
		expect((await works(from)) && (await works(to)), JSON.stringify(point)).toBe(false);
		if (at === 4) expect(await runNode(words, null, place)).toMatchObject({ code: 0 });
	}
});

describePostgres('engine migrate', (server) => {
	const home = mkdtempSync(join(tmpdir(), 'mailctl-migrate-'));
	const place = { env: { ...process.env, HOME: home } };
	const file = join(home, 'news.db');
	let made = 0;
	const newFile = () => {
		made += 1;
		return join(home, `copy${made}.db`);
	};
	let tables: unknown;

	beforeAll(async () => {
		const people = Array.from({ length: rows }, (_, n) => `p${n}@example.org,{P\\${n}\n`);
		const run = async (...argv: string[]) => {
			const stdin = `email,name\n${people.join('')}`;
			expect(await cli(['--db', file, ...argv], { env: { HOME: home }, stdin })).toMatchObject({ code: 0 });
		};
		await run('engine', 'init', '--sender', 'news@example.com', '--smtp', 'smtp://127.0.0.1:9');
		await run('lists', 'create', '--name', 'News', '--email-reason', 'x');
		await run('subscribers', 'import', '-', '--list', 'News', '--rejects', join(home, 'rejects.csv'));
		await run(
			...['send', '--list', 'News', '--from', 'news@example.com', '--subject', 'Hi'],
			...['--text', 'T #unsubscribe_url#', '--yes', '--expect-count', String(rows), '--no-wait'],
		);
		const moved = await runNode(words(await fileOf(), await server.createProject()), null, place);
		tables = JSON.parse(moved.stdout).tables;
		expect(tables).toContainEqual(expect.objectContaining({ table: 'messages', rows }));
	}, 120_000);

	const words = (from: string, to: string) => [
		...[programPath, 'engine', 'migrate', '--from', from, '--to', to, '--yes', '-o', 'json'],
	];
	/** Checks for a list too, because a move that is killed before it copies leaves an empty database. */
	const works = async (db: string) =>
		(await cli(['--db', db, 'lists', 'list'], { env: { HOME: home } })).stdout.includes('News');
	async function moveWhole(from: string, to: string): Promise<string> {
		const { code, stdout, stderr } = await runNode(words(from, to), null, place);
		expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
		expect(JSON.parse(stdout).tables).toEqual(tables);
		return to;
	}
	const fileOf = async () => {
		const from = newFile();
		copyFileSync(file, from);
		return from;
	};
	const toServer = async () => ({ from: await fileOf(), to: await server.createProject() });
	const toFile = async () => ({
		from: await moveWhole(await fileOf(), await server.createProject()),
		to: newFile(),
	});

	async function run({ from, to }: { from: string; to: string }, fault: Fault) {
		const end = await runNode(words(from, to), fault, place);
		expect((await works(from)) && (await works(to)), JSON.stringify(fault)).toBe(false);
		// The earlier run was killed after the move was complete.
		const isOver = end.stderr.includes('"code":"moved"') && (await works(to));
		return isOver ? { ...end, code: 0 } : end;
	}

	/** Completes the move, and moves the copy once more to compare the counts of rows. */
	async function check({ from, to }: { from: string; to: string }) {
		if (!(await works(to))) await moveWhole(from, to);
		expect(await works(from)).toBe(false);
		if (to.startsWith(home)) expectSound(to);
		await moveWhole(to, to.startsWith(home) ? await server.createProject() : newFile());
	}

	it.skipIf(!hasStrace).each([
		['PostgreSQL', toServer],
		['a file', toFile],
	])(
		'that is killed on the way to %s has the same result after a second run',
		async (_, begin) => {
			const { from, to } = await begin();
			const { points, run: whole } = await measurePoints({ calls }, words(from, to), place);
			expect(whole.code).toBe(0);
			const killed = await killAtEach(spread(points, kills), { begin, run, check });
			expect(killed).toBeGreaterThanOrEqual(kills / 2);
		},
		timeLimit ?? 240_000,
	);

	it.skipIf(!hasStrace)(
		'completes the move in a second run after a full or failing disk',
		async () => {
			const first = await toFile();
			const { points } = await measurePoints({ calls: databaseCalls }, words(first.from, first.to), place);
			let failed = 0;
			for (const [index, point] of spread(points, faults).entries()) {
				const databases = await toFile();
				const does = index % 2 === 0 ? 'ENOSPC' : 'EIO';
				const end = await run(databases, { ...point, does, lasts: true });
				if (end.code !== 0) expect(end, end.stderr).toMatchObject({ code: 74 });
				failed += end.code === 0 ? 0 : 1;
				await check(databases);
			}
			expect(failed).toBeGreaterThanOrEqual(faults / 2);
		},
		timeLimit ?? 240_000,
	);

	it('makes the old PostgreSQL database reject writes, with an error that names the new database', async () => {
		const { from, to } = await toFile();
		await moveWhole(from, to);
		const schema = new URL(from).searchParams.get('schema');
		for (const table of ['messages', 'campaigns', 'subscribers', 'queue_pauses', 'processes', 'migrations'])
			await expect(
				ask(from, `SET search_path = ${schema}`, `DELETE FROM ${table} WHERE FALSE`),
			).rejects.toThrow(/this database was moved to .*copy\d+\.db/);
	});
});
