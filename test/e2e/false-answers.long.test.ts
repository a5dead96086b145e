import { mkdtemp, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, makeHome } from '../support/cli.js';
import { type Act, type HostileService, startHostileService } from '../support/hostile-service.js';
import { startKillingProxy } from '../support/killing-proxy.js';
import { startServer } from '../support/running-server.js';
import { startSmtpSink } from '../support/smtp-sink.js';

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
	for (const end of endings.splice(0).reverse()) await end();
});

/**
 * Starts a mailctl server behind a proxy that can answer in its place. `reached` lists the recipients of its mails.
 */
async function start() {
	const home = await mkdtemp(join(tmpdir(), 'mailctl-false-'));
	const sink = await startSmtpSink();
	endings.push(sink.close);
	const db = join(home, 'news.db');
	const smtp = `smtp://127.0.0.1:${sink.port}`;
	await cli(['--db', db, 'engine', 'init', '--sender', 'news@example.com', '--smtp', smtp], {
		env: { HOME: home },
	});
	const server = await startServer(db);
	endings.push(server.stop);
	const proxy = await startKillingProxy(server.baseUrl);
	endings.push(proxy.close);
	const people = join(home, 'people.csv');
	await writeFile(people, 'email,name\nann@example.com,Ann\nbob@example.com,Bob\n');
	const call = (...words: string[]) =>
		cli(['--base-url', proxy.baseUrl, '--no-input', '--retries', '0', ...words], {
			env: { HOME: home, MAILCTL_TOKEN: server.token },
		});
	const reached = () => sink.received.flatMap(({ to }) => to).sort();
	return { proxy, people, call, reached };
}

const falseAnswers: [string, (response: ServerResponse) => void][] = [
	['a web page', answer('text/html', '<html>Log in</html>')],
	['null', answer('application/json', 'null')],
	['JSON of another shape', answer('application/json', '{"ok": true}')],
	['nothing', answer('application/json', '')],
];

function answer(type: string, body: string) {
	return (response: ServerResponse) => void response.writeHead(200, { 'content-type': type }).end(body);
}

const both = ['ann@example.com', 'bob@example.com'];
const mail = ['--from', 'news@example.com', '--subject', 'Hi #name#', '--text', 'Hello'];

describe('send behind a proxy that replaces the answer to the release request', () => {
	it.each(
		falseAnswers,
	)('ends with 13 if the server did not get the request, and the campaign can be resumed: %s', async (_, strike) => {
		const { proxy, people, call, reached } = await start();
		const job = ['send', ...mail, '--csv', people, '--campaign', 'j', '--yes', '--expect-count', '2'];
		proxy.arm({ at: 1, when: 'before', only: releaseOf, strike });
		const begun = Date.now();
		const first = await call(...job);
		expect(first).toMatchObject({ code: 13, stderr: expect.stringContaining('may or may not have been') });
		// The command does not wait ten minutes for the mails.
		expect(Date.now() - begun).toBeLessThan(60_000);
		expect(reached()).toEqual([]);
		proxy.disarm();
		expect(await call('campaigns', 'resume', 'j', '--yes', '--expect-count', '2')).toMatchObject({ code: 0 });
		expect(reached()).toEqual(both);
	});

	it.each(
		falseAnswers,
	)('checks the campaign and continues if the server got the request: %s', async (_, strike) => {
		const { proxy, people, call, reached } = await start();
		const job = ['send', ...mail, '--csv', people, '--campaign', 'j', '--yes', '--expect-count', '2'];
		proxy.arm({ at: 1, when: 'after', only: releaseOf, strike });
		expect(await call(...job)).toMatchObject({ code: 0 });
		expect(reached()).toEqual(both);
	});
});

const releaseOf = /^POST \/ext\/mailings\/[^/]+\/release\/ /;

describe('an import whose last answer is malformed', () => {
	it('ends with 7, and continues with --resume', async () => {
		const { proxy, people, call } = await start();
		await call('lists', 'create', '--name', 'Readers', '--email-reason', 'r');
		const finish = /^POST \/ext\/imports\/[^/]+\/finish\/ /;
		proxy.arm({ at: 1, when: 'before', only: finish, strike: answer('application/json', '{"created": 2}') });
		expect(await call('subscribers', 'import', people, '-l', '1')).toMatchObject({ code: 7 });
		expect(await call('subscribers', 'import', people, '-l', '1', '--resume')).toMatchObject({ code: 0 });
	});
});

describe('a command', () => {
	let service: HostileService;
	beforeEach(async () => {
		service = await startHostileService();
		service.introduce({ kind: 'json', body: { service: 'mailctl', extensions: ['templates', 'senders'] } });
		endings.push(service.close);
	});

	const create = async (words: readonly string[], act: Act) => {
		service.answer(act);
		const { code, stderr } = await cli(['--base-url', service.url, '--no-input', '-o', 'json', ...words], {
			env: { HOME: await makeHome(), MAILCTL_TOKEN: 't' },
		});
		const { error } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '');
		return { code, error };
	};

	const creations: [string, string[]][] = [
		['list', ['lists', 'create', '--name', 'N', '--email-reason', 'r']],
		['sender', ['senders', 'add', 'a@example.com']],
	];
	const unclear: [string, Act, number][] = [
		['a lost connection', { kind: 'cut' }, 6],
		['a 500', { kind: 'text', status: 500, text: '<html>' }, 7],
		['a web page', { kind: 'text', type: 'text/html', text: '<html>Log in</html>' }, 7],
		['null', { kind: 'json', body: null }, 7],
	];

	describe.each(creations)('that creates a %s', (_, words) => {
		it.each(unclear)('reports after %s that the record may exist', async (_, act, exit) => {
			const { code, error } = await create(words, act);
			expect({ code, error }).toMatchObject({
				code: exit,
				error: {
					exit_code: exit,
					message: expect.stringContaining('may have been created'),
					retryable: false,
				},
			});
			expect(service.asked()).toHaveLength(1);
		});

		it('reports a refusal without saying that the record may exist', async () => {
			const refused = await create(words, { kind: 'json', status: 400, body: { name: ['No.'] } });
			expect(refused).toMatchObject({ code: 5, error: { message: expect.not.stringContaining('may have') } });
			const away = await create(words, { kind: 'json', status: 403, body: { detail: 'No.' } });
			expect(away).toMatchObject({ code: 4, error: { message: expect.not.stringContaining('may have') } });
		});
	});
});
