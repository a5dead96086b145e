// The main job against Postfix's smtp-sink and, for what arrives, Python's aiosmtpd: servers that are not ours.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.js';

const run = promisify(execFile);
const bin = join(import.meta.dirname, '../../bin/mailctl.js');
const corpora = process.env['MAILCTL_CORPORA'] ?? '../shared/corpora';
const welcome = resolve(corpora, 'html/postmark/templates/welcome.html');
const offer = join(import.meta.dirname, '../../src/cli/demo/offer.html');
const template = existsSync(welcome) ? welcome : offer;
const sinkProgram = ['/usr/sbin/smtp-sink', '/usr/bin/smtp-sink'].find((path) => existsSync(path));

let home: string;
let children: ChildProcess[] = [];
beforeEach(async () => {
	home = await mkdtemp(join(tmpdir(), 'mailctl-postfix-'));
});
afterEach(async () => {
	for (const child of children) child.kill('SIGKILL');
	children = [];
	await rm(home, { recursive: true });
});

const mailctl = async (...words: string[]) => {
	const env = { PATH: process.env['PATH'], HOME: home };
	const { stdout } = await run(process.execPath, [bin, ...words, '-o', 'json'], {
		env,
		cwd: home,
		maxBuffer: 1e9,
	});
	return JSON.parse(stdout);
};

describe('sending to a server that is not ours', () => {
	it('delivers a list of 2,000 to smtp-sink, which counts as many as the report', async ({ skip }) => {
		if (sinkProgram === undefined) return skip('smtp-sink (Debian package postfix) is not installed');
		const port = await freePort();
		const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
		const log = start(sinkProgram, [...user, '-c', `127.0.0.1:${port}`, '1000']);
		await listening(port);
		await setUp(port, 2_000);
		const sent = await send(2_000);
		expect(sent).toMatchObject({ state: 'finished', recipients: 2_000, messages: { sent: 2_000 } });
		expect((await mailctl('report')).total).toMatchObject({ sent: 2_000, hardbounced_percent: 0 });
		const messages: { id: string }[] = await mailctl('messages', 'list', '--status', 'sent');
		expect(new Set(messages.map(({ id }) => id)).size).toBe(2_000);
		await eventually(() => expect(log().match(/mesg=(\d+)\s*$/)?.[1]).toBe('2000'));
	});

	it('hands aiosmtpd exactly the recipients and headers asked for', async ({ skip }) => {
		const present = await run('/usr/bin/python3', ['-c', 'import aiosmtpd']).then(
			() => true,
			() => false,
		);
		if (!present) return skip('python3-aiosmtpd is not installed');
		const port = await freePort();
		const maildir = join(home, 'maildir');
		start('/usr/bin/python3', [
			'-m',
			'aiosmtpd',
			'-n',
			'-l',
			`127.0.0.1:${port}`,
			'-c',
			'aiosmtpd.handlers.Mailbox',
			maildir,
		]);
		await listening(port);
		await setUp(port, 3);
		await send(3);
		const folder = join(maildir, 'new');
		const names = await readdir(folder);
		const mails = await Promise.all(
			names.map(async (name) => PostalMime.parse(await readFile(join(folder, name)))),
		);
		const header = (mail: (typeof mails)[number] | undefined, key: string) =>
			mail?.headers.find((one) => one.key === key)?.value;
		expect(mails.map(({ to }) => to?.[0]?.address).sort()).toEqual(
			[0, 1, 2].map((i) => `user${i}@example.com`),
		);
		const first = mails.find(({ to }) => to?.[0]?.address === 'user1@example.com');
		expect(first).toMatchObject({
			subject: 'Hello Jürgen 1',
			from: { name: 'News', address: 'news@example.com' },
		});
		expect(header(first, 'x-rcptto')).toBe('user1@example.com');
		expect(header(first, 'x-mailfrom')).toBe('news@example.com');
		expect(header(first, 'list-unsubscribe')).toMatch(/^<http:\/\/127\.0\.0\.1:8080\/u\/[\w-]+>$/);
		// RFC 8058 s.3.1 asks for https.
		expect(header(first, 'list-unsubscribe-post')).toBeUndefined();
		expect(first?.html).toContain('style=');
	});
});

async function setUp(port: number, people: number): Promise<void> {
	const rows = Array.from({ length: people }, (_, i) => `user${i}@example.com,Jürgen ${i},Oslo,pro\n`);
	await writeFile(join(home, 'people.csv'), `email,name,city,plan\n${rows.join('')}`);
	await mailctl('engine', 'init', '--sender', 'news@example.com', '--smtp', `smtp://127.0.0.1:${port}`);
	await mailctl('lists', 'create', '--name', 'People', '--email-reason', 'You asked for it');
	for (const variable of ['city', 'plan'])
		await mailctl('fields', 'create', '--variable', variable, '--name', variable);
	const counts = await mailctl('subscribers', 'import', 'people.csv', '--list', 'People');
	expect(counts).toEqual({
		read: people,
		created: people,
		updated: 0,
		unchanged: 0,
		duplicate: 0,
		rejected: 0,
	});
}

function send(people: number) {
	const words = [
		'--from',
		'News <news@example.com>',
		'--list',
		'People',
		'--subject',
		'Hello #name#',
		'--html-file',
		template,
	];
	return mailctl('send', ...words, '--bulk', '--yes', '--expect-count', String(people));
}

function start(program: string, words: readonly string[]): () => string {
	const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] });
	children.push(child);
	let text = '';
	for (const stream of [child.stdout, child.stderr])
		stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
	return () => text.replaceAll('\r', '\n').trimEnd();
}

async function listening(port: number): Promise<void> {
	await eventually(async () => {
		const socket = connect(port, '127.0.0.1');
		await once(socket, 'connect');
		socket.destroy();
	});
}

function freePort(): Promise<number> {
	return new Promise((resolve) => {
		const probe = createServer().listen(0, '127.0.0.1', () => {
			const address = probe.address();
			probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
		});
	});
}
