import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../../../src/api/errors.js';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { type CliOptions, type CliResult, cli, withValues } from '../../../support/cli.js';
import { makeProject, type Project, said } from '../../../support/project.js';
import { type RunningServer, startServer } from '../../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { stripped } from '../../../support/stripped.js';

const uuid = '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f';
const hello = ['send', '--from', 'news@example.com', '--subject', 'Hello', '--text', 'Hi #name#'];
const toAnn = [...hello, '--to', 'ann@example.com'];

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

/** Starts a server whose mail goes to a sink, or to the port `smtp`. */
async function serve({ args = [], smtp }: { args?: readonly string[]; smtp?: number } = {}) {
	const sink: SmtpSink = await startSmtpSink({
		onRcptTo: ({ address }, _session, callback) => {
			const refusal = Object.assign(new Error('5.1.1 no such user'), { responseCode: 550 });
			callback(address.startsWith('gone@') ? refusal : null);
		},
	});
	opened.push(sink);
	const project = await makeProject({ smtp: smtp ?? sink.port });
	const server = await startServer(project.db, args);
	opened.push({ close: () => server.stop() });
	return { project, server, sink, run: runnerOf(server) };
}

function runnerOf({ baseUrl, token }: Pick<RunningServer, 'baseUrl' | 'token'>) {
	return (argv: readonly string[], options: CliOptions = {}): Promise<CliResult> =>
		cli(['--base-url', baseUrl, ...argv], { ...options, env: { MAILCTL_TOKEN: token, ...options.env } });
}

describe('send on a mailctl server', () => {
	it('waits until the server has sent the message, and prints the server’s answer', async () => {
		const { sink, run } = await serve();
		const { code, stdout, stderr } = await run([...toAnn, '-o', 'json']);
		expect({ code, answer: JSON.parse(stdout), said: said({ stderr }) }).toEqual({
			code: 0,
			answer: {
				messages: [{ to: 'ann@example.com', id: expect.any(String) }],
				result: true,
				messages_created: 1,
			},
			said: [{ note: 'sent 1' }],
		});
		expect(sink.received).toHaveLength(1);
	});

	it('waits until the server has sent the whole campaign to a list', async () => {
		const { project, sink, run } = await serve();
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		for (const name of ['a', 'b', 'gone'])
			await project.json(['subscribers', 'create', '-l', 'L', '--email', `${name}@example.com`]);
		const words = [...hello, '--list', 'L', '--yes', '--expect-count', '3', '--campaign', 'j', '-o', 'json'];
		const { code, stdout } = await run(words);
		expect({ code, document: JSON.parse(stdout) }).toMatchObject({
			code: 9,
			document: { name: 'j', state: 'finished', staged: 3, messages: { sent: 2, bounced: 1 } },
		});
		expect(sink.received).toHaveLength(2);
	});

	it('returns at once with --no-wait, and otherwise exits with 12 after --wait-timeout', async () => {
		const { run } = await serve({ args: ['--no-worker'] });
		const left = await run([...toAnn, '--no-wait']);
		expect([left.code, left.stderr]).toEqual([0, 'hint: accepted and queued; the server sends it\n']);
		const { code, stderr } = await run([...toAnn, '--wait-timeout', '200ms']);
		expect({ code, stderr }).toEqual({
			code: 12,
			stderr:
				'error: no progress within --wait-timeout\nhint: accepted and queued, so do not repeat the command; the server continues\n',
		});
	});

	it('warns if no worker of the server is running', async () => {
		const { run } = await serve({ args: ['--no-worker'] });
		const { code, stderr } = await run([...toAnn, '--wait-timeout', '7s', '-o', 'table']);
		expect(code).toBe(12);
		expect(stderr).toMatch(
			/^warning: nothing is sent\nhint: no worker is running: mailctl .*worker, on the machine with the\s+database\n/,
		);
	});

	it('exits with 14 if the mail server is unreachable, and the message stays queued', async () => {
		const { project, run } = await serve({ smtp: 1 });
		const { code, stderr } = await run([...toAnn, '-o', 'json']);
		expect(code).toBe(14);
		expect(JSON.parse(stderr.trim().split('\n').at(-1) ?? '').error).toMatchObject({
			code: 'accepted_and_queued',
			exit_code: 14,
			hint: expect.stringContaining('the server sends the messages'),
		});
		expect(await project.json(['messages', 'list'])).toMatchObject([{ state: 'queued' }]);
	});

	it('stops waiting on Ctrl-C, and prints that the server continues', async () => {
		const { run } = await serve({ args: ['--no-worker'] });
		const stop = new AbortController();
		const running = run([...toAnn, '-o', 'json'], {
			columns: 100,
			interrupts: stop.signal,
			heard: (text) => {
				if (text.includes('sending')) stop.abort(new Interrupted('SIGINT'));
			},
		});
		const { code, stdout, stderr } = await running;
		expect({ code, created: JSON.parse(stdout).messages_created }).toEqual({ code: 130, created: 1 });
		expect(stderr).toContain('the accepted messages stay queued; the server sends them');
	});

	it('prints the name of the campaign on Ctrl-C, and writes the results so far', async () => {
		const { project, run } = await serve({ args: ['--no-worker'] });
		const people = await project.file('people.csv', 'email\nann@example.com\n');
		const results = `${project.folder}/r.csv`;
		const stop = new AbortController();
		const words = [
			...hello.slice(0, -1),
			'Hi',
			'--csv',
			people,
			...'--yes --expect-count 1 --campaign j'.split(' '),
		];
		const { code, stderr } = await run([...words, '--results', results], {
			columns: 100,
			interrupts: stop.signal,
			heard: (text) => {
				if (text.includes('sending')) stop.abort(new Interrupted('SIGINT'));
			},
		});
		// The terminal wraps the hint between words.
		const said = stripVTControlCharacters(stderr).replaceAll('\n', ' ');
		expect([code, said]).toEqual([
			130,
			expect.stringMatching(
				/the server continues; mailctl .*campaigns get j shows.*campaigns cancel j drops/,
			),
		]);
		expect(await readFile(results, 'utf8')).toMatch(/\r\n2,ann@example.com,[0-9a-f-]{36},queued,/);
	});

	/** Connects to a server that accepts messages and is then unreachable. */
	const gone = (...keep: ('messages' | 'templates' | 'campaigns')[]) =>
		stripped({
			keep,
			change: (api) => ({
				...api,
				capabilities: async () => {
					const found = await api.capabilities();
					const { messages } = found.ext;
					if (messages === undefined) throw new Error('messages are kept');
					const progress = () => Promise.reject(new ApiError('network', 'connection refused'));
					return { ...found, ext: { ...found.ext, messages: { ...messages, progress } } };
				},
			}),
		});

	it('prints the name of the campaign if the server stops after it released the campaign', async () => {
		const project = await makeProject();
		const people = await project.file('people.csv', 'email\nann@example.com\n');
		const words = [...hello.slice(0, -1), 'Hi', '--csv', people, '--yes', '--expect-count', '1'];
		const connect = gone('messages', 'templates', 'campaigns');
		const { code, stderr } = await project.run([...words, '--campaign', 'j'], { connect });
		expect([code, stderr]).toEqual([14, expect.stringContaining('campaigns get j shows the progress')]);
	});

	it('reports messages as accepted if the server stops before it sends them', async () => {
		const project = await makeProject();
		expect(await project.run(toAnn, { connect: gone('messages', 'templates') })).toMatchObject({
			code: 14,
			stderr:
				'error: accepted and queued, so do not repeat the command: connection refused\n' +
				`hint: mailctl --db ${project.db} messages list\n`,
		});
	});
});

describe('send without an answer from the service', () => {
	/** Starts a service that closes the connection of each POST. `root`: its answer to a GET; null for 404. */
	async function cutting(root: object | null): Promise<{ baseUrl: string; token: string; sends: string[] }> {
		const sends: string[] = [];
		const server = createServer((request, response) => {
			request.resume().on('end', () => {
				if (request.method === 'POST') {
					sends.push(String(request.headers['idempotency-key'] ?? ''));
					request.socket.destroy();
				} else if (root !== null)
					response.setHeader('content-type', 'application/json').end(JSON.stringify(root));
				else response.writeHead(404).end();
			});
		});
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		opened.push({ close: () => new Promise((resolve) => server.close(resolve)) });
		// A listening TCP server has an address of this type.
		const { port } = server.address() as AddressInfo;
		return { baseUrl: `http://127.0.0.1:${port}`, token: 't', sends };
	}

	it('exits with 13 and does not repeat the request if the service has no idempotency keys', async () => {
		const service = await cutting(null);
		const { code, stdout, stderr } = await runnerOf(service)([...toAnn, '-o', 'json']);
		expect({ code, stdout, sends: service.sends }).toEqual({ code: 13, stdout: '', sends: [''] });
		expect(JSON.parse(stderr).error).toMatchObject({
			code: 'uncertain',
			exit_code: 13,
			message: expect.stringMatching(/^the message may or may not have been sent: /),
			hint: 'look at the report or ask a recipient before you send it again',
		});
	});

	it('repeats the request with its idempotency key, then exits with 13 and prints the key', async () => {
		const service = await cutting({ service: 'mailctl', version: '1', extensions: ['messages'] });
		const words = [...toAnn, '--retries', '1', '--idempotency-key', 'monday'];
		const { code, stderr } = await runnerOf(service)(words);
		expect({ code, sends: service.sends }).toEqual({ code: 13, sends: ['monday', 'monday'] });
		expect(stderr).toContain('hint: to try again without sending twice, add --idempotency-key monday');
	});

	it('reports an uncertain outcome if the user interrupts the wait', async () => {
		const stop = new AbortController();
		const server = createServer((request, response) => {
			if (request.method === 'GET') response.writeHead(404).end();
			else stop.abort(new Interrupted('SIGINT'));
		});
		await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
		opened.push({ close: () => new Promise((resolve) => server.close(resolve)) });
		const { port } = server.address() as AddressInfo;
		const run = runnerOf({ baseUrl: `http://127.0.0.1:${port}`, token: 't' });
		const { code, stderr } = await run(toAnn, { interrupts: stop.signal });
		server.closeAllConnections();
		expect({ code, stderr }).toEqual({
			code: 130,
			stderr:
				'warning: stopped before the service answered: the message may or may not have been sent\ninterrupted\n',
		});
	});

	it('exits with 6 if it cannot connect to the service', async () => {
		const service = await cutting(null);
		await opened.pop()?.close();
		expect((await runnerOf(service)(toAnn)).code).toBe(6);
	});
});

describe('send that gets no answer when it releases a campaign', () => {
	async function withList(): Promise<Project> {
		// Nothing listens on port 9: the test only needs a database with a mail server.
		const project = await makeProject({ smtp: 9 });
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', 'L', '--email', 'a@example.com']);
		return project;
	}
	const words = [...hello, '--list', 'L', '--yes', '--expect-count', '1', '--campaign', 'j', '--no-wait'];
	const lost = new ApiError('network', 'the connection was cut', { unanswered: true });
	const connectWith = (release: 'done' | 'lost') =>
		stripped({
			keep: ['campaigns', 'messages', 'templates'],
			change: (api) => ({
				...api,
				capabilities: async () => {
					const found = await api.capabilities();
					const { campaigns } = found.ext;
					if (campaigns === undefined) throw new Error('campaigns are kept');
					const ext = {
						...found.ext,
						campaigns: {
							...campaigns,
							release: async (...given: Parameters<typeof campaigns.release>) => {
								if (release === 'done') await campaigns.release(...given);
								throw lost;
							},
						},
					};
					return { ...found, ext };
				},
			}),
		});

	it('exits with 0 if the service has released the campaign', async () => {
		const project = await withList();
		expect((await project.run(words, { connect: connectWith('done') })).code).toBe(0);
		expect(await project.json(['messages', 'list'])).toMatchObject([{ state: 'queued' }]);
	});

	it('prints the resume command and exits with 13 if the service has not released the campaign', async () => {
		const project = await withList();
		const { code, stderr } = await project.run(words, { connect: connectWith('lost') });
		expect({ code, stderr }).toMatchObject({
			code: 13,
			stderr: expect.stringContaining(
				`hint: mailctl --db ${project.db} campaigns resume j: no recipient gets the message twice`,
			),
		});
		expect(
			(await project.run([...words], { connect: stripped({ keep: ['campaigns', 'messages'] }) })).code,
		).toBe(0);
		expect(await project.json(['messages', 'list'])).toMatchObject([{ state: 'queued' }]);
	});
});

describe('a preview of a message on a server', () => {
	it('is rendered on the client with --preview, --eml or --dry-run, and nothing is sent', async () => {
		const { project, run } = await serve();
		const words = ['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--subject', 'Hi #name#'];
		const html = ['--html', '<p>#name# <a href="#unsubscribe_url#">bye</a></p>', '--context', 'name=Ann'];
		const shown = await run([...words, ...html, '--preview', 'html']);
		expect(shown).toEqual({
			code: 0,
			stdout: '<p>Ann <a href="https://deployment.invalid/unsubscribe">bye</a></p>\n',
			stderr:
				'https://deployment.invalid/… stands for each link that the server signs\n' +
				'the service may still refuse this: only the service knows its own rules\n' +
				'From: news@example.com\nTo: ann@example.com\nSubject: Hi Ann\n',
		});
		const eml = await run([...words, ...html, '--eml', '-']);
		expect(eml.stdout).toMatch(/^Subject: Hi Ann\r$/m);
		const dry = await run([...words, ...html, '-n', '-o', 'json']);
		expect(JSON.parse(dry.stdout)).toMatchObject({ dry_run: true, send: { to: ['ann@example.com'] } });
		expect(await project.json(['messages', 'list'])).toEqual([]);
	});

	it('works with a token that has only the scope send, but shows no values of subscribers', async () => {
		const { project, server } = await serve();
		const made = await project.json(['engine', 'tokens', 'create', '--name', 's', '--scope', 'send']);
		const { token } = made as { token: string };
		const run = runnerOf({ baseUrl: server.baseUrl, token });
		const words = [...toAnn, '--no-wait'];
		expect(await run(words)).toMatchObject({ code: 0 });
		const dry = await run([...words, '-n']);
		expect(dry).toMatchObject({
			code: 0,
			stderr: expect.stringContaining(
				'warning: this token cannot read subscribers, so their values are missing here\n',
			),
		});
		expect(await run(withValues(words, { '--from': 'who@example.org' }))).toMatchObject({ code: 5 });
	});

	it('is rejected if the template cannot be read', async () => {
		const project = await makeProject();
		const asked: unknown[] = [];
		const connect = stripped({
			change: (api) => ({
				...api,
				send: async (request) => {
					asked.push(request);
					return { messages: [{ to: 'ann@example.com', id: uuid }], result: true, messages_created: 1 };
				},
			}),
		});
		const words = ['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--template'];
		expect((await project.run([...words, uuid, '--bulk'], { connect })).code).toBe(0);
		expect(asked).toMatchObject([{ template_unique_id: uuid, type: 'BULK' }]);
		const dry = await project.run([...words, uuid, '-n', '-o', 'json'], { connect });
		expect(JSON.parse(dry.stdout)).toMatchObject({ dry_run: true, send: { template_unique_id: uuid } });
		for (const more of [[uuid, '--preview', 'text'], [uuid, '--strict-vars'], ['Welcome']])
			expect((await project.run([...words, ...more], { connect })).code).toBe(2);
		expect(asked).toHaveLength(1);
	});
});
