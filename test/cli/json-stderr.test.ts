// With -o json and ndjson, standard error is one JSON object per line.
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { unnamed } from '../../src/cli/frame/command-line.js';
import { createDiagnostics } from '../../src/cli/frame/diagnostics.js';
import { Interrupted } from '../../src/cli/frame/errors.js';
import { createIo } from '../../src/cli/frame/io.js';
import { withStatusLine } from '../../src/cli/render/progress.js';
import { paint } from '../../src/cli/render/terminal.js';
import { cli } from '../support/cli.js';
import { startForeign } from '../support/foreign.js';
import { makeProject } from '../support/project.js';
import { startSmtpSink } from '../support/smtp-sink.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

function said(stderr: string): unknown[] {
	return stderr
		.split('\n')
		.slice(0, -1)
		.map((line) => JSON.parse(line));
}

const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'Hi #name#'];

describe('standard error with -o json', () => {
	it('contains a JSON object for each note and warning, and one for the error', async () => {
		const sink = await startSmtpSink();
		opened.push(sink);
		const project = await makeProject({ smtp: sink.port });
		const file = await project.file('people.csv', 'email,name,\u001b[1mx\nann@example.com,Ann,\n');
		const words = [...mail, '--bulk', '--csv', file, '--yes', '--expect-count', '1'];
		for (const format of ['json', 'ndjson']) {
			const run = await project.run([...words, '--again', '--campaign', format, '-o', format]);
			expect({ code: run.code, said: said(run.stderr) }).toEqual({
				code: 0,
				said: [
					{ note: 'left out: \u001b[1mx' },
					{ note: `campaign ${format}: staging people.csv` },
					{ note: '1 recipient of people.csv' },
					{
						warning: 'the body of this bulk mail has no unsubscribe link',
						hint: 'write #unsubscribe_url# where the link belongs',
					},
					{
						warning: 'unsubscribe links point to this machine, so nobody else can open them',
						hint: expect.stringMatching(/^mailctl --db \S+ engine settings set public_url /),
					},
					{ note: expect.stringMatching(`^campaign ${format}, `) },
					{ note: 'sent 1' },
				],
			});
			expect(run.stderr).not.toContain('\u001b');
		}
		const refused = await project.run([...words, '--campaign', 'json', '--tag', 'x', '-o', 'json', '-q']);
		expect(said(refused.stderr)).toEqual([
			{ error: expect.objectContaining({ exit_code: 5, hint: 'give another --campaign' }) },
		]);
	});

	it('has the hint inside the error object, and nowhere else', async () => {
		const project = await makeProject({ smtp: 9 });
		const interrupts = new AbortController();
		const file = await project.file('people.csv', 'email,name\nann@example.com,Ann\n');
		const heard = (text: string) => {
			if (text.includes('staging')) interrupts.abort(new Interrupted('SIGINT'));
		};
		const run = await project.run(
			[...mail, '--csv', file, '--yes', '--expect-count', '1', '--campaign', 'j', '-o', 'json'],
			{ interrupts: interrupts.signal, heard },
		);
		expect({ code: run.code, said: said(run.stderr) }).toEqual({
			code: 130,
			said: [
				{ note: 'campaign j: staging people.csv' },
				{
					error: {
						code: 'interrupted',
						exit_code: 130,
						message: 'interrupted',
						http: null,
						details: null,
						hint: expect.stringMatching(/^nothing was sent; mailctl --db \S+ campaigns resume j continues$/),
						retryable: false,
					},
				},
			],
		});
	});

	it('contains an object for each request with --debug', async () => {
		const foreign = await startForeign();
		opened.push(foreign);
		const run = await cli(['--base-url', foreign.baseUrl, 'lists', 'get', '99', '--debug', '-o', 'json'], {
			env: { MAILCTL_TOKEN: 't' },
		});
		expect(run.code).toBe(3);
		const lines = said(run.stderr);
		expect(lines.length).toBeGreaterThan(1);
		expect(lines.slice(0, -1)).toEqual(lines.slice(0, -1).map(() => ({ trace: expect.any(String) })));
		expect(lines.at(-1)).toHaveProperty('error');
	});

	it('contains progress as objects, but as text on a terminal', async () => {
		for (const isTTY of [false, true]) {
			const stderr = Object.assign(new PassThrough(), { isTTY, columns: 80 });
			let now = 0;
			const diagnostics = createDiagnostics(withStatusLine(createIo({ stderr }).stderr), {
				...{ format: 'json', quiet: false, debug: false, paint: await paint(false) },
				target: unnamed,
				elapsedMs: () => now,
			});
			const progress = diagnostics.progress('staging', 5_000);
			now = 10_000;
			progress.update(1_000, '3 rejected');
			progress.stop();
			await diagnostics.note('done');
			const text = String(stderr.read());
			expect(text).toBe(
				isTTY
					? '\r\u001b[Kstaging 1,000 of 5,000 · 20% · 100/s · 40s left · 3 rejected\r\u001b[K{"note":"done"}\n'
					: '{"progress":"staging 1,000 of 5,000 · 20% · 100/s · 40s left · 3 rejected"}\n{"note":"done"}\n',
			);
		}
	});
});
