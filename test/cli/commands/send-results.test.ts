// Where `--results` may point, and what is left alone there.
import { spawn, spawnSync } from 'node:child_process';
import { mkdir, readdir, readFile, readlink, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../support/smtp-sink.js';

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

	it('writes into a pipe, which is a pipe afterwards', async () => {
		const pipe = join(project.folder, 'pipe');
		spawnSync('mkfifo', [pipe]);
		const reader = spawn('cat', [pipe], { stdio: ['ignore', 'pipe', 'inherit'] });
		const read = text(reader.stdout);
		await project.json(send(pipe));
		expect((await stat(pipe)).isFIFO()).toBe(true);
		// Nothing came through a pipe that was replaced.
		reader.kill();
		expect(await read).toMatch(header);
	});

	it('writes where a link leads, and leaves the link', async () => {
		const real = await project.file('real.csv', 'older');
		const link = join(project.folder, 'link.csv');
		await symlink(real, link);
		await project.json(send(link));
		expect(await readlink(link)).toBe(real);
		expect(await readFile(real, 'utf8')).toMatch(header);
	});

	it('leaves files beside it alone', async () => {
		const beside = await project.file('r.csv.partial', 'mine');
		await project.json(send(join(project.folder, 'r.csv')));
		expect(await readFile(beside, 'utf8')).toBe('mine');
		expect((await readdir(project.folder)).filter((name) => name.startsWith('.r'))).toEqual([]);
	});

	it('refuses a folder and standard output before anything is staged', async () => {
		const folder = join(project.folder, 'folder');
		await mkdir(folder);
		const refused = await Promise.all([folder, '-'].map((path) => project.run(send(path))));
		expect(refused.map(({ code, stderr }) => [code, stderr.trimEnd()])).toEqual([
			[2, `error: --results: ${folder} is a directory; nothing was sent`],
			[2, 'error: --results takes a file: standard output has the answer'],
		]);
		expect(await project.json(['send', 'status'])).toEqual([]);
		expect(sink.received).toEqual([]);
	});
});
