import { spawn } from 'node:child_process';
import { mkdir, readFile, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../../support/project.js';
import { runProgram } from '../../../support/run-program.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('mailctl send --results', () => {
	let project: Project;
	let sink: SmtpSink;
	let people: string;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		people = await project.file('people.csv', 'email\nann@example.com\n');
	});
	afterEach(() => sink.close());

	const send = (results: string) => [
		...['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--csv', people],
		...['--yes', '--expect-count', '1', '--results', results],
	];
	const header = /^line,to,id,state,/;

	it('writes into a named pipe, and does not replace the pipe with a file', async () => {
		const pipe = join(project.folder, 'pipe');
		runProgram('mkfifo', [pipe]);
		const reader = spawn('cat', [pipe], { stdio: ['ignore', 'pipe', 'inherit'] });
		const read = text(reader.stdout);
		await project.json(send(pipe));
		expect((await stat(pipe)).isFIFO()).toBe(true);
		// If `send` replaced the pipe by a file, the reader would wait forever.
		const stuck = setTimeout(() => reader.kill(), 5_000);
		expect(await read).toMatch(header);
		clearTimeout(stuck);
	});

	it('prints how to get the results later if the disk is full', async () => {
		const name = ['--campaign', 'november'];
		const run = await project.run([...send('/dev/full'), ...name]);
		expect(run).toMatchObject({
			code: 74,
			stderr: expect.stringMatching(
				/error: \/dev\/full cannot be written: no space is left on the disk\nhint: free some space, or name a file on another disk\nhint: only the results are missing: mailctl .*campaigns results november --save FILE writes them\n$/,
			),
		});
		expect(sink.received).toHaveLength(1);
		const one = ['--to', 'ann@example.com', '--results', '/dev/full'];
		expect(await project.run([...send('').slice(0, 7), ...one])).toMatchObject({
			code: 74,
			stderr: expect.stringMatching(
				/hint: only the results are missing: mailctl .*messages get [\da-f-]{36} shows the outcome\n$/,
			),
		});
		const later = join(project.folder, 'later.csv');
		expect((await project.run(['campaigns', 'results', 'november', '--save', later])).code).toBe(0);
		expect(await readFile(later, 'utf8')).toMatch(header);
	});

	it('rejects a folder or standard output, and stages nothing', async () => {
		const folder = join(project.folder, 'folder');
		await mkdir(folder);
		const refused = await Promise.all([folder, '-'].map((path) => project.run(send(path))));
		expect(refused.map(({ code, stderr }) => [code, stderr.trimEnd()])).toEqual([
			[2, `error: --results: ${folder} is a directory; nothing was sent`],
			[2, 'error: --results needs a file: standard output has the result of the command'],
		]);
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
		expect(sink.received).toEqual([]);
	});

	it('never overwrites a file that the send reads, not even through a symbolic link', async () => {
		const page = await project.file('n.html', '<p>Hello</p>');
		const alias = join(project.folder, 'alias.csv');
		await symlink(people, alias);
		const runs = await Promise.all([
			project.run(send(people)),
			project.run(send(alias)),
			project.run([...send(page).filter((word) => word !== '--text' && word !== 'T'), '--html-file', page]),
		]);
		expect(runs.map(({ code, stderr }) => [code, stderr.split('\n')[0]])).toEqual([
			[2, `error: --results: ${people} exists already; nothing was sent`],
			[2, `error: --results: ${alias} exists already; nothing was sent`],
			[2, `error: --results: ${page} exists already; nothing was sent`],
		]);
		expect(await readFile(people, 'utf8')).toBe('email\nann@example.com\n');
		expect(sink.received).toEqual([]);
	});

	it('overwrites only earlier results of the same campaign', async () => {
		const notes = await project.file('notes.txt', 'mine');
		const refused = await project.run(send(notes));
		expect([refused.code, refused.stderr.split('\n')[0], await readFile(notes, 'utf8')]).toEqual([
			...[2, `error: --results: ${notes} exists already; nothing was sent`, 'mine'],
		]);
		const results = join(project.folder, 'r.csv');
		await project.json([...send(results), '--campaign', 'one']);
		await project.json([...send(results), '--campaign', 'one']);
		await project.json(['campaigns', 'resume', 'one', '--results', results]);
		const other = await project.run([...send(results), '--campaign', 'two']);
		expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('exists already')]);
		expect(await project.json(['campaigns', 'list'])).toHaveLength(1);
	});

	it('writes the same columns for a table, a list and a single message', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--results'];
		const path = (name: string) => join(project.folder, name);
		await project.json(send(path('1.csv')));
		await project.json([...mail, path('2.csv'), '--list', '1', '--yes', '--expect-count', '1']);
		await project.json([...mail, path('3.csv'), '--to', 'ann@example.com']);
		const files = await Promise.all(['1.csv', '2.csv', '3.csv'].map((name) => readFile(path(name), 'utf8')));
		expect(files.map((file) => file.split('\r\n')[0])).toEqual(
			Array(3).fill('line,to,id,state,code,text,attempts,campaign_unique_id'),
		);
		expect(files.map((file) => file.split('\r\n')[1])).toEqual([
			expect.stringMatching(/^2,ann@example\.com,[0-9a-f-]{36},sent,250,.*,1,[0-9a-f-]{36}$/),
			expect.stringMatching(/^,ann@example\.com,[0-9a-f-]{36},sent,250,.*,1,[0-9a-f-]{36}$/),
			expect.stringMatching(/^,ann@example\.com,[0-9a-f-]{36},sent,250,.*,1,$/),
		]);
	});
});
