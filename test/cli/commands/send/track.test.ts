// `send --track off` adds no pixel and replaces no link, in every way of sending.
import PostalMime from 'postal-mime';
import { afterEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { type CliOptions, cli } from '../../../support/cli.js';
import { connectWith } from '../../../support/connect-with.js';
import { makeProject, type Project } from '../../../support/project.js';
import { startServer } from '../../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

const written = '<p>Hi<a href="https://x.example/?a=1">x</a></p>';
const content = ['--from', 'news@example.com', '--subject', 'S', '--html', written];
const consent = ['--yes', '--expect-count', '1'];

interface Place {
	project: Project;
	sink: SmtpSink;
	run(argv: readonly string[], options?: CliOptions): ReturnType<Project['run']>;
}

async function local(): Promise<Place> {
	const sink = await startSmtpSink();
	opened.push(sink);
	const project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', 'L', '--email', 'ann@example.com']);
	return { project, sink, run: project.run };
}

async function served(): Promise<Place> {
	const place = await local();
	const { baseUrl, token, stop } = await startServer(place.project.db);
	opened.push({ close: stop });
	const env = { MAILCTL_TOKEN: token, HOME: place.project.folder };
	return { ...place, run: (argv, options) => cli(['--base-url', baseUrl, ...argv], { ...options, env }) };
}

/** Returns the command line of each way to send one mail to ann. */
async function ways(project: Project): Promise<string[][]> {
	const request = { from: 'news@example.com', to: ['ann@example.com'], subject: 'B', html_body: written };
	const batch = await project.file('b.ndjson', JSON.stringify(request));
	const table = await project.file('people.csv', 'email\nann@example.com\n');
	await project.json(['templates', 'create', '--name', 'T', '--html-file', await project.file('t', written)]);
	return [
		['send', ...content, '--to', 'ann@example.com'],
		['send', '--from', 'news@example.com', '--template', 'T', '--to', 'ann@example.com'],
		['send', ...content, '--list', 'L', ...consent],
		['send', ...content, '--csv', table, ...consent],
		['send', '--batch', batch, ...consent],
	];
}

async function mails({ sink }: Place) {
	return Promise.all(sink.received.map(async ({ raw }) => PostalMime.parse(raw)));
}

describe.each([
	['the embedded engine', local],
	['a mailctl server', served],
])('send --track off on %s', (_, start) => {
	it('leaves the HTML unchanged, and `messages get` shows that tracking is off', async () => {
		const place = await start();
		for (const words of await ways(place.project))
			expect(await place.run([...words, '--track', 'off'])).toMatchObject({ code: 0 });
		const arrived = await mails(place);
		expect(arrived.map(({ html }) => html?.trim())).toEqual(Array(5).fill(written));
		expect(
			arrived.filter(({ headers }) => headers.some(({ key }) => key === 'list-unsubscribe')),
		).toHaveLength(1);
		const { stdout } = await place.run(['messages', 'list', '-o', 'json']);
		for (const { id } of JSON.parse(stdout))
			expect(JSON.parse((await place.run(['messages', 'get', id, '-o', 'json'])).stdout).tracking).toBe(
				'off',
			);
	});

	it('is not the default: without this option, send adds a pixel and replaces links', async () => {
		const place = await start();
		const [one = [], , , , batch = []] = await ways(place.project);
		for (const words of [one, [...one, '--track', 'on'], [...batch, '--track', 'on']])
			expect(await place.run(words)).toMatchObject({ code: 0 });
		for (const { html } of await mails(place)) expect(html).toMatch(/\/c\/[\w-]{58}".*\/o\/[\w-]{50}\.gif"/);
	});
});

it('the command `campaigns resume` sends without tracking if send opened the campaign with --track off', async () => {
	const place = await local();
	const request = { from: 'news@example.com', to: ['ann@example.com'], subject: 'B', html_body: written };
	const batch = await place.project.file('b.ndjson', JSON.stringify({ ...request, disable_tracking: false }));
	const interrupts = new AbortController();
	const connect = connectWith((campaigns) => ({
		...campaigns,
		putRequests: () => {
			interrupts.abort(new Interrupted('SIGINT'));
			return Promise.reject(interrupts.signal.reason);
		},
	}));
	const words = ['send', '--batch', batch, ...consent, '--track', 'off', '--campaign', 'november'];
	expect((await place.run(words, { connect, interrupts: interrupts.signal })).code).toBe(130);
	const other = await place.run(['send', '--batch', batch, ...consent, '--campaign', 'november']);
	expect(other).toMatchObject({ code: 5 });
	expect(await place.run(['campaigns', 'resume', 'november', ...consent])).toMatchObject({ code: 0 });
	expect((await mails(place)).map(({ html }) => html?.trim())).toEqual([written]);
});

it('send rejects a campaign that differs from an earlier one only in --track off', async () => {
	const place = await local();
	const [, , list = [], , batch = []] = await ways(place.project);
	for (const words of [list, batch]) {
		expect(await place.run(words)).toMatchObject({ code: 0 });
		expect(await place.run([...words, '--track', 'off'])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('nothing was sent'),
		});
	}
});
