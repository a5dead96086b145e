import { existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import { isBuilt } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/listen.js';
import { ask, describePostgres } from '../support/postgres.js';
import { makeProject } from '../support/project.js';
import { type Serving, type ServingOptions, startServing } from '../support/serving.js';
import { messageIdIn, type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const running: Serving[] = [];
const serve = async (options?: ServingOptions) => {
	const serving = await startServing(options);
	running.push(serving);
	return serving;
};
const sinks: SmtpSink[] = [];
const newSink = async (options: Parameters<typeof startSmtpSink>[0] = {}) => {
	const sink = await startSmtpSink(options);
	sinks.push(sink);
	return sink;
};
const json = { 'Content-Type': 'application/json' };
const mail = (to: readonly string[]) =>
	JSON.stringify({ from: 'news@example.com', to, subject: 'Hello', html_body: '<p>Hello</p>' });

afterEach(async () => {
	await Promise.all(running.splice(0).map((one) => one.stop('SIGKILL')));
	await Promise.all(sinks.splice(0).map((one) => one.close()));
});

describe.runIf(isBuilt)('mailctl serve', () => {
	it('creates an admin token in a private file at its first start, and prints the path', async () => {
		const serving = await serve();
		expect(serving.stderr()).toContain(`wrote an API token with all rights to ${serving.tokenFile}`);
		expect(statSync(serving.tokenFile).mode & 0o777).toBe(0o600);
		expect((await serving.fetch('/sub/lists/')).status).toBe(200);
		expect((await serving.fetch('/sub/lists/', { token: null })).status).toBe(401);
		expect((await serving.fetch('/sub/lists/', { token: 'wrong' })).status).toBe(401);
	});

	it('is ready only after its admin token exists', async () => {
		const project = await makeProject();
		const port = await freePort();
		const lock = new Database(project.db);
		const ready = () => fetch(`http://127.0.0.1:${port}/readyz`);
		lock.exec('BEGIN IMMEDIATE');
		const starting = serve({ project, port });
		const early = await eventually(ready);
		expect({ status: early.status, body: await early.json() }).toEqual({
			status: 503,
			body: { status: 'unavailable', detail: 'The server is starting.' },
		});
		lock.close();
		await eventually(async () => expect((await ready()).status).toBe(200));
		expect(existsSync(`${project.db}.token`)).toBe(true);
		await starting;
	});

	it('leaves all sending to a separate worker if --no-worker is given', async () => {
		const sink = await newSink();
		const serving = await serve({ smtp: sink.port, args: ['--no-worker'] });
		await serving.fetch('/message/send/', { method: 'POST', headers: json, body: mail(['a@example.com']) });
		expect(await serving.project.json(['worker', '--drain'])).toMatchObject({ sent: 1 });
		expect(sink.received).toHaveLength(1);
		const raw = sink.received[0]?.raw.toString().replaceAll('=\r\n', '');
		expect(raw).toContain(`${serving.url}/o/`);
	});

	it('starts to send when a mail server is set', async () => {
		const sink = await newSink();
		const serving = await serve();
		await serving.fetch('/message/send/', { method: 'POST', headers: json, body: mail(['a@example.com']) });
		await serving.project.json(['engine', 'init', '--smtp', `smtp://127.0.0.1:${sink.port}`]);
		await sink.until(1);
	});

	it('finishes running requests on SIGTERM and Ctrl-C, and ends with 0', async () => {
		for (const signal of ['SIGTERM', 'SIGINT'] as const) {
			const serving = await serve();
			const answers = Promise.all(
				Array.from({ length: 50 }, (_, at) =>
					serving
						.fetch('/sub/fields/', {
							method: 'POST',
							headers: json,
							body: JSON.stringify({ variable: `v${at}`, name: 'n' }),
						})
						.then(({ status }) => status)
						.catch(() => null),
				),
			);
			await eventually(() => expect(serving.log().length).toBeGreaterThan(0));
			expect(await serving.stop(signal)).toBe(0);
			const created = (await answers).filter((status) => status === 201).length;
			const fields = await serving.project.json(['fields', 'list']);
			expect((fields as unknown[]).length).toBeGreaterThanOrEqual(created);
		}
	});

	it('returns its leased messages to the queue if it stops while a mail server does not answer', async () => {
		const sink = await newSink({ onMailFrom: () => undefined });
		const serving = await serve({ smtp: sink.port });
		await serving.fetch('/message/send/', { method: 'POST', headers: json, body: mail(['a@example.com']) });
		await eventually(() => expect(sink.connections).toBeGreaterThan(0));
		expect(await serving.stop()).toBe(0);
		expect(await serving.project.json(['messages', 'list'])).toMatchObject([{ state: 'queued' }]);
	});

	it('sends every acknowledged message after a kill and a new start', async () => {
		const sink = await newSink();
		const first = await serve({ smtp: sink.port });
		const to = Array.from({ length: 40 }, (_, at) => `a${at}@example.com`);
		const statuses = to.map((one) =>
			first
				.fetch('/message/send/', { method: 'POST', headers: json, body: mail([one]) })
				.then(({ status }) => status === 200)
				.catch(() => false),
		);
		await sink.until(3);
		await first.stop('SIGKILL');
		const accepted = (await Promise.all(statuses)).filter(Boolean).length;
		await serve({ project: first.project });
		const distinct = () => new Set(sink.received.map(({ raw }) => messageIdIn(raw))).size;
		await eventually(() => expect(distinct()).toBeGreaterThanOrEqual(accepted));
	});

	it('continues if nobody reads its log', async () => {
		const serving = await serve();
		serving.process.stdout?.pause();
		for (let at = 0; at < 1500; at += 1) {
			const { status } = await serving.fetch('/sub/lists/');
			if (status !== 200) expect(status).toBe(200);
		}
		serving.process.stdout?.resume();
		expect(await serving.stop()).toBe(0);
	});
});

describePostgres('mailctl serve on a PostgreSQL server that becomes read-only', (server) => {
	it('refuses writes with 503, and is not ready until writes work again', async () => {
		const url = await server.createDatabase();
		const serving = await serve({ project: await makeProject({ db: url }) });
		const name = new URL(url).pathname.slice(1);
		const connections = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'mailctl%'`;
		const create = () =>
			serving.fetch('/sub/lists/', {
				method: 'POST',
				headers: json,
				body: JSON.stringify({ name: 'A', email_reason: 'B' }),
			});
		await ask(url, `ALTER DATABASE ${name} SET default_transaction_read_only = on`, connections);
		const detail = async () => (await serving.fetch('/readyz', { token: null })).text();
		await eventually(async () => expect(await detail()).toContain('"The database is read-only."'));
		const refused = await create();
		expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
		expect((await serving.fetch('/sub/lists/')).status).toBe(200);
		const off = 'SET default_transaction_read_only = off';
		await ask(url, off, `ALTER DATABASE ${name} RESET ALL`, connections);
		await eventually(async () => expect((await serving.fetch('/readyz')).status).toBe(200));
		expect((await create()).status).toBe(201);
	});
});
