// A user interrupts a send and runs it again. A second campaign would mail everybody twice.
import { readdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type CliResult, cli, withValues } from '../../../support/cli.js';
import { startForeign } from '../../../support/foreign.js';
import { makeProject, type Project } from '../../../support/project.js';
import { runProgram } from '../../../support/run-program.js';
import { startServer } from '../../../support/running-server.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';

const opened: { close(): unknown }[] = [];
afterEach(async () => {
	for (const one of opened.splice(0).reverse()) await one.close();
});

const mail = ['--from', 'news@example.com', '--subject', 'S', '--text', 'T'];
const agreed = ['--yes', '--expect-count', '1'];
const request = { from: 'news@example.com', to: ['ann@example.com'], subject: 'S', text_body: 'T' };

async function start() {
	const sink = await startSmtpSink();
	opened.push(sink);
	const project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', 'L', '--email', 'ann@example.com']);
	return { project, sink };
}

interface Typed {
	words: readonly string[];
	piped?: string;
}

const kinds = ['list', 'csv', 'batch', 'csv-pipe', 'batch-pipe'] as const;
type Kind = (typeof kinds)[number];

const people = 'email\nann@example.com\n';
const requests = `${JSON.stringify(request)}\n`;

/**
 * Returns a command for each kind of campaign, to one recipient. The piped input differs from the files by a line end.
 */
async function jobs(project: Project): Promise<Record<Kind, Typed>> {
	const table = await project.file('people.csv', people);
	const batch = await project.file('requests.ndjson', requests);
	return {
		list: { words: ['send', ...mail, '--list', '1', ...agreed] },
		csv: { words: ['send', ...mail, '--csv', table, ...agreed] },
		batch: { words: ['send', '--batch', batch, ...agreed] },
		'csv-pipe': { words: ['send', ...mail, '--csv', '-', ...agreed], piped: `${people}\n` },
		'batch-pipe': { words: ['send', '--batch', '-', ...agreed], piped: `${requests}\n` },
	};
}

type Run = (typed: Typed, ...more: readonly string[]) => Promise<CliResult>;

const runIn =
	(project: Project): Run =>
	({ words, piped }, ...more) =>
		project.run([...words, ...more], piped === undefined ? {} : { stdin: piped });

const expecting = ({ words, ...rest }: Typed, count: string): Typed => ({
	words: withValues(words, { '--expect-count': count }),
	...rest,
});

const documentOf = ({ code, stdout, stderr }: CliResult): unknown => {
	if (code !== 0) throw new Error(`ended with ${code}: ${stderr}`);
	return JSON.parse(stdout);
};

const waysOn = (name: string) => `mailctl .*campaigns resume ${name} continues it; `;
const refusal = (what: string, ways = '') => {
	// `--again` needs another name here, because the unfinished campaign may be a repetition itself.
	const again =
		ways === '' ? 'add --again to send it once more' : '--again with another --campaign sends it once more';
	return expect.stringMatching(new RegExp(`^error: ${what}; nothing was sent\nhint: ${ways}${again}\n$`));
};
const refused = (name: string) =>
	refusal(
		`"${name}" was sent to (this list|these recipients) \\d+ seconds? ago, and is not finished`,
		waysOn(name),
	);
/** The error if an earlier campaign is staged but not released. */
const refusedStaged = (name: string) =>
	refusal(
		`"${name}" has the same message for (this list|these recipients); it is staged and not released`,
		waysOn(name),
	);
const refusedSent = (name: string) =>
	refusal(`"${name}" was sent to (this list|these recipients) \\d+ seconds? ago`);

describe.each(kinds)('a repeated send from a %s', (kind) => {
	it('is rejected without --again, whether the first campaign is finished or not', async () => {
		const { project, sink } = await start();
		const run = runIn(project);
		const typed = (await jobs(project))[kind];
		const json = async (...more: string[]) => documentOf(await run(typed, '-o', 'json', ...more));
		const first = (await json('--no-wait')) as { name: string };
		for (const more of [[], ['--no-wait'], ['--rate', '5/s'], ['-n']])
			expect(await run(typed, ...more)).toEqual({
				code: 2,
				stdout: '',
				stderr: expect.stringContaining(`"${first.name}" was sent to`),
			});
		expect(await project.json(['campaigns', 'list'])).toHaveLength(1);
		expect(await project.json(['campaigns', 'resume', first.name])).toMatchObject({ messages: { sent: 1 } });
		const finished = await run(typed);
		expect([finished.code, finished.stderr]).toEqual([2, refusedSent(first.name)]);
		// A campaign that was canceled before it sent anything no longer counts.
		await json('--no-wait', '--again', '--campaign', 'second');
		const again = await run(typed);
		expect([again.code, again.stderr]).toEqual([2, refused('second')]);
		await project.json(['campaigns', 'cancel', 'second', '--yes']);
		expect((await run(typed)).stderr).toEqual(refusedSent(first.name));
		expect(await json('--again')).toMatchObject({ messages: { sent: 1 } });
		expect(sink.received).toHaveLength(2);
	});

	it('needs --again and a new --campaign name if an earlier repetition is unfinished', async () => {
		const { project, sink } = await start();
		const run = runIn(project);
		const typed = (await jobs(project))[kind];
		const json = async (...more: string[]) => documentOf(await run(typed, '-o', 'json', ...more));
		await json();
		const { name } = (await json('--again', '--no-wait')) as { name: string };
		const refused = await run(typed, '--again', '--no-wait');
		expect(refused).toMatchObject({ code: 2, stdout: '' });
		expect(refused.stderr).toMatch(
			new RegExp(
				`"${name}" was sent .*, and is not finished; nothing.*\n.*--again with another --campaign sends`,
			),
		);
		expect((await run(typed, '--again', '-n')).stderr).toEqual(refused.stderr);
		await project.json(['campaigns', 'resume', name]);
		expect(await json('--again')).toMatchObject({ messages: { sent: 1 } });
		await json('--again', '--no-wait');
		expect(await json('--again', '--campaign', 'on purpose')).toMatchObject({ messages: { sent: 1 } });
		expect(sink.received).toHaveLength(4);
	});

	it('needs --again and a new --campaign name if the first campaign is only staged', async () => {
		const { project, sink } = await start();
		const run = runIn(project);
		const typed = (await jobs(project))[kind];
		expect((await run(expecting(typed, '7'), '--campaign', 'monthly')).code).toBe(2);
		expect((await run(typed)).stderr).toEqual(refusedStaged('monthly'));
		expect((await run(typed, '--campaign', 'other')).stderr).toEqual(refusedStaged('monthly'));
		const other = await run(typed, '--again', '--campaign', 'other', '-o', 'json');
		expect(documentOf(other)).toMatchObject({ messages: { sent: 1 } });
		expect(sink.received).toHaveLength(1);
	});

	it('with --again continues a staged campaign that --campaign names, but rejects a finished one', async () => {
		const { project, sink } = await start();
		const run = runIn(project);
		const typed = (await jobs(project))[kind];
		await run(typed, '--campaign', 'first');
		const wrong = await run(expecting(typed, '7'), '--again', '--campaign', 'second');
		expect(wrong).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('if 1 is right, give --expect-count 1'),
		});
		const mended = await run(typed, '--again', '--campaign', 'second', '-o', 'json');
		expect(documentOf(mended)).toMatchObject({ name: 'second', messages: { sent: 1 } });
		expect(await run(typed, '--again', '--campaign', 'second')).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('--again begins a new campaign, but "second" exists'),
		});
		expect(sink.received).toHaveLength(2);
	});

	it('continues the campaign that --campaign names after the user corrects --expect-count', async () => {
		const { project, sink } = await start();
		const run = runIn(project);
		const typed = (await jobs(project))[kind];
		expect((await run(expecting(typed, '7'), '--campaign', 'monthly')).code).toBe(2);
		const again = await run(typed, '--campaign', 'monthly', '-o', 'json');
		expect(documentOf(again)).toMatchObject({ name: 'monthly', messages: { sent: 1 } });
		expect(sink.received).toHaveLength(1);
	});
});

it('send on a mailctl server rejects a repeated campaign', async () => {
	const { project } = await start();
	const server = await startServer(project.db, ['--no-worker']);
	opened.push({ close: () => server.stop() });
	const run: Run = ({ words, piped }, ...more) =>
		cli(['--base-url', server.baseUrl, ...words, ...more], {
			env: { MAILCTL_TOKEN: server.token },
			...(piped !== undefined && { stdin: piped }),
		});
	for (const [kind, typed] of Object.entries(await jobs(project))) {
		expect((await run(typed, '--campaign', kind, '--no-wait')).code).toBe(0);
		const again = await run(typed);
		expect([again.code, again.stderr]).toEqual([2, refused(kind)]);
		expect((await run(otherCase(typed))).stderr).toEqual(refused(kind));
	}
});

it('a dry run of send leaves neither a campaign nor a file', async () => {
	const foreign = await startForeign();
	opened.push(foreign);
	const project = await makeProject();
	const { list } = await jobs(project);
	const env = { MAILCTL_TOKEN: 't', HOME: project.folder };
	const before = await readdir(project.folder, { recursive: true });
	for (const job of [[], ['--campaign', 'monthly']]) {
		const dry = await cli(['--base-url', foreign.baseUrl, ...list.words, ...job, '-n'], { env });
		expect(dry).toMatchObject({ code: 0 });
	}
	expect(await readdir(project.folder, { recursive: true })).toEqual(before);
});

it('send through another service rejects a repeated campaign that this machine has a record of', async () => {
	const foreign = await startForeign();
	opened.push(foreign);
	const project = await makeProject();
	const run: Run = ({ words, piped }, ...more) =>
		cli(['--base-url', foreign.baseUrl, ...words, ...more], {
			env: { MAILCTL_TOKEN: 't', HOME: project.folder },
			...(piped !== undefined && { stdin: piped }),
		});
	for (const [kind, typed] of Object.entries(await jobs(project))) {
		expect((await run(typed, '-n')).code).toBe(0);
		expect((await run(expecting(typed, '7'), '--campaign', kind)).code).toBe(2);
		const again = await run(typed);
		expect([again.code, again.stderr]).toEqual([2, refusedStaged(kind)]);
		expect(await run(typed, '-n')).toEqual(again);
		expect((await run(otherCase(typed))).stderr).toEqual(refusedStaged(kind));
		expect(foreign.writes).toEqual([]);
	}
	// The same host in another spelling of the URL.
	const elsewhere: Run = ({ words }) =>
		cli(['--base-url', `${foreign.baseUrl.replace('http', 'HTTP')}//`, ...words], {
			env: { MAILCTL_TOKEN: 't', HOME: project.folder },
		});
	expect((await elsewhere((await jobs(project)).csv)).stderr).toEqual(refusedStaged('csv'));
	for (const [kind, typed] of Object.entries(await jobs(project))) {
		expect((await run({ words: ['campaigns', 'resume', kind, ...agreed] })).code).toBe(0);
		expect((await run(typed)).stderr).toEqual(refusedSent(kind));
		expect((await run(typed, '--again')).code).toBe(0);
	}
	expect(foreign.writes).toHaveLength(2 * kinds.length);
});

/** Writes the sender's domain in another case, which is still the same sender. */
function otherCase({ words, ...rest }: Typed): Typed {
	return { words: words.map((word) => word.replace(/^news@example\.com$/, 'news@Example.COM')), ...rest };
}

describe('send of the same mail to the same recipients', () => {
	const rows = 'email,city\nann@example.com,Oslo\n';
	const options = ['--reply-to', 'a@example.com', '--reply-to', 'b@example.com', '--header', 'X-Id: 1'];
	const values = ['--header', 'X-Nr: 2', '--context', 'a=1', '--context', 'b=2', '--tag', 'november'];
	const base = (file: string, ...more: string[]) => [
		...['send', '--csv', file, ...mail, ...options, ...values, ...more, ...agreed],
	];
	const instead = (words: readonly string[], changes: Readonly<Record<string, string>>) =>
		words.map((word) => changes[word] ?? word);

	async function begin() {
		const project = await makeProject({ smtp: 9 });
		const file = await project.file('people.csv', rows);
		await project.json([...base(file), '--no-wait', '--campaign', 'first']);
		return { project, file };
	}

	type Change = (file: string, project: Project) => string[] | Promise<string[]>;

	it.each<[name: string, change: Change]>([
		['in another order', (file) => ['send', ...values, ...agreed, ...options, ...mail, '--csv', file]],
		['with another tag', (file) => instead(base(file), { november: 'december' })],
		['of another campaign', (file) => base(file, '--campaign', '0b0e2b7c-6c3f-4d0e-9f5a-0f2b8c1d2e3f')],
		['with --no-strict-vars', (file) => base(file, '--no-strict-vars')],
		[
			'from the same sender, written otherwise',
			(file) => instead(base(file), { 'news@example.com': '<News@EXAMPLE.com>' }),
		],
		['with a header in another case', (file) => instead(base(file), { 'X-Id: 1': 'x-id: 1' })],
		[
			'with answers to the same mailboxes',
			(file) => instead(base(file), { 'a@example.com': 'b@Example.com', 'b@example.com': 'a@example.com' }),
		],
		['by a relative path', (file) => base(relative(process.cwd(), file))],
		['from a copy of the file', async (_, project) => base(await project.file('copy.txt', rows))],
		[
			'with its text from a file',
			async (file, project) => [
				...without(base(file), '--text'),
				'--text-file',
				await project.file('t.txt', 'T'),
			],
		],
		['with its encoding named', (file) => base(file, '--encoding', 'UTF8')],
	])('is rejected %s', async (_name, change) => {
		const { project, file } = await begin();
		const again = await project.run(await change(file, project));
		expect([again.code, again.stderr]).toEqual([2, refused('first')]);
	});

	it('is rejected if it reads the same rows from standard input or a named pipe', async () => {
		const { project, file } = await begin();
		const piped = await project.run(base('-'), { stdin: rows });
		expect([piped.code, piped.stderr]).toEqual([2, refused('first')]);
		const fifo = join(project.folder, 'fifo');
		runProgram('mkfifo', [fifo]);
		for (const job of [[], ['--campaign', 'second'], []]) {
			const writing = writeFile(fifo, job.length > 0 ? `${rows}bob@example.com,Bonn\n` : rows);
			const count = job.length > 0 ? '2' : '1';
			const again = await project.run([
				...withValues(base(fifo, '--no-wait'), { '--expect-count': count }),
				...job,
			]);
			expect([again.code, again.stderr]).toEqual(
				job.length > 0 ? [0, expect.anything()] : [2, refused('first')],
			);
			await writing;
		}
		expect(await project.run(base(file, '--campaign', 'second'))).toMatchObject({
			code: 5,
			stderr: expect.stringContaining('the name "second" belongs to another campaign'),
		});
	});

	it.each<[name: string, change: Change]>([
		['subject', (file) => instead(base(file), { S: 'Other' })],
		['name of the sender', (file) => instead(base(file), { 'news@example.com': 'News <news@example.com>' })],
		['header', (file) => instead(base(file), { 'X-Id: 1': 'X-Id: 2' })],
		['value', (file) => instead(base(file), { 'a=1': 'a=2' })],
		['type', (file) => base(file, '--bulk')],
		['variable', (file) => base(file, '--map', 'city=town')],
		['row', async (_, project) => base(await project.file('more.csv', `${rows}\n`))],
	])('is accepted if the %s differs', async (_name, change) => {
		const { project, file } = await begin();
		expect((await project.run([...(await change(file, project)), '--no-wait'])).code).toBe(0);
	});

	it('continues a campaign if only the sender’s letter case differs, but exits with 5 if --tag differs', async () => {
		const { project, file } = await begin();
		const same = instead(base(file, '--campaign', 'first', '--no-wait'), {
			'news@example.com': 'news@Example.com',
		});
		expect((await project.run(same)).code).toBe(0);
		const other = await project.run(instead(base(file, '--campaign', 'first'), { november: 'december' }));
		expect([other.code, other.stderr]).toEqual([
			5,
			expect.stringContaining('the name "first" belongs to another campaign'),
		]);
	});
});

function without(words: readonly string[], flag: string): string[] {
	const at = words.indexOf(flag);
	return [...words.slice(0, at), ...words.slice(at + 2)];
}
