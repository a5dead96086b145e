/** `send` at a terminal asks for missing options, shows the message, and prints an equivalent command. */
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject, type Project } from '../../../support/project.js';
import { shellWords } from '../../../support/shell-words.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

type Answers = Parameters<typeof typing>[0];

const down = '\x1b[B';

let sink: SmtpSink;
let project: Project;
let text: string;

beforeEach(async () => {
	sink = await startSmtpSink();
	project = await makeProject({ smtp: sink.port });
	await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com', '--name', 'Ann']);
	text = await project.file('news.txt', 'Hi #name#,\nthe news.\n');
});
afterEach(() => sink.close());

async function guided(words: readonly string[], answers: Answers, columns?: number) {
	const result = await typing(answers, (options) => project.run(['send', ...words], options), columns);
	// Join a hint with its command, which begins on a new line if it does not fit.
	return { ...result, shown: stripVTControlCharacters(result.stderr).replaceAll(/:\n(?=mailctl )/g, ': ') };
}

const sentTo = () => sink.received.map(({ to }) => to[0]);
const fromFile = (): Answers => [
	['❯ a text, written', down, 'all'],
	['❯ a text from a file', ''],
	['File:', text],
];
const agreed: Answers = [
	['❯ send it to 1 recipient', ''],
	['(y/N)', 'y'],
];

describe('mailctl send', () => {
	it('asks on a terminal for recipients, sender and content, shows the message, and can send a test first', async () => {
		const { code, shown, stdout } = await guided(
			[],
			[
				['❯ the subscribers of a list', ''],
				['❯ Readers (1 active subscriber)', ''],
				...fromFile(),
				['Subject:', 'News'],
				['❯ send it to 1 recipient', down, 'all'],
				['❯ send a test message', ''],
				['Your address:', 'me@example.com'],
				...agreed,
			],
			80,
		);
		expect([code, stdout, sentTo()]).toEqual([0, '', ['me@example.com', 'ann@example.com']]);
		expect(shown).toContain('From: news@example.com, the only sender\n');
		expect(shown).toContain('Subject: News\nTo: ann@example.com\n\n  Hi Ann,\n  the news.\n');
		expect(shown.replaceAll(/\s+/g, ' ')).toMatch(
			/ a test of "News" to me@example.com, as ann@example.com would get it: message [0-9a-f-]{36} /,
		);
		const words = ['send', '--from', 'news@example.com', '--list', '1', '--subject', 'News'];
		const line = [`mailctl --db ${project.db}`, ...words, '--text-file', text, '--yes --expect-count 1'];
		expect(shown.replaceAll(/\s/g, '')).toContain(
			`thesamewithoutquestions:${line.join('').replaceAll(' ', '')}`,
		);
		const again = [...words, '--text-file', text, '--again', '--dry-run'];
		expect((await project.run(again)).code).toBe(0);
	});

	it.each([
		'\x03',
		'\x04',
	])('exits with 130 if the user presses Ctrl-C or Ctrl-D at any question', async (key) => {
		await project.json(['senders', 'add', 'office@example.com']);
		const answers: Answers = [
			['❯ the subscribers of a list', ''],
			['❯ Readers', ''],
			['From:', ''],
			...fromFile(),
			['Subject:', 'News'],
		];
		const ends = ['To whom?', 'Which list:', 'From:', 'Content?', '', 'File:', 'Subject:'];
		for (const [before, question] of [...ends, 'What now?'].entries()) {
			if (question === '') continue;
			const { code, shown } = await guided([], [...answers.slice(0, before), [question, key, 'all']]);
			expect(code).toBe(130);
			expect(shown).not.toContain('the same without questions');
			expect(shown.split('declined, nothing was changed\n')[1]).toBe(
				question === 'What now?'
					? `hint: continue with: mailctl --db ${project.db} send --from news@example.com --list 1 --subject News --text-file ${text}\n`
					: '',
			);
		}
		expect(sink.received).toEqual([]);
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
	});

	it('takes the subject from the heading of a Markdown file, and asks for a subject if there is no heading', async () => {
		const letter = await project.file('letter.md', '# Dear #name#\n\nthe *news*.\n');
		const { code, shown } = await guided(['--list', '1', '--markdown-file', letter], agreed);
		expect([code, sentTo()]).toEqual([0, ['ann@example.com']]);
		expect(shown).not.toMatch(/\? (Content|Subject)/);
		expect(sink.received[0]?.raw.toString()).toMatch(/^Subject: Dear Ann\r$/m);
		const plain = await project.file('plain.md', 'the *news*.\n');
		const asked = await guided(['--list', '1', '--markdown-file', plain], [['Subject:', '\x03', 'all']]);
		expect(asked.code).toBe(130);
	});

	const contents = [
		...['--subject News --text-file news.txt', '--markdown-file letter.md', '--template Welcome'],
		...['--subject News', '--text Hi', ''],
	];
	const hasBody = (line: string) => /--(text|html|markdown|template)/.test(line);
	const hasSubject = (line: string) => /--(subject|markdown|template)/.test(line);
	const mixtures = ['--list 1', '--csv people.csv', '--to ann@example.com'].flatMap((audience) =>
		contents.map((content) => `${audience} ${content}`.trim()),
	);

	it.each(mixtures)('shows the message and prints a command with the answers: %s', async (line) => {
		const { file, json, folder } = project;
		await file('people.csv', 'email,name\nann@example.com,Ann\n');
		await file('letter.md', '# Dear #name#\n\nthe *news*.\n');
		await json(['templates', 'create', '--name', 'Welcome', '--text-file', await file('w.txt', 'Hi')]);
		const words = line.split(' ');
		const given = words.map((word) => (/^[a-z]+\.(csv|md|txt)$/.test(word) ? join(folder, word) : word));
		const { shown, code } = await guided(given, [
			...(hasBody(line) ? [] : fromFile()),
			...(hasSubject(line) ? [] : ([['Subject:', 'News']] as const)),
			['❯ send it to 1 recipient', '\x03', 'all'],
		]);
		expect(code).toBe(130);
		expect(shown).toMatch(/\nSubject: .+\nTo: ann@example.com\n/);
		expect(shown).toContain('send a test message to yourself');
		const again = /continue with: (mailctl .*)\n/.exec(shown)?.[1] ?? shown;
		const dry = await cli([...shellWords(again), '--dry-run', '--no-input'], { env: { HOME: folder } });
		expect([dry.code, dry.stderr]).toEqual([0, expect.not.stringContaining('error')]);
	});

	it('counts the selected people, and prints a command with this count in --expect-count', async () => {
		await project.json(['lists', 'create', '--name', 'Staff', '--email-reason', 'r']);
		for (const [list, email] of [
			['1', 'bob@example.com'],
			['2', 'bob@example.com'],
			['1', 'cy@example.com'],
		] as const)
			await project.json(['subscribers', 'create', '-l', list, '--email', email]);
		const words = ['--list', '1', '--exclude-list', 'Staff', '--in', '90m', '--subject', "It's"];
		const { shown, code } = await guided(
			[...words, '--text-file', text],
			[
				['❯ send it to 2 recipients', ''],
				['(y/N)', 'y'],
			],
		);
		expect(code).toBe(0);
		const again = /the same without questions: (mailctl .*)\n/.exec(shown)?.[1] ?? shown;
		expect(again).toContain(' --in 90m --yes --expect-count 2');
		const env = { HOME: project.folder };
		expect(await cli([...shellWords(again), '--again'], { env })).toMatchObject({ code: 0 });
	});

	it.each([
		['--list', '1', '--csv', 'people.csv'],
		['--list', '1', '--template', 'Welcome', '--text', 'Hi'],
		['--to', 'ann@example.com', '--again'],
		['--list', '1', '--rate', 'many'],
		['--list', '1', '--at', '2020-01-01 09:00'],
	])('rejects %s %s %s … before it asks anything', async (...words) => {
		const { code, shown } = await guided(words, []);
		expect([code, shown]).toEqual([2, expect.not.stringContaining('?')]);
	});

	it('asks nothing if the list does not exist, and exits with 3', async () => {
		const { code, shown } = await guided(['--list', 'Reader', '--subject', 'S', '--text', 'T'], []);
		expect([code, shown]).toEqual([3, expect.stringContaining('did you mean Readers?')]);
		expect(shown).not.toContain('continue with');
	});

	it('asks before it sends to several --to addresses, and Enter declines', async () => {
		const mail = ['--to', 'bob@example.com', '--to', 'cy@example.com', '--subject', 'News', '--text', 'Hi'];
		const question = 'This will send it to 2 recipients. Continue? (y/N)';
		const answering = (answer: string) =>
			guided(mail, [
				['❯ send it to 2 recipients', ''],
				[question, answer],
			]);
		const declined = await answering('');
		expect([declined.code, sink.received]).toEqual([130, []]);
		expect(declined.shown).toMatch(
			/declined, nothing was changed\nhint: continue with: mailctl .* --text Hi\n$/,
		);
		const { code, shown } = await answering('y');
		expect([code, sentTo()]).toEqual([0, ['bob@example.com', 'cy@example.com']]);
		expect(shown).toMatch(/the same without questions: mailctl .* --text Hi\n/);
	});

	it('asks for the path of a table, and sends mail to every row', async () => {
		const table = await project.file('people.csv', 'email,name\nbob@example.com,Bob\neve@example.com,Eve\n');
		const { code, shown } = await guided(
			[],
			[
				['❯ the subscribers of a list', `${down}${down}`, 'all'],
				['❯ the rows of a table', ''],
				['Table:', `${table}x`],
				['no such file', `\x15${table}`],
				...fromFile(),
				['Subject:', 'News'],
				['❯ send it to 2 recipients', ''],
				['(y/N)', 'y'],
			],
		);
		expect([code, sentTo().sort()]).toEqual([0, ['bob@example.com', 'eve@example.com']]);
		expect(shown.replaceAll(/\s/g, '')).toContain(`--csv${table}`);
	});

	it('asks which of several stored senders to use', async () => {
		await project.json(['senders', 'add', 'office@example.com']);
		const mail = ['--to', 'bob@example.com', '--subject', 'News', '--text', 'Hi'];
		for (const yes of [[], ['--yes']])
			expect((await guided([...mail, ...yes], [['From:', '\x03', 'all']])).code).toBe(130);
	});

	it('asks again for an invalid sender', async () => {
		await project.json(['senders', 'remove', 'news@example.com', '--yes']);
		const { shown } = await guided(
			['--to', 'bob@example.com', '--subject', 'News', '--text', 'Hi'],
			[
				['From:', 'no address'],
				['"no address" is not an e-mail address', '\x15news@example.com'],
				['What now?', '\x03', 'all'],
			],
		);
		expect(shown).toContain('send --from news@example.com --to bob@example.com');
	});

	it('warns about recipients without a value for a variable, and can leave them out', async () => {
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		await project.json('subscribers create -l 1 --email bob@example.com --meta city=Oslo'.split(' '));
		const mail = ['--list', '1', '--subject', 'News', '--text', 'Hi #city#'];
		const { code, shown } = await guided(mail, [
			['❯ send it to 1 recipient, leaving out 1 recipient', ''],
			['(y/N)', 'y'],
		]);
		expect([code, sentTo()]).toEqual([9, ['bob@example.com']]);
		expect(shown).toContain('warning: ann@example.com: no value for #city#.\n');
		expect(shown).toContain('warning: left out: ann@example.com: no value for #city#.\n');
		expect(shown).toMatch(/first of them:\n\s+bob@example\.com\n(?!\s+ann)/);
		expect(shown).toContain('--skip-invalid --yes --expect-count 1');
		await project.json(['subscribers', 'delete', 'bob@example.com', '-l', '1', '--yes']);
		const none = await guided(mail, [['What now?', '\x03', 'all']]);
		expect(none.shown).toContain('Subject: News\nTo: ann@example.com\n\n  Hi #city#\n');
		expect(none.shown).not.toContain('❯ send it');
	});

	it('explains why no row of a table can receive mail', async () => {
		const look = async (name: string, rows: string) => {
			const file = await project.file(name, rows);
			const { shown } = await guided(
				['--csv', file, '--from', 'news@example.com', '--text', 'Hi'],
				[
					['Subject:', 'News'],
					['What now?', '\x03'],
				],
			);
			expect(shown).not.toMatch(/send it to \d/);
			return shown;
		};
		const faulty = await look('faulty.csv', 'email\nann\nbob@\nann@example.com,b\n');
		expect(faulty).toContain('warning: line 2: ann: to: Enter a valid email address: it has no @\n');
		expect(faulty).toContain('warning: line 4: ann@example.com: 2 cells where the header has 1\n');
		expect(await look('none.csv', 'email\n')).toContain('nobody would receive it\n');
	});

	it('asks nothing in a script and exits with 2', async () => {
		expect(await project.run(['send'])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('no recipients'),
		});
	});

	it('exits with 2 before any question if no mail server is configured, but still asks with --preview', async () => {
		project = await makeProject();
		const { code, shown } = await guided([], []);
		expect([code, shown]).toEqual([2, expect.stringContaining('no mail server is configured')]);
		expect((await guided(['--preview', 'text'], [['❯ some addresses', '\x03', 'all']])).code).toBe(130);
	});
});
