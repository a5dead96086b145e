// Exit codes of `send`: 13 means it may have happened, 14 it is queued, 9 nobody gets it.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { errorOf, makeProject } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';

const mail = ['--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi'];
const toAnn = ['send', ...mail, '--to', 'ann@example.com'];

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

interface Answer {
	status: number;
	headers?: Readonly<Record<string, string>>;
	body?: string;
}

/** Starts another service, which gives every POST this answer. `sends` lists their paths. */
async function startAnswering({ status, headers = {}, body = '{"detail": "no"}' }: Answer) {
	const sends: string[] = [];
	const server = createServer((request, response) => {
		request.resume().on('end', () => {
			if (request.method === 'GET') return response.writeHead(404).end();
			sends.push(request.url ?? '');
			return response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
		});
	});
	await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
	opened.push({ close: () => new Promise((resolve) => server.close(resolve)) });
	// A listening TCP server has an address of this type.
	const { port } = server.address() as AddressInfo;
	const run = (argv: readonly string[]) =>
		cli(['--base-url', `http://127.0.0.1:${port}`, '--retries', '0', ...argv, '-o', 'json'], {
			env: { MAILCTL_TOKEN: 't' },
		});
	return { run, sends };
}

const request = JSON.stringify({
	from: 'news@example.com',
	to: ['ann@example.com'],
	subject: 'S',
	text_body: 'T',
});
const roads = [
	['send', toAnn],
	['api', ['api', 'POST', '/message/send/', '--data', request]],
] as const;

describe.each(roads)('mailctl %s with a single message', (_, words) => {
	it.each([
		408, 500, 502, 503, 504, 520,
	])('exits with 13 (uncertain) if the service answers %d', async (status) => {
		const { run, sends } = await startAnswering({ status });
		const ended = await run(words);
		expect(ended.code).toBe(13);
		expect(errorOf(ended)).toMatchObject({
			code: 'uncertain',
			exit_code: 13,
			message: expect.stringMatching(/^the message may or may not have been sent: .*/),
			http: { status, method: 'POST', path: '/message/send/' },
			retryable: false,
		});
		expect(sends).toHaveLength(1);
	});

	it.each([
		[{ status: 503, headers: { 'retry-after': '1' } }, 7],
		[{ status: 429 }, 7],
		[{ status: 501 }, 7],
		[{ status: 507 }, 7],
		[{ status: 302, headers: { location: '/elsewhere/' } }, 7],
		[{ status: 400 }, 5],
		[{ status: 401 }, 4],
	])('concludes from the answer %j that nothing was sent, and exits with %d', async (answer, code) => {
		const { run } = await startAnswering(answer);
		expect((await run(words)).code).toBe(code);
	});
});

it.each([
	'<html>welcome</html>',
	'null',
	'{"ok": true}',
	'[]',
])('send exits with 13 (uncertain) if the answer is 200 with the body %s', async (body) => {
	const { run } = await startAnswering({ status: 200, body });
	expect(errorOf(await run(toAnn))).toMatchObject({ exit_code: 13, retryable: false });
});

describe('mailctl send with a message that must wait', () => {
	async function withoutMailServer() {
		const gone = await startSmtpSink();
		await gone.close();
		return makeProject({ smtp: gone.port });
	}
	const queued = {
		code: 'accepted_and_queued',
		exit_code: 14,
		message: expect.stringMatching(/^accepted and queued, so do not repeat the command: /),
		retryable: false,
	};

	it('exits with 14 if the mail server is unreachable', async () => {
		const project = await withoutMailServer();
		const people = await project.file('people.csv', 'email\nann@example.com\n');
		const job = ['send', ...mail, '--csv', people, '--yes', '--expect-count', '1'];
		for (const words of [toAnn, job]) {
			const ended = await project.run([...words, '-o', 'json']);
			expect(ended.code).toBe(14);
			expect(errorOf(ended)).toMatchObject(queued);
		}
		expect(await project.json(['messages', 'list'])).toMatchObject([
			{ state: 'queued' },
			{ state: 'queued' },
		]);
	});

	it('exits with 14 if the queue is paused, on a database and on a server', async () => {
		const sink = await startSmtpSink();
		opened.push(sink);
		const project = await makeProject({ smtp: sink.port });
		await project.json(['engine', 'queue', 'pause', '--reason', 'moving']);
		expect(errorOf(await project.run([...toAnn, '-o', 'json']))).toMatchObject({
			...queued,
			message: 'accepted and queued, so do not repeat the command: the queue is paused (moving)',
			hint: expect.stringContaining('engine queue resume'),
		});
		const server = await startServer(project.db);
		opened.push({ close: () => server.stop() });
		const ended = await cli(['--base-url', server.baseUrl, ...toAnn, '-o', 'json'], {
			env: { MAILCTL_TOKEN: server.token },
		});
		expect([ended.code, errorOf(ended)]).toMatchObject([14, queued]);
		await project.json(['engine', 'queue', 'resume']);
		expect(await project.json(['worker', '--drain'])).toMatchObject({ queued: 0 });
		expect(sink.received).toHaveLength(2);
	});
});

describe('send to nobody', () => {
	it('exits with 9 if all recipients are suppressed, for one message, a table and a list', async () => {
		const sink = await startSmtpSink();
		opened.push(sink);
		const project = await makeProject({ smtp: sink.port });
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', 'L', '--email', 'ann@example.com']);
		await project.json(['subscribers', 'create', '-l', 'L', '--email', 'bob@example.com']);
		await project.json(['suppressions', 'add', 'ann@example.com', '--reason', 'COMPLAINED', '--yes']);
		const people = await project.file('people.csv', 'email\nann@example.com\n');
		const agreed = ['--yes', '--expect-count', '1'];
		expect(await project.json(toAnn, { code: 9 })).toMatchObject({ messages_created: 0 });
		const job = ['send', ...mail, '--csv', people, ...agreed, '--campaign', 'j'];
		for (const words of [job, job, ['campaigns', 'resume', 'j'], [...job.slice(0, -1), 'k', '--no-wait']]) {
			const ended = await project.run(words);
			expect([ended.code, ended.stderr]).toEqual([
				9,
				expect.stringContaining('warning: no message was sent: each was suppressed or canceled\n'),
			]);
		}
		expect(
			await project.json(['send', ...mail, '--to', 'ann@example.com', '--to', 'bob@example.com']),
		).toMatchObject({ messages_created: 1 });
		expect(sink.received.map(({ to }) => to)).toEqual([['bob@example.com']]);
	});

	it('exits with 9 if another service accepts the request but creates no message', async () => {
		const body = JSON.stringify({ messages: [], result: true, messages_created: 0 });
		const { run } = await startAnswering({ status: 200, body });
		expect((await run(toAnn)).code).toBe(9);
	});
});
