/**
 * A dry run shows the message that is then sent: on a database and on a server, for each way of sending. Only the send
 * itself creates the id and the time of the message, the signed links, the pixel and the tracked links.
 */
import PostalMime from 'postal-mime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type RunningServer, startServer } from '../../../support/running-server.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

interface Way {
	project: Project;
	run(words: readonly string[]): ReturnType<typeof cli>;
	links: Readonly<Record<'unsubscribe_url' | 'view_url', RegExp>>;
	notes: readonly string[];
}

const signed = {
	unsubscribe_url: /https:\/\/mail\.example\.com\/u\/[\w-]+(\.[\w-]+)*/g,
	view_url: /https:\/\/mail\.example\.com\/v\/[\w-]+(\.[\w-]+)*/g,
};
const standIns = {
	unsubscribe_url: /https:\/\/deployment\.invalid\/unsubscribe/g,
	view_url: /https:\/\/deployment\.invalid\/view/g,
};
const standInNote = 'https://deployment.invalid/… stands for each link that the server signs';

let sink: SmtpSink;
let server: RunningServer;
const ways = new Map<string, Way>();
beforeAll(async () => {
	sink = await startSmtpSink();
	const local = await made();
	ways.set('a database', { project: local, run: local.run, links: signed, notes: [] });
	const served = await made();
	server = await startServer(served.db);
	const { baseUrl, token } = server;
	const env = { MAILCTL_TOKEN: token, HOME: served.folder };
	ways.set('a server', {
		project: served,
		run: (words) => cli(['--base-url', baseUrl, ...words], { env }),
		links: standIns,
		notes: [standInNote],
	});
});
afterAll(async () => {
	await server.stop();
	await sink.close();
});

const subject = 'Hi #name# of #city#';
const text_body = 'To #email#. #email_reason#. Leave: #unsubscribe_url# Read: #view_url#';
const html_body =
	'<p>#name# #email_reason# <a href="#unsubscribe_url#">x</a> <a href="#view_url#">v</a> <a href="https://shop.example/?c=#city#">s</a></p>';
const request = { from: 'news@example.com', subject, text_body, html_body, type: 'BULK', tag: 't' };
const content = ['--subject', subject, '--text', text_body, '--html', html_body];
const mail = ['send', '--from', 'news@example.com', ...content, '--bulk'];
const agreed = ['--yes', '--expect-count', '1'];

async function made(): Promise<Project> {
	const project = await makeProject({ smtp: sink.port });
	await project.json(['engine', 'settings', 'set', 'public_url', 'https://mail.example.com']);
	await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
	for (const list of ['1', '2'])
		await project.json(['lists', 'create', '--name', list, '--email-reason', `You joined ${list}`]);
	const person = ['subscribers', 'create', '--name', 'Ann', '--meta', 'city=Oslo'];
	await project.json([...person, '-l', '1', '--email', 'Ann@example.com']);
	for (const list of ['1', '2'])
		await project.json([...person, '-l', list, '--email', 'twice@example.com', '--inactive']);
	await project.file('people.csv', 'email\nann@example.com\n');
	await project.file('own.csv', 'email,name,city\nann@example.com,Anna,Rome\n');
	await project.file('one.ndjson', JSON.stringify({ ...request, to: ['ann@example.com'] }));
	await project.file('listed.ndjson', JSON.stringify({ ...request, to: ['ann@example.com'], list_id: 1 }));
	return project;
}

const sends: Readonly<Record<string, readonly string[]>> = {
	'an address': [...mail, '--to', 'ann@example.com'],
	'an address, with another name': [...mail, '--to', 'ann@example.com', '--context', 'name=Anna'],
	'an address that is in no list': [...mail, '--to', 'new@example.com', '--no-strict-vars'],
	'a list': [...mail, '--list', '1', ...agreed],
	'a table': [...mail, '--csv', 'people.csv', ...agreed],
	'a table with columns': [...mail, '--csv', 'own.csv', ...agreed],
	'a batch': ['send', '--batch', 'one.ndjson', ...agreed],
	'a batch of a list': ['send', '--batch', 'listed.ndjson', ...agreed],
};

describe.each(['a database', 'a server'])('previews on %s', (name) => {
	it.each(Object.entries(sends))('show the mail that send delivers to %s', async (_, line) => {
		const way = wayOf(name);
		const words = fileNames(way, line);
		const eml = await way.run([...words, '--eml', '-']);
		const text = await way.run([...words, '--preview', 'text']);
		const html = await way.run([...words, '--preview', 'html']);
		const dry = await way.run([...words, '-n', '-o', 'json']);
		const sent = await way.run(words);
		expect(
			[eml, text, html, dry, sent].map(({ stderr }) => stderr).filter((said) => said.includes('error')),
		).toEqual([]);
		expect([eml.code, text.code, html.code, dry.code, sent.code]).toEqual([0, 0, 0, 0, 0]);

		const expected = await read(sink.received.at(-1)?.raw ?? Buffer.alloc(0), signed);
		expect(await read(Buffer.from(eml.stdout, 'latin1'), way.links)).toEqual(expected);
		expect(await read(Buffer.from(JSON.parse(dry.stdout).message, 'latin1'), way.links)).toEqual(expected);
		expect(plain(text.stdout, way.links).trim()).toBe(expected.text);
		expect(plain(html.stdout, way.links).trim()).toBe(expected.html);
		for (const { stderr } of [eml, text, html])
			expect(stderr.split('\n').filter((said) => said.includes('deployment.invalid'))).toEqual(way.notes);
	});
});

describe.each(['a database', 'a server'])('test messages on %s', (name) => {
	it.each([
		'a list',
		'a table',
		'a batch',
	])('show what the first recipient of %s would read', async (what) => {
		const way = wayOf(name);
		const words = fileNames(way, sends[what] ?? []);
		expect(await way.run([...words, '--test-to', 'me@example.org'])).toMatchObject({ code: 0 });
		const { subject: said, text } = await PostalMime.parse(sink.received.at(-1)?.raw ?? '');
		expect([said, text?.includes('To me@example.org. You joined 1.')]).toEqual(['Hi Ann of Oslo', true]);
	});
});

function wayOf(name: string): Way {
	const way = ways.get(name);
	if (way === undefined) throw new Error(`${name} is not known`);
	return way;
}

function fileNames({ project }: Way, line: readonly string[]): string[] {
	return line.map((word) => (/\.(csv|ndjson)$/.test(word) ? `${project.folder}/${word}` : word));
}

/** Parses a mail, and replaces what only the send itself creates by placeholders. */
async function read(raw: Buffer, links: Way['links']) {
	const { headers, text = '', html = '' } = await PostalMime.parse(raw);
	const fields = headers.map(({ key, value }): [string, string] => [key, plain(value, links)]);
	return {
		headers: fields.filter(([key]) => key !== 'received').map(([key, value]) => [key, settled(key, value)]),
		text: plain(text, links).trim(),
		html: plain(html, links).trim(),
	};
}

function settled(key: string, value: string): string {
	if (key === 'date') return '{date}';
	return key === 'message-id' ? value.replace(/^<[\w-]+@/, '<{id}@') : value;
}

function plain(part: string, { unsubscribe_url, view_url }: Way['links']): string {
	return part
		.replace(unsubscribe_url, '{unsubscribe_url}')
		.replace(view_url, '{view_url}')
		.replace(/<img src="https:\/\/mail\.example\.com\/o\/[^>]*>/g, '')
		.replace(
			/https:\/\/mail\.example\.com\/c\/[\w.-]+|https:\/\/shop\.example\/\?c=(\w+|#city#)/g,
			'{followed}',
		);
}
