import { chmod, readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openerOf, pageOf } from '../../../../src/cli/render/browser.js';
import { withValues } from '../../../support/cli.js';
import { eventually } from '../../../support/eventually.js';
import { errorOf, makeProject, type Project } from '../../../support/project.js';
import { fill, smallDisk } from '../../../support/small-disk.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

let project: Project;
let sink: SmtpSink;

beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
});
afterEach(async () => {
	expect(sink.received).toEqual([]);
	await sink.close();
});

const news = ['send', '--from', 'news@example.com', '--subject', 'For #name#', '--text', 'Hi #name#'];
const unknown = {
	code: 3,
	stdout: '',
	stderr: expect.stringContaining('--preview-as: eve@example.com is not'),
};

describe('--preview-as', () => {
	it('shows the message that one subscriber gets, and exits with 3 if the subscriber is inactive', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked']);
		for (const [email, ...more] of [
			['ann@example.com', '--name', 'Ann'],
			['Bob@Example.com', '--name', 'Bob'],
			['eve@example.com', '--name', 'Eve', '--inactive'],
		] as const)
			await project.json(['subscribers', 'create', '-l', '1', '--email', email, ...more]);
		const look = [...news, '--list', 'Readers', '--preview-as'];
		expect(await project.run([...look, 'bob@example.com'])).toMatchObject({ code: 0, stdout: 'Hi Bob\n' });
		expect((await project.run([...look, 'bob@example.com', '--eml', '-'])).stdout).toContain(
			'Subject: For Bob',
		);
		expect(await project.run([...look, 'bob@example.com', '-n', '-o', 'json'])).toMatchObject({
			code: 0,
			stdout: expect.stringContaining('Subject: For Bob'),
		});
		for (const more of [[], ['-n'], ['--test-to', 'me@example.com', '-n']])
			expect(await project.run([...look, 'eve@example.com', ...more])).toMatchObject(unknown);
		expect((await project.run([...look, 'nobody'])).code).toBe(2);
	});

	it('shows the message to one address of a table, a batch or the --to options', async () => {
		const csv = await project.file('p.csv', 'email,name\nann@example.com,Ann\nbob@example.com,Bob\n');
		const request = (name: string, ...to: string[]) =>
			JSON.stringify({ from: 'news@example.com', to, subject: 'S', text_body: `Hi ${name}` });
		const batch = await project.file(
			'b.ndjson',
			`${request('Ann', 'ann@example.com')}\n${request('Bob', 'x@example.com', 'BOB@example.com')}\n`,
		);
		const kinds = [
			[...news, '--csv', csv],
			['send', '--batch', batch],
			[
				...news.slice(0, -1),
				'Hi Bob',
				...'--context name=Bob --to a@example.com --to bob@example.com'.split(' '),
			],
		];
		for (const words of kinds) {
			expect(await project.run([...words, '--preview-as', 'bob@example.com'])).toMatchObject({
				code: 0,
				stdout: 'Hi Bob\n',
			});
			for (const dry of [[], ['-n']])
				expect(await project.run([...words, '--preview-as', 'eve@example.com', ...dry])).toMatchObject(
					unknown,
				);
		}
	});
});

describe('send --preview as JSON', () => {
	const hello = [
		...['send', '--from', 'news@example.com', '--to', 'ann@example.com', '--to', 'bob@example.com'],
		...['--subject', 'For #name#', '--text', 'Hi #city#', '--html', '<p>Hi</p><img src="a.png">'],
		...['--context', 'name=Ann'],
	];
	const document = {
		from: 'news@example.com',
		to: 'ann@example.com',
		subject: 'For Ann',
		text: 'Hi #city#',
		html: '<p>Hi</p><img src="a.png">',
		attachments: [],
		missing: ['city'],
		findings: [{ kind: 'no_alt', count: 1, first: { text: 'src="a.png"', line: 1 } }],
		recipients: 2,
		rejected: 0,
	};

	it('prints the message as one JSON document', async () => {
		const part = { ...document, html: expect.stringContaining('<p>Hi</p>') };
		for (const look of ['text', 'html'])
			expect(await project.json([...hello, '--preview', look])).toEqual(part);
		expect(await project.json([...hello, '--preview-as', 'bob@example.com'])).toEqual({
			...part,
			to: 'bob@example.com',
		});
		const { stdout } = await project.run([...hello, '--preview', 'text', '-o', 'ndjson']);
		expect(stdout.split('\n')).toEqual([expect.stringMatching(/^\{.*\}$/), '']);
		expect(JSON.parse(stdout)).toEqual(part);
		const read = [...hello, '--preview', 'text'];
		expect(await project.json([...read, '--fields', 'subject,findings'])).toEqual({
			subject: 'For Ann',
			findings: document.findings,
		});
		expect((await project.run([...read, '--query', 'subject', '-o', 'tsv'])).stdout).toBe('For Ann\n');
	});

	it('includes the attachments and the path of the --eml file', async () => {
		const file = await project.file('a.txt', 'hello');
		const eml = join(project.folder, 'ann.eml');
		expect(await project.json([...hello, '--attach', file, '--eml', eml])).toMatchObject({
			attachments: [{ name: 'a.txt', type: 'text/plain', size: 5, sha256: expect.stringMatching(/^2cf24d/) }],
			eml,
		});
		expect(await readFile(eml, 'utf8')).toContain('Subject: For Ann');
	});

	it('includes the number of recipients of a list, a table or a batch', async () => {
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		for (const [email, ...more] of [['ann@example.com', '--meta', 'city=Oslo'], ['bob@example.com']] as const)
			await project.json(['subscribers', 'create', '-l', '1', '--email', email, ...more]);
		const list = [...news, '--list', '1', '--preview', 'text'];
		expect(await project.json(list)).toMatchObject({ recipients: 2, rejected: 0 });
		expect(await project.json([...list, '--where', 'meta.city=Oslo'])).toMatchObject({ recipients: 1 });
		const city = withValues(list, { '--text': 'Hi #city#' });
		const lacking = { to: 'ann@example.com', text: 'Hi Oslo', recipients: 1, rejected: 1 };
		expect(await project.json(city)).toMatchObject(lacking);
		expect(await project.json([...city, '-n', '--skip-invalid'], { code: 9 })).toMatchObject(lacking);
		const csv = await project.file('p.csv', 'email\nann@example.com\nbob@example.com\nbob@example.com\n');
		const table = [...news, '--preview', 'text', '--csv'];
		expect(await project.json([...table, csv])).toMatchObject({ recipients: 2, rejected: 1 });
		const rows = { stdin: 'email\nann@example.com\nbob@example.com\n' };
		expect(await project.json([...table, '-'], rows)).toMatchObject({ recipients: null, rejected: null });
		const request = { from: 'news@example.com', to: ['ann@example.com'], subject: 'S', text_body: 'Hi' };
		const batch = await project.file('b.ndjson', `${JSON.stringify(request)}\n`);
		expect(await project.json(['send', '--batch', batch, '--preview', 'text'])).toMatchObject({
			...{ to: 'ann@example.com', subject: 'S', text: 'Hi', html: null, missing: [] },
			...{ recipients: 1, rejected: 0 },
		});
	});

	it('rejects --eml - together with -o json, but not with MAILCTL_OUTPUT=json', async () => {
		const eml = [...hello, '--eml', '-'];
		expect(await project.run([...eml, '-o', 'json'])).toMatchObject({ code: 2, stdout: '' });
		const refused = errorOf(await project.run([...eml, '--json']));
		expect(refused['message']).toBe('use either --eml - or -o json, not both');
		const { code, stdout } = await project.run(eml, { env: { MAILCTL_OUTPUT: 'json' } });
		expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('Subject: For Ann\r\n') });
	});
});

describe('--preview browser', () => {
	const look = [...news, '--to', 'ann@example.com', '--context', 'name=Ann', '--preview', 'browser'];

	it('writes a page that only its owner can read, and opens it with $BROWSER', async () => {
		const script = await project.file('browser', '#!/bin/sh\nprintf "%s" "$2" > "$1"\n');
		await chmod(script, 0o755);
		const seen = `${project.folder}/seen`;
		const page = await project.json([...look, '--html', '<p>Hi #name#</p>'], {
			env: { BROWSER: `${script} ${seen}`, TMPDIR: project.folder },
		});
		const { file } = page as { file: string };
		expect(page).toEqual({ file: expect.stringMatching(/message\.html$/), opened: true });
		await eventually(async () => expect(await readFile(seen, 'utf8')).toBe(file));
		expect((await stat(file)).mode & 0o777).toBe(0o600);
		expect((await stat(dirname(file))).mode & 0o777).toBe(0o700);
		expect(await readFile(file, 'utf8')).toContain('srcdoc="&lt;p&gt;Hi Ann&lt;/p&gt;"');
	});

	it('leaves no file if the disk is full', async ({ skip }) => {
		const disk = smallDisk(1);
		if (disk === null) return skip('no disk can be mounted here');
		fill(disk);
		const full = { env: { BROWSER: 'true', TMPDIR: disk } };
		expect(await project.run([...look, '--html', '<p>Hi</p>'], full)).toMatchObject({
			code: 74,
			stderr: expect.stringContaining('--preview browser: the page cannot be written'),
		});
		expect(await readdir(disk)).toEqual(['ballast']);
	});

	it('prints the path of the page if there is no browser', async () => {
		for (const env of [
			{ BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '' },
			{ BROWSER: '/nowhere/browser' },
			{ BROWSER: '', DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' },
		]) {
			const { file, opened } = (await project.json(look, { env })) as { file: string; opened: boolean };
			expect(opened).toBe(false);
			expect(await readFile(file, 'utf8')).toContain('<pre>Hi Ann');
		}
		const person = await project.run([...look, '-o', 'table'], { env: { BROWSER: '/nowhere/browser' } });
		expect(person.stderr).toMatch(/no browser found; open this file: \S+message\.html/);
	});

	it('escapes scripts in a message, and shows the message in a sandboxed frame', () => {
		const page = pageOf({ subject: '</title><script>x', html: '"><script>y</script>', text: '' });
		expect(page).not.toContain('<script>');
		expect(page).toContain('sandbox="allow-popups allow-popups-to-escape-sandbox"');
	});

	it('takes the browser command from $BROWSER, or uses xdg-open or open on a desktop', () => {
		expect(openerOf({ BROWSER: 'firefox --new-tab %s:lynx', SSH_TTY: '/dev/pts/1' }, 'linux')).toEqual([
			...['firefox', '--new-tab', '%s'],
		]);
		expect(openerOf({ DISPLAY: ':0' }, 'linux')).toEqual(['xdg-open']);
		expect(openerOf({ WAYLAND_DISPLAY: 'wayland-0' }, 'linux')).toEqual(['xdg-open']);
		expect(openerOf({}, 'darwin')).toEqual(['open']);
		expect(openerOf({ SSH_TTY: '/dev/pts/1' }, 'darwin')).toBeNull();
		expect(openerOf({}, 'linux')).toBeNull();
	});
});
