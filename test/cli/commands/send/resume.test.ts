// `campaigns resume NAME` continues a campaign that stopped at any moment, and sends nothing twice.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Interrupted } from '../../../../src/cli/frame/errors.js';
import { withValues } from '../../../support/cli.js';
import { connectWith } from '../../../support/connect-with.js';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('an interrupted campaign', () => {
	let project: Project;
	let sink: SmtpSink;
	let people: string;
	const count = 2_200;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		const lines = Array.from({ length: count }, (_, row) => `r${row}@example.com,Reader ${row}\n`);
		people = await project.file('people.csv', `email,name\n${lines.join('')}`);
	});
	afterEach(() => sink.close());

	const send = (...more: string[]) => [
		...['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'Hi #name#'],
		...['--yes', '--expect-count', String(count), '--campaign', 'november', ...more],
	];
	const sentTo = () => sink.received.flatMap(({ to }) => to);

	/** Interrupts a send after it has staged its first batch of 2,000 rows. */
	async function breakOffStaging(file = people): Promise<void> {
		const interrupts = new AbortController();
		const connectOnce = connectWith((campaigns) => ({
			...campaigns,
			put: async (...words) => {
				const ack = await campaigns.put(...words);
				interrupts.abort(new Interrupted('SIGINT'));
				return ack;
			},
		}));
		const stdin = file === '-' ? { stdin: await readFile(people, 'utf8') } : {};
		const options = { connect: connectOnce, interrupts: interrupts.signal, ...stdin };
		const run = await project.run(send('--csv', file), options);
		expect([run.code, run.stderr]).toEqual([
			130,
			expect.stringMatching(
				file === '-'
					? /hint: nothing was sent; mailctl .*campaigns resume november --source - continues/
					: /hint: nothing was sent; mailctl .*campaigns resume november continues/,
			),
		]);
	}

	/** Lets a send fail when it has staged all rows and released none. */
	async function breakOffBeforeRelease(file = people): Promise<void> {
		const cut = connectWith((campaigns) => ({
			...campaigns,
			release: () => Promise.reject(new Error('the lights went out')),
		}));
		const stdin = file === '-' ? { stdin: await readFile(people, 'utf8') } : {};
		expect((await project.run(send('--csv', file), { connect: cut, ...stdin })).code).toBe(1);
	}

	const resume = (...more: string[]) => [
		...['campaigns', 'resume', 'november', '--yes', '--expect-count', String(count)],
		...more,
	];

	it('is completed by the command `campaigns resume`, which sends to each recipient once', async () => {
		await breakOffStaging();
		expect(await project.json(['campaigns', 'get', 'november'])).toMatchObject({
			name: 'november',
			state: 'staged',
			rows: 2_000,
			is_complete: false,
			messages: { staged: 2_000 },
		});
		const results = join(project.folder, 'results.csv');
		const document = await project.json(resume('--results', results));
		expect(document).toMatchObject({ state: 'finished', staged: count, messages: { sent: count } });
		expect(new Set(sentTo()).size).toBe(count);
		expect(sentTo()).toHaveLength(count);
		const lines = (await readFile(results, 'utf8')).trimEnd().split('\r\n');
		expect(lines).toHaveLength(count + 1);
		expect(lines.at(-1)).toMatch(/^2201,r2199@example\.com,[0-9a-f-]{36},sent,250,/);
	});

	it('is completed if the user runs the same send command again', async () => {
		await breakOffStaging();
		await project.json(send('--csv', people));
		expect(new Set(sentTo()).size).toBe(count);
	});

	it('continues without its file if all rows are staged, but only after a confirmation', async () => {
		await breakOffBeforeRelease();
		await rm(people);
		const asked = await project.run(['campaigns', 'resume', 'november']);
		expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining('must be confirmed')]);
		expect(sink.received).toHaveLength(0);
		expect(await project.json(resume())).toMatchObject({ messages: { sent: count } });
	});

	it('cannot continue with a changed file, but continues with a moved file that --source names', async () => {
		await breakOffStaging();
		const moved = await project.file('moved.csv', await readFile(people));
		await writeFile(people, 'email,name\neve@example.com,Eve\n');
		const run = await project.run(resume());
		expect([run.code, run.stderr]).toEqual([
			2,
			expect.stringContaining('the campaign "november" was started with a different file than '),
		]);
		await rm(people);
		expect((await project.run(resume())).stderr).toContain('no such file');
		expect(await project.json(resume('--source', moved))).toMatchObject({ messages: { sent: count } });
	});

	it('continues with the rest of a batch, and reports errors of the earlier run', async () => {
		const line = (row: number) => ({
			from: 'news@example.com',
			to: [row === 3 ? 'nobody' : `r${row}@example.com`],
			subject: `S${row}`,
			text_body: 'x'.repeat(600),
		});
		const lines = Array.from({ length: 1_000 }, (_, row) => `${JSON.stringify(line(row))}\n`);
		const requests = await project.file('requests.ndjson', lines.join(''));
		const interrupts = new AbortController();
		const cut = connectWith((campaigns) => ({
			...campaigns,
			putRequests: async (...words) => {
				const ack = await campaigns.putRequests(...words);
				interrupts.abort(new Interrupted('SIGINT'));
				return ack;
			},
		}));
		const words = ['send', '--batch', requests, '--yes', '--expect-count', '1000', '--campaign', 'november'];
		const run = await project.run(words, { connect: cut, interrupts: interrupts.signal });
		expect(run.code).toBe(130);
		const again = ['campaigns', 'resume', 'november', '--yes', '--expect-count', '1000'];
		const refused = await project.run(again);
		expect([refused.code, refused.stderr]).toEqual([
			2,
			expect.stringContaining('line 4: nobody: to.0: Enter a valid email address: it has no @'),
		]);
		const valid = ['campaigns', 'resume', 'november', '--yes', '--expect-count', '999', '--skip-invalid'];
		await project.json(valid, { code: 9 });
		expect(new Set(sentTo()).size).toBe(999);
		expect(sentTo()).toHaveLength(999);
	});

	it('cannot continue if --expect-count is wrong, and a dry run prints the same error', async () => {
		await breakOffBeforeRelease();
		const wrong = withValues(resume(), { '--expect-count': '7' });
		const dry = await project.run([...wrong, '-n']);
		expect(dry).toMatchObject({ code: 2, stderr: expect.stringContaining('has 2,200 recipients, not 7') });
		expect(await project.run(wrong)).toEqual(dry);
		expect(await project.run([...resume(), '-n'])).toMatchObject({ code: 0 });
		expect(sentTo()).toEqual([]);
	});

	it('is named in the output of a dry run of the same send', async () => {
		await breakOffBeforeRelease();
		const words = send('--csv', people);
		expect(await project.run([...words, '-n'])).toMatchObject({ code: 0 });
		await project.json([...resume(), '--no-wait']);
		expect(await project.json([...words, '-n'])).toEqual({
			...{ dry_run: true, resume: 'november', state: 'sending' },
		});
		await project.json(['campaigns', 'cancel', 'november', '--yes']);
		const canceled = await project.run(words);
		expect(await project.run([...words, '-n'])).toEqual(canceled);
	});

	it('continues only if standard input has the same rows again', async () => {
		await breakOffStaging('-');
		const told = await project.run(resume());
		expect([told.code, told.stderr]).toEqual([
			2,
			expect.stringMatching(
				/^error: the campaign "november" stopped after 2,000 rows, and its rows did not come from a file; nothing was sent\nhint: mailctl .*campaigns resume november --source - continues with the same rows from standard input, mailctl .*campaigns cancel november drops it\n$/,
			),
		]);
		const status = await project.run(['campaigns', 'get', 'november']);
		expect(status.stderr).toMatch(/campaigns resume november\n$/);
		const other = await project.run(resume('--source', '-'), { stdin: 'email,name\neve@example.com,Eve\n' });
		expect([other.code, other.stderr]).toEqual([
			2,
			expect.stringContaining(
				'the campaign "november" was started with a different file than standard input; nothing was sent',
			),
		]);
		const dry = await project.run(resume('--source', '-', '-n'), {
			stdin: 'email,name\neve@example.com,Eve\n',
		});
		const [, ...lines] = other.stderr.split('\n');
		expect(dry).toEqual({ ...other, stderr: lines.join('\n') });
		const foreseen = await project.json(resume('--source', '-', '-n'), { stdin: await readFile(people) });
		expect(foreseen).toEqual({ dry_run: true, resume: 'november', state: 'staged' });
		const document = await project.json(resume('--source', '-'), { stdin: await readFile(people) });
		expect(document).toMatchObject({ staged: count, messages: { sent: count } });
		expect(new Set(sentTo()).size).toBe(count);
		expect(sentTo()).toHaveLength(count);
	});

	it('continues if the same send reads the same rows from a file instead of the pipe', async () => {
		await breakOffStaging('-');
		const other = await project.run(send('--csv', '-'), { stdin: 'email,name\neve@example.com,Eve\n' });
		expect([other.code, other.stderr]).toEqual([5, expect.stringContaining('belongs to another campaign')]);
		const again = await project.run(withValues(send('--csv', '-'), { '--expect-count': '7' }), {
			stdin: await readFile(people),
		});
		expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('has 2,200 recipients, not 7')]);
		await project.json(send('--csv', people));
		expect(new Set(sentTo()).size).toBe(count);
		expect(sentTo()).toHaveLength(count);
	});

	it('is deleted by the command `campaigns cancel`, and cannot continue afterwards', async () => {
		await breakOffStaging();
		const asked = await project.run(['campaigns', 'cancel', 'november']);
		expect([asked.code, asked.stderr]).toEqual([
			2,
			expect.stringContaining('this will drop the campaign "november" and its 2,000 staged messages'),
		]);
		await project.json(['campaigns', 'cancel', 'november', '--yes']);
		expect(await project.json(['messages', 'list'])).toEqual([]);
		const run = await project.run(resume());
		expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('was canceled')]);
	});

	it('continues without a confirmation if it was released before', async () => {
		await project.json(send('--csv', people, '--no-wait'));
		const document = await project.json(['campaigns', 'resume', 'november']);
		expect(document).toMatchObject({ state: 'finished', messages: { sent: count } });
	});
});

describe('an interrupted campaign to a list', () => {
	it('is continued by the command `campaigns resume`, which includes new subscribers', async () => {
		const sink = await startSmtpSink();
		const project = await makeProject({ smtp: sink.port });
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		const words = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 'S', '--text', 'T'];
		const wrong = await project.run([...words, '--yes', '--expect-count', '9', '--campaign', 'j']);
		expect(wrong.code).toBe(2);
		await project.json(['subscribers', 'create', '-l', '1', '--email', 'bob@example.com']);
		const document = await project.json(['campaigns', 'resume', 'j', '--yes', '--expect-count', '2']);
		expect(document).toMatchObject({ name: 'j', messages: { sent: 2 } });
		await sink.close();
	});
});
