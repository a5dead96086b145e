import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import Database from 'better-sqlite3';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { createSpinner, withStatusLine } from '../../src/cli/render/progress.js';
import { type CliOptions, cli } from '../support/cli.js';
import { describePostgres } from '../support/postgres.js';
import { makeProject } from '../support/project.js';

const gone = /\r\x1b\[K$/;

describe('the line that shows what a command waits for', () => {
	function terminal() {
		let now = 0;
		const written: string[] = [];
		const stream = {
			...{ isTTY: true, columns: 80, raw: new PassThrough() },
			write: async (text: string | Uint8Array) => void written.push(String(text)),
		};
		const elapsedMs = () => now;
		const line = withStatusLine(stream, { elapsedMs });
		const begin = createSpinner(line, { unicode: false, elapsedMs });
		const text = () => written.splice(0).join('');
		return { line, begin, text, stdout: line.beside(stream), pass: (ms: number) => (now += ms) };
	}

	it('is delayed by other output, and hidden by a progress line', async () => {
		const { line, begin, text, pass } = terminal();
		const first = begin('a.example');
		pass(900);
		await line.write('warning: slow\n');
		pass(900);
		begin('b.example').end();
		line.stand('sending 1 of 3');
		pass(2_000);
		begin('b.example').end();
		expect(text()).toBe('warning: slow\n\r\x1b[Ksending 1 of 3');
		first.end();
	});

	it('is removed before stdout prints to the same terminal', async () => {
		const { begin, text, pass, stdout } = terminal();
		const first = begin('a.example');
		pass(1_000);
		begin('b.example').end();
		await stdout.write('a row\n');
		expect(text()).toMatch(/1 s\r\x1b\[Ka row\n$/);
		first.end();
	});
});

describe('a command that waits', () => {
	let stop = () => {};
	afterEach(() => stop());

	/** Answers the first request with 503, and the others after `release` is called. */
	async function startSlow() {
		const held: ServerResponse[] = [];
		let isReleased = false;
		let requests = 0;
		const answer = (response: ServerResponse) =>
			response
				.setHeader('Content-Type', 'application/json')
				.end('{"count":0,"next":null,"previous":null,"results":[]}');
		const server = createServer((_, response) => {
			requests += 1;
			if (requests === 1) response.writeHead(503, { 'Retry-After': '0' }).end();
			else if (isReleased) answer(response);
			else held.push(response);
		}).listen(0);
		stop = () => {
			server.close();
			server.closeAllConnections();
		};
		const release = () => {
			isReleased = true;
			for (const response of held.splice(0)) answer(response);
		};
		return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, release };
	}
	const words = (url: string) => ['--base-url', url, 'lists', 'list'];

	it('shows the server and the retry on a line, and removes this line at the end', async () => {
		const { url, release } = await startSlow();
		const { code, stderr } = await cli(words(url), {
			columns: 80,
			env: { MAILCTL_TOKEN: 't' },
			heard: (text) => {
				if (text.includes('retrying (1 of 3)')) release();
			},
		});
		expect(code).toBe(0);
		expect(stderr).toMatch(/waiting for 127\.0\.0\.1:\d+, \d+ s, retrying \(1 of 3\)/);
		expect(stderr.replace('nothing to show\n', '')).toMatch(gone);
	});

	it('shows that another process has locked the database', async () => {
		const project = await makeProject();
		const other = new Database(project.db);
		other.exec('BEGIN IMMEDIATE');
		const { code, stderr } = await project.run(['lists', 'create', '--name', 'L', '--email-reason', 'r'], {
			columns: 80,
			heard: (text) => {
				if (text.includes('waiting for') && other.inTransaction) other.exec('ROLLBACK');
			},
		});
		other.close();
		expect(code).toBe(0);
		expect(stderr).toContain('waiting for the database, which another process has locked, ');
		expect(stderr).toMatch(gone);
	});

	it('shows that the mail server does not answer', async () => {
		const words = 'send --from news@example.com --to a@example.com --subject S --text x';
		const sockets: Socket[] = [];
		const silent = createTcpServer((socket) => sockets.push(socket.on('error', () => undefined))).listen(0);
		stop = () => void silent.close();
		const { port } = silent.address() as AddressInfo;
		const { stderr } = await (await makeProject({ smtp: port })).run(words.split(' '), {
			columns: 80,
			heard: (text) => {
				if (text.includes('waiting for')) for (const socket of sockets) socket.destroy();
			},
		});
		expect(stderr).toContain(`waiting for 127.0.0.1:${port}, `);
	});

	it('shows the progress of a database check on a line, and removes this line at the end', async () => {
		const { run, db } = await makeProject();
		const { code, stderr } = await run(['engine', 'check'], { columns: 200 });
		expect(code).toBe(0);
		expect(stderr).toContain(`reading ${db}`);
		expect(stderr).toContain(`recounting ${db}`);
		expect(stderr.replace(`${db} is undamaged, and its counters are correct\n`, '')).toMatch(gone);
		expect((await run(['engine', 'check'])).stderr).not.toContain('reading');
	});

	it('exits after --timeout if the database stays locked', async () => {
		const project = await makeProject();
		const other = new Database(project.db);
		other.exec('BEGIN IMMEDIATE');
		const words = ['lists', 'create', '--name', 'L', '--email-reason', 'r', '--timeout', '100ms'];
		const { code, stderr } = await project.run(words, {
			columns: 80,
			heard: (text) => {
				if (text.includes('waiting for') && other.inTransaction) other.exec('ROLLBACK');
			},
		});
		other.close();
		expect({ code, stderr }).toEqual({
			code: 6,
			stderr: expect.stringContaining('by another process; try again'),
		});
	});

	describePostgres('on PostgreSQL', (server) => {
		it('shows that the database server does not answer', async () => {
			const project = await makeProject({ db: await server.createDatabase() });
			const holder = new pg.Client({ connectionString: project.db });
			await holder.connect();
			await holder.query('BEGIN');
			await holder.query(`SELECT pg_advisory_xact_lock(hashtextextended('mailctl public project 0', 0))`);
			let released: Promise<unknown> | null = null;
			const { code, stderr } = await project.run(['lists', 'create', '--name', 'L', '--email-reason', 'r'], {
				columns: 80,
				heard: (text) => {
					if (text.includes('waiting for')) released ??= holder.query('ROLLBACK');
				},
			});
			await released;
			await holder.end();
			expect(code).toBe(0);
			expect(stderr).toMatch(/waiting for the database server, \d+ s/);
			expect(stderr).toMatch(gone);
		});
	});

	it.each<[string, CliOptions, string[]]>([
		['with --quiet', { columns: 80 }, ['-q']],
		['on a terminal whose lines cannot be rewritten', { columns: 80, env: { TERM: 'dumb' } }, []],
		['without a terminal', {}, []],
	])('shows no waiting line %s', async (_, options, more) => {
		const { url } = await startSlow();
		const env = { MAILCTL_TOKEN: 't', ...options.env };
		const { code, stderr } = await cli([...words(url), '--timeout', '1500ms', '--retries', '1', ...more], {
			...options,
			env,
		});
		expect({ code, stderr }).toEqual({ code: 6, stderr: expect.not.stringContaining('waiting') });
	});
});
