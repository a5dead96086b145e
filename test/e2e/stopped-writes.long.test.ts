import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Interrupted } from '../../src/cli/frame/errors.js';
import { cli, makeHome } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { ask, describePostgres } from '../support/postgres.js';

const mail = '--from news@example.com --subject S --text T';
const undone = 'interrupted: the change in progress was undone\n';

/** The arguments of each command, and its error if that is not `undone` with the hint to run it again. */
const calls: Readonly<Record<string, readonly [words: string, says?: string]>> = {
	'lists create': ['--name M --email-reason r'],
	'lists delete': ['1 --confirm L'],
	'subscribers update': ['ann@example.com --list 1 --name Ann'],
	'subscribers import': ['people.csv --list 1', undone],
	'subscribers erase': ['ann@example.com --confirm ann@example.com'],
	'fields delete': ['city --confirm city'],
	send: [`--from news@example.com --to ann@example.com --subject S --text T --no-wait`],
	'campaigns cancel': ['j --yes'],
	'templates push': ['mails.d', undone],
	'engine check': ['--repair'],
	apply: ['--file mail.yaml'],
	api: [
		'POST /sub/fields/ --data {"variable":"zip","name":"Zip"}',
		'interrupted: the change in progress may have been made\n',
	],
};

describePostgres('while another connection holds a lock on PostgreSQL', (server) => {
	let db = '';
	let home = '';
	let holder: pg.Client;

	const run = async (line: string) => {
		const result = await cli(['--db', db, ...line.split(' '), '-o', 'json'], { env: { HOME: home } });
		expect(result.code, `${line}: ${result.stderr}`).toBe(0);
		return JSON.parse(result.stdout);
	};
	const file = (name: string, text: string) => writeFile(join(home, name), text);

	beforeAll(async () => {
		db = await server.createDatabase();
		home = await makeHome();
		await file('text.txt', 'Hello');
		await mkdir(join(home, 'mails.d', 'T'), { recursive: true });
		await file('mails.d/T/body.txt', 'Hello all');
		await file('people.csv', 'email\nnew@example.com\n');
		await file('mail.yaml', 'lists: [{name: New, email_reason: r}]\n');
		await run('engine init --sender news@example.com --smtp smtp://127.0.0.1:9');
		await run('lists create --name L --email-reason r');
		await run('fields create --variable city --name City');
		await run('subscribers create -l 1 --email ann@example.com --meta city=Oslo');
		await run('subscribers create -l 1 --email off@example.com --inactive');
		await run(`templates create --name T --text-file ${join(home, 'text.txt')}`);
		await run(`send ${mail} --to ann@example.com --no-wait`);
		await run(`send ${mail} --list 1 --campaign j --yes --expect-count 1 --no-wait --transactional`);
		holder = new pg.Client({ connectionString: db });
		await holder.connect();
	}, 120_000);
	afterAll(() => holder.end());

	const held = async <T>(work: () => Promise<T>): Promise<T> => {
		await holder.query('BEGIN');
		await holder.query(`SELECT pg_advisory_xact_lock(hashtextextended('mailctl public project 0', 0))`);
		return work().finally(() => holder.query('ROLLBACK'));
	};
	const waiting = async () => {
		const [row] = await ask(db, `SELECT count(*) AS n FROM pg_locks WHERE NOT granted`);
		return Number(row?.['n']);
	};
	const kept = async () => {
		const tables = await ask(
			db,
			`SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'
			AND table_name NOT IN ('processes', 'outcomes', 'leaders') ORDER BY 1`,
		);
		const texts = tables.map(
			({ name }) =>
				`SELECT '${name}' AS of, md5(string_agg(t::text, '|' ORDER BY t::text)) AS rows FROM ${name} t`,
		);
		return ask(db, texts.join(' UNION ALL '));
	};

	const wordsOf = (path: string, line: string) =>
		['--db', db, ...path.split(' '), ...line.split(' ')]
			.filter((word) => word !== '')
			.map((word) => (/^(.*\.csv|mail\.yaml|mails\.d)$/.test(word) ? join(home, word) : word));

	it.each(Object.entries(calls))('Ctrl-C undoes a waiting command and ends it with 130: %s', async (path, [
		line,
		says,
	]) => {
		const before = await kept();
		const stop = new AbortController();
		const argv = wordsOf(path, line);
		const { code, stderr } = await held(async () => {
			const running = cli(argv, { env: { HOME: home }, interrupts: stop.signal });
			await eventually(async () => expect(await waiting()).toBe(1));
			stop.abort(new Interrupted('SIGINT'));
			const ended = await running;
			await eventually(async () => expect(await waiting()).toBe(0));
			return ended;
		});
		expect(code).toBe(130);
		if (says === undefined) {
			expect(stderr).toContain(`error: ${undone}`);
			expect(stderr).toContain('hint: run the command again\n');
		} else expect(stderr).toContain(`error: ${says}`);
		expect(await kept()).toEqual(before);
	});
});
