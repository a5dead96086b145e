// `send` reads a pipe to its end before it opens a campaign; a preview reads no more of it than it needs.
import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { errorOf, makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('rows that send reads from a pipe', () => {
	let project: Project;
	let sink: SmtpSink;
	let temporary: string;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		temporary = await mkdtemp(join(tmpdir(), 'mailctl-piped-'));
	});
	afterEach(() => sink.close());

	const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'Hi #name#'];
	const csv = [...mail, '--csv', '-', '--yes', '--expect-count', '1'];
	const batch = ['send', '--batch', '-', '--yes', '--expect-count', '1'];
	const jobs = () => project.json(['campaigns', 'list']);

	/** Returns a pipe that stays open after the text. */
	function open(text: string): PassThrough {
		const pipe = new PassThrough();
		pipe.write(text);
		return pipe;
	}

	it.each([
		['Ctrl-C', csv, 130, 'interrupted'],
		['Ctrl-C', batch, 130, 'interrupted'],
		['SIGTERM', csv, 143, 'terminated'],
	])('are not sent if %s stops the command before the pipe ends', async (name, words, code, message) => {
		const interrupts = new AbortController();
		let asked = 0;
		const stdin = new Readable({
			read() {
				asked += 1;
				if (asked === 1) this.push('email,name\nann@example.com,Ann\n');
				if (asked === 2) interrupts.abort(new Interrupted(name === 'SIGTERM' ? 'SIGTERM' : 'SIGINT'));
			},
		});
		const env = { TMPDIR: temporary };
		expect(await project.run(words, { stdin, interrupts: interrupts.signal, env })).toEqual({
			code,
			stdout: '',
			stderr: `nothing was sent: standard input was still being read\n${message}\n`,
		});
		expect([await jobs(), await readdir(temporary)]).toEqual([[], []]);
	});

	it('need a confirmation before send reads them', async () => {
		for (const words of [csv, batch]) {
			const stdin = open('email,name\n');
			const run = await project.run(words.slice(0, -3), { stdin });
			expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('must be confirmed')]);
		}
	});

	it('appear in a preview before the pipe ends', async () => {
		const row = 'email,name\nann@example.com,Ann\n';
		// More bytes than `send` reads to detect the encoding.
		const more = 'bob@example.com,Bob\n'.repeat(100_000);
		const shown = await project.run([...mail, '--csv', '-', '--preview', 'text'], {
			stdin: open(row + more),
		});
		expect([shown.code, shown.stdout.trim()]).toEqual([0, 'Hi Ann']);
		const request = { from: 'news@example.com', to: ['ann@example.com'], subject: 'S', text_body: 'T' };
		const lines = `${JSON.stringify(request)}\n`.repeat(10_000);
		const first = await project.run(['send', '--batch', '-', '--preview', 'text'], { stdin: open(lines) });
		expect([first.code, first.stdout.trim()]).toEqual([0, 'T']);
	});

	it('are counted by a dry run, which leaves no file', async () => {
		const plan = await project.json([...mail, '--csv', '-', '--dry-run'], {
			stdin: 'email,name\nann@example.com,Ann\nbob@example.com,Bob\n',
			env: { TMPDIR: temporary },
		});
		expect(plan).toMatchObject({ dry_run: true, rows: 2, recipients: 2 });
		expect(await readdir(temporary)).toEqual([]);
	});

	it('cannot be sent if there is no folder for temporary files', async () => {
		const run = await project.run([...csv, '-o', 'json'], {
			stdin: 'email,name\nann@example.com,Ann\n',
			env: { TMPDIR: join(temporary, 'none') },
		});
		expect(run.code).toBe(74);
		expect(errorOf(run)).toMatchObject({
			code: 'disk',
			message: `cannot copy standard input to ${join(temporary, 'none')}: no such file or directory; nothing was sent`,
			hint: 'set TMPDIR to another directory',
		});
	});
});
