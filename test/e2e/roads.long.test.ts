import { mkdtemp, readdir, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../support/cli.js';
import { eventually } from '../support/eventually.js';
import { type KillingProxy, startKillingProxy } from '../support/killing-proxy.js';
import { startServer } from '../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../support/smtp-sink.js';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const end of endings.splice(0).reverse()) await end();
});

let home: string;
let sink: SmtpSink;
let proxy: KillingProxy;
let people: string;
let token: string;

beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), 'mailctl-roads-'));
	people = join(home, 'people.csv');
	await writeFile(people, 'email,name\nann@example.com,Ann\nbob@example.com,Bob\neve@example.com,Eve\n');
	sink = await startSmtpSink();
	endings.push(sink.close);
	const db = join(home, 'news.db');
	const engine = (...words: string[]) => cli(['--db', db, ...words], { env: { HOME: home } });
	await engine('engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${sink.port}`);
	await engine('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
	const server = await startServer(db);
	endings.push(server.stop);
	token = server.token;
	proxy = await startKillingProxy(server.baseUrl);
	endings.push(proxy.close);
});

function call(...words: string[]) {
	return cli(['--base-url', proxy.baseUrl, '--no-input', ...words], {
		env: { HOME: home, MAILCTL_TOKEN: token },
	});
}

const job = () => [
	...['send', '--from', 'news@example.com', '--subject', 'Hi #name#', '--text', 'Hello', '--csv', people],
	...['--campaign', 'november', '--yes', '--expect-count', '3'],
];
const reached = () => sink.received.flatMap(({ to }) => to).sort();
const all = ['ann@example.com', 'bob@example.com', 'eve@example.com'];

async function ledgers(): Promise<string[]> {
	const names = await readdir(join(home, '.local/state/mailctl/jobs')).catch(() => []);
	return names.filter((name) => name.endsWith('.jsonl'));
}

const failures: [string, (response: ServerResponse) => void][] = [
	['cut', (response) => response.destroy()],
	['answered 429', answerWith(429)],
	['answered 503', answerWith(503)],
];

function answerWith(status: number) {
	return (response: ServerResponse) => void response.writeHead(status).end('<html>busy</html>');
}

const page = (response: ServerResponse) =>
	void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Maintenance</html>');

describe('a campaign on a mailctl server behind a faulty proxy', () => {
	it.each(failures)('is sent once to everyone if GET / fails once: %s', async (_, strike) => {
		proxy.arm({ at: 1, when: 'before', only: 'GET / ', strike });
		expect(await call(...job())).toMatchObject({ code: 0 });
		expect(reached()).toEqual(all);
		proxy.arm({ at: 1, when: 'before', only: 'GET / ', strike });
		const again = await call(...job());
		expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('is finished') });
		expect(reached()).toEqual(all);
	});

	it.each(failures)('ends with 6 or 7 and sends nothing if GET / always fails: %s', async (_, strike) => {
		proxy.arm({ at: 1, when: 'before', only: 'GET / ', lasts: true, strike });
		const lost = await call('--retries', '1', ...job());
		expect([6, 7]).toContain(lost.code);
		expect(lost.stderr).toContain('Cannot tell which service this is');
		for (const words of [
			['templates', 'list'],
			['subscribers', 'import', people, '-l', '1'],
		])
			expect([6, 7], words.join(' ')).toContain((await call('--retries', '0', ...words)).code);
		expect(reached()).toEqual([]);
		expect(await ledgers()).toEqual([]);
	});
});

describe('a command for an existing campaign', () => {
	it('ends with 2 and repeats no mail if GET / no longer identifies a mailctl server', async () => {
		expect(await call(...job())).toMatchObject({ code: 0 });
		proxy.arm({ at: 1, when: 'before', only: 'GET / ', lasts: true, strike: page });
		for (const words of [
			job(),
			['campaigns', 'resume', 'november'],
			['campaigns', 'get', 'november'],
			['campaigns', 'cancel', 'november', '--yes'],
		]) {
			const refused = await call(...words);
			expect(refused, words.join(' ')).toMatchObject({
				code: 2,
				stderr: expect.stringContaining('november'),
			});
		}
		expect(reached()).toEqual(all);
		proxy.disarm();
		expect(await call('campaigns', 'get', 'november')).toMatchObject({ code: 0 });
	});

	it('repeats no mail if GET / identifies a mailctl server only after the first send', async () => {
		proxy.arm({ at: 1, when: 'before', only: 'GET / ', lasts: true, strike: page });
		expect(await call(...job())).toMatchObject({ code: 0 });
		await eventually(async () => expect(await reached()).toEqual(all));
		proxy.disarm();
		expect(await call(...job())).toMatchObject({ code: 2, stderr: expect.stringContaining('november') });
		expect(await call('campaigns', 'resume', 'november')).toMatchObject({ code: 3 });
		expect(reached()).toEqual(all);
	});
});
