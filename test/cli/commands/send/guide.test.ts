/** `send` at a terminal with too little given: asks for the rest, shows the message, and prints the command that does the same. */
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject } from '../../../support/project.js';
import { shellWords } from '../../../support/shell-words.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

type Answers = Parameters<typeof typing>[0];

const down = '\x1b[B';

async function withList(sink: SmtpSink) {
	const project = await makeProject({ smtp: sink.port });
	const { json, run, file } = project;
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com', '--name', 'Ann']);
	const text = await file('news.txt', 'Hi #name#,\nthe news.\n');
	const guided = async (words: readonly string[], answers: Answers, columns?: number) => {
		const result = await typing(answers, (options) => run(['send', ...words], options), columns);
		// A command of a hint that finds no room begins on a line by itself.
		return { ...result, shown: stripVTControlCharacters(result.stderr).replaceAll(/:\n(?=mailctl )/g, ': ') };
	};
	return { ...project, text, guided };
}

/** To the last question, for the only list and a text file. */
function toTheEnd(text: string): Answers {
	return [['❯ the list Readers', ''], ...ofContent(text)];
}

/** The same where a list and a sender are chosen among several. */
function toTheEndOfSeveral(text: string): Answers {
	return [
		['❯ the subscribers of a list', ''],
		['Which list:', 'read', 'all'],
		['❯ Readers (1 active subscriber)', ''],
		['From:', ''],
		...ofContent(text),
	];
}

function ofContent(text: string): Answers {
	return [
		['❯ a text, written', down, 'all'],
		['❯ a text from a file', ''],
		['Subject:', 'News'],
		['File:', text],
	];
}

describe('send on a terminal', () => {
	const columns = 80;

	it('asks for recipients, sender and content, shows the message, tests it and sends it', async () => {
		const sink = await startSmtpSink();
		const { guided, text, db, run } = await withList(sink);
		const { code, shown, stdout } = await guided(
			[],
			[
				...toTheEnd(text),
				['❯ send it to 1 recipient', down, 'all'],
				['❯ send a test mail', ''],
				['Your address:', 'me@example.com'],
				['❯ send it to 1 recipient', ''],
				['(y/N)', 'y'],
			],
			columns,
		);
		await sink.close();
		expect(code).toBe(0);
		expect(sink.received.map(({ to }) => to)).toEqual([['me@example.com'], ['ann@example.com']]);
		expect(shown).toContain('Subject: News\nTo: ann@example.com\n\n  Hi Ann,\n  the news.\n');
		expect(shown.replaceAll(/\s+/g, ' ')).toMatch(
			/ a test mail of "News" as for ann@example.com, to me@example.com: message [0-9a-f-]{36} /,
		);
		expect(stdout).toBe('');
		const words = [
			'send',
			'--from',
			'news@example.com',
			'--list',
			'Readers',
			'--subject',
			'News',
			'--text-file',
			text,
		];
		const line = [`mailctl --db ${db}`, ...words, '--yes --expect-count 1'].join(' ');
		expect(shown.replaceAll(/\s/g, '')).toContain(`thesamewithoutquestions:${line.replaceAll(' ', '')}`);
		expect((await run([...words, '--again', '--dry-run'])).code).toBe(0);
	});
});

describe('send that is left', () => {
	const steps: readonly (readonly [string, number])[] = [
		['To whom?', 0],
		['Which list:', 1],
		['From:', 3],
		['What is to be sent?', 4],
		['Subject:', 6],
		['File:', 7],
		['What now?', 8],
	];

	it.each(steps)('at "%s" sends nothing, and leads back once all was answered', async (question, before) => {
		const sink = await startSmtpSink();
		const { guided, text, json, db } = await withList(sink);
		await json(['lists', 'create', '--name', 'Staff', '--email-reason', 'r']);
		await json(['senders', 'add', 'office@example.com']);
		for (const key of ['\x03', '\x04']) {
			const answers = toTheEndOfSeveral(text).slice(0, before);
			const { code, shown } = await guided([], [...answers, [question, key, 'all']]);
			expect(code).toBe(130);
			const [, told] = shown.split('declined, nothing was changed\n');
			expect(shown).not.toContain('the same without questions');
			expect(told).toBe(
				question === 'What now?'
					? `hint: go on with: mailctl --db ${db} send --from news@example.com --list Readers --subject News --text-file ${text}\n`
					: '',
			);
		}
		await sink.close();
		expect(sink.received).toEqual([]);
		expect(await json(['campaigns', 'list'])).toEqual([]);
	});

	it('by an error ends with it, and then names the command that has the answers', async () => {
		const sink = await startSmtpSink();
		const { guided, text, json, db } = await withList(sink);
		const removed = async () => {
			await json(['senders', 'remove', 'news@example.com', '--yes']);
			return '';
		};
		const { code, shown } = await guided(
			['--to', 'ann@example.com', '--text-file', text],
			[
				['Subject:', 'News'],
				['❯ send it to 1 recipient', removed],
				['(y/N)', 'y'],
			],
		);
		await sink.close();
		expect(code).toBe(5);
		expect(shown).not.toContain('the same without questions');
		const [, told] = shown.split('error: from: Sender address is not verified. (news@example.com)\n');
		expect(told?.replaceAll(/\s+/g, ' ')).toBe(
			`hint: mailctl --db ${db} senders add news@example.com hint: once that is mended, go on with: ` +
				`mailctl --db ${db} send --from news@example.com --to ann@example.com --subject News --text-file ${text} `,
		);
	});
});

describe('send with something given', () => {
	it('takes the subject from the heading of a Markdown file, chosen or given', async () => {
		const sink = await startSmtpSink();
		const { guided, file } = await withList(sink);
		const letter = await file('letter.md', '# Dear #name#\n\nthe *news*.\n');
		const given = await guided(
			['--list', '1', '--markdown-file', letter],
			[
				['❯ send it to 1 recipient', ''],
				['(y/N)', 'y'],
			],
		);
		const chosen = await guided(
			['--to', 'bob@example.com'],
			[
				['❯ a text, written', `${down}${down}${down}`, 'all'],
				['❯ Markdown from a file', ''],
				['File:', letter],
				['❯ send it to 1 recipient', ''],
				['(y/N)', 'y'],
			],
		);
		await sink.close();
		expect([given.code, chosen.code]).toEqual([0, 0]);
		expect(given.shown).not.toContain('What is to be sent?');
		expect(sink.received.map(({ to }) => to)).toEqual([['ann@example.com'], ['bob@example.com']]);
		expect(sink.received.map(({ raw }) => /^Subject: .*/m.exec(raw.toString())?.[0])).toEqual([
			'Subject: Dear Ann',
			expect.stringContaining('Subject: Dear'),
		]);
	});

	const contents = [
		...[
			'--subject News --text-file news.txt',
			'--subject News --html <p>Hi</p>',
			'--markdown-file letter.md',
		],
		...['--subject News --text Hi', '--template Welcome', '--subject News', '--text Hi', ''],
	];
	const hasBody = (line: string) => /--(text|html|markdown|template)/.test(line);
	const hasSubject = (line: string) => /--(subject|markdown|template)/.test(line);
	const mixtures = ['--list 1', '--csv people.csv', '--to ann@example.com']
		.flatMap((audience) => contents.map((content) => `${audience} ${content}`.trim()))
		.flatMap((line) => [line, `${line} --from news@example.com`, `${line} --at 2126-12-01T09:00`])
		.filter((line) => !(line.includes('--to') && line.includes('--at')))
		.filter((line) => !(line.includes('--from') && hasBody(line) && hasSubject(line)));
	const answersTo = (line: string, text: string): Answers => [
		...(hasBody(line)
			? []
			: ([
					['❯ a text, written', down, 'all'],
					['❯ a text from a file', ''],
				] as const)),
		...(hasSubject(line) ? [] : ([['Subject:', 'News']] as const)),
		...(hasBody(line) ? [] : ([['File:', text]] as const)),
		['❯ send it to 1 recipient', '\x03', 'all'],
	];

	it.each(mixtures)('shows the message and prints the command: %s', async (line) => {
		const sink = await startSmtpSink();
		const { guided, file, json, folder, text } = await withList(sink);
		await file('people.csv', 'email,name\nann@example.com,Ann\n');
		await file('letter.md', '# Dear #name#\n\nthe *news*.\n');
		await json(['templates', 'create', '--name', 'Welcome', '--text-file', await file('w.txt', 'Hi')]);
		const words = line.split(' ');
		const given = words.map((word) => (/^[a-z]+\.(csv|md|txt)$/.test(word) ? join(folder, word) : word));
		const { shown, code } = await guided(given, answersTo(line, text));
		expect(code).toBe(130);
		expect(shown).toMatch(/\nSubject: .+\nTo: ann@example.com\n/);
		expect(shown).toContain('send a test mail to yourself');
		const again = /go on with: (mailctl .*)\n/.exec(shown)?.[1] ?? shown;
		const dry = await cli([...shellWords(again), '--dry-run', '--no-input'], { env: { HOME: folder } });
		expect([dry.code, dry.stderr]).toEqual([0, expect.not.stringContaining('error')]);
		await sink.close();
	});

	it('counts who is left of lists, and the printed command has the number', async () => {
		const sink = await startSmtpSink();
		const { guided, text, run, folder, json } = await withList(sink);
		await json(['lists', 'create', '--name', 'Staff', '--email-reason', 'r']);
		for (const [list, email] of [
			['1', 'bob@example.com'],
			['2', 'bob@example.com'],
			['1', 'cy@example.com'],
		] as const)
			await json(['subscribers', 'create', '-l', list, '--email', email]);
		const words = [
			'--list',
			'1',
			'--exclude-list',
			'Staff',
			'--in',
			'90m',
			'--subject',
			"It's",
			'--text-file',
			text,
		];
		const { shown, code } = await guided(words, [
			['❯ send it to 2 recipients', ''],
			['(y/N)', 'y'],
		]);
		expect(code).toBe(0);
		const again = /the same without questions: (mailctl .*)\n/.exec(shown)?.[1] ?? shown;
		expect(again).toContain(' --in 90m --yes --expect-count 2');
		const pasted = shellWords(again);
		expect(await cli([...pasted, '--again'], { env: { HOME: folder } })).toMatchObject({ code: 0 });
		const campaigns = JSON.parse((await run(['campaigns', 'list', '-o', 'json'])).stdout);
		expect(campaigns).toMatchObject([{ subject: "It's" }, { subject: "It's" }]);
		await sink.close();
	});

	it('refuses what no answer could mend before it asks', async () => {
		const sink = await startSmtpSink();
		const { guided } = await withList(sink);
		for (const words of [
			['--list', '1', '--csv', 'people.csv'],
			['--list', '1', '--template', 'Welcome', '--text', 'Hi'],
			['--to', 'ann@example.com', '--again'],
			['--list', '1', '--cc', 'ann@example.com'],
			['--list', '1', '--rate', 'many'],
			['--list', '1', '--at', '2020-01-01 09:00'],
		]) {
			const { code, shown } = await guided(words, []);
			expect([code, shown]).toEqual([2, expect.not.stringContaining('?')]);
		}
		await sink.close();
	});

	const whole = ['--to', 'bob@example.com', '--subject', 'News', '--text', 'Hi'];

	it('to some addresses asks like a campaign, and Enter alone sends nothing', async () => {
		const sink = await startSmtpSink();
		const { guided } = await withList(sink);
		const mail = ['--to', 'bob@example.com', '--to', 'cy@example.com', '--subject', 'News', '--text', 'Hi'];
		const question = 'This will send it to 2 recipients. Go on? (y/N)';
		const declined = await guided(mail, [
			['❯ send it to 2 recipients', ''],
			[question, ''],
		]);
		expect([declined.code, sink.received]).toEqual([130, []]);
		expect(declined.shown).toMatch(
			/declined, nothing was changed\nhint: go on with: mailctl .* --text Hi\n$/,
		);
		const agreed = await guided(mail, [
			['❯ send it to 2 recipients', ''],
			[question, 'y'],
		]);
		await sink.close();
		expect([agreed.code, sink.received.map(({ to }) => to)]).toEqual([
			0,
			[['bob@example.com'], ['cy@example.com']],
		]);
		expect(agreed.shown).toMatch(/the same without questions: mailctl .* --text Hi\n/);
	});

	it.each([
		['a page of its own', ['--text', 'Hi #view_url#'], true],
		['a counted link', ['--html', '<a href="https://example.com/">x</a>'], true],
		['none of the service', ['--text', 'https://example.com/'], false],
	])('warns of links to this machine in mail to addresses with %s', async (_, content, isWarned) => {
		const sink = await startSmtpSink();
		const { guided } = await withList(sink);
		const mail = ['--to', 'bob@example.com', '--subject', 'News', ...content];
		const { shown } = await guided(mail, [['What now?', '\x03', 'all']]);
		await sink.close();
		const warning = 'warning: links of this mail point to this machine: no other machine can follow them\n';
		expect(shown.includes(warning)).toBe(isWarned);
	});

	it('takes the only sender, list and template without a question', async () => {
		const sink = await startSmtpSink();
		const { guided, file, json } = await withList(sink);
		await json(['templates', 'create', '--name', 'Welcome', '--text-file', await file('w.txt', 'Hi')]);
		const { code, shown } = await guided(
			[],
			[
				['❯ the list Readers (1 active subscriber)', ''],
				['What is to be sent?', '\x1b[A', 'all'],
				['❯ the template Welcome', ''],
				['❯ send it to 1 recipient', ''],
				['(y/N)', 'y'],
			],
		);
		await sink.close();
		expect([code, sink.received.map(({ to }) => to)]).toEqual([0, [['ann@example.com']]]);
		expect(shown).toContain('From: news@example.com, the only sender\n');
		expect(shown).not.toMatch(/\? (From|Which)/);
	});

	it('does not offer the only list where it has no active subscribers', async () => {
		const sink = await startSmtpSink();
		const { guided, json } = await withList(sink);
		await json(['subscribers', 'delete', 'ann@example.com', '-l', '1', '--yes']);
		const { shown } = await guided([], [['❯ some addresses', '\x03', 'all']], 40);
		await sink.close();
		expect(shown).toContain('- the list Readers (0 active)\n');
	});

	it('sends to the rows of a table that is asked for, and its command has the file', async () => {
		const sink = await startSmtpSink();
		const { guided, file, text } = await withList(sink);
		const table = await file('people.csv', 'email,name\nbob@example.com,Bob\neve@example.com,Eve\n');
		const { code, shown } = await guided(
			[],
			[
				['❯ the list Readers', `${down}${down}`, 'all'],
				['❯ the rows of a table', ''],
				['Table:', `${table}x`],
				['no such file', `\x15${table}`],
				...ofContent(text),
				['❯ send it to 2 recipients', ''],
				['(y/N)', 'y'],
			],
		);
		await sink.close();
		expect([code, sink.received.map(({ to }) => to[0]).sort()]).toEqual([
			0,
			['bob@example.com', 'eve@example.com'],
		]);
		expect(shown.replaceAll(/\s/g, '')).toContain(`--csv${table}`);
	});

	it('names the only sender as the pages do', async () => {
		const sink = await startSmtpSink();
		const { guided, json } = await withList(sink);
		await json(['engine', 'settings', 'set', 'page_sender_name', 'Birds & "Bees"']);
		const { shown } = await guided([...whole, '--yes'], []);
		await sink.close();
		expect(shown).toContain('From: "Birds & \\"Bees\\"" <news@example.com>, the only sender\n');
		expect(sink.received[0]?.raw.toString()).toContain('From: "Birds & \\"Bees\\"" <news@example.com>');
	});

	it.each([
		['without a verified one', { sender: false as const }, []],
		['of several', {}, ['office@example.com']],
	])('asks for the sender %s', async (_, more, others) => {
		const { run, json } = await makeProject({ smtp: 1, ...more });
		for (const one of others) await json(['senders', 'add', one]);
		for (const yes of [[], ['--yes']]) {
			const asked = await typing([['From:', '\x03', 'all']], (options) =>
				run(['send', ...whole, ...yes], options),
			);
			expect(asked.code).toBe(130);
		}
	});

	it('asks again for a sender that is no address, and offers to add one that is none yet', async () => {
		const { run } = await makeProject({ smtp: 1, sender: false });
		const answers: Answers = [
			['From:', 'no address'],
			['"no address" is not an e-mail address', '\x15news@example.com'],
			['(y/N)', 'y'],
			['What now?', '\x03', 'all'],
		];
		const { stderr } = await typing(answers, (options) => run(['send', ...whole], options));
		expect(stripVTControlCharacters(stderr)).toContain('send --from news@example.com --to bob@example.com');
		expect(stripVTControlCharacters(stderr)).toContain('added the sender news@example.com\n');
	});

	it('refuses a list that is not there before it asks, and repeats no typing error', async () => {
		const sink = await startSmtpSink();
		const { guided } = await withList(sink);
		const { code, shown } = await guided(['--list', 'Reader', '--subject', 'S', '--text', 'T'], []);
		await sink.close();
		expect([code, shown]).toEqual([3, expect.stringContaining('did you mean Readers?')]);
		expect(shown).not.toContain('go on with');
	});

	it('prints the moment of a day that was given in words', async () => {
		const sink = await startSmtpSink();
		const { guided } = await withList(sink);
		const words = ['--list', '1', '--subject', 'News', '--text', 'Hi', '--at', 'Tomorrow 9:00'];
		const { shown } = await guided(words, [['What now?', '\x03', 'all']], 200);
		await sink.close();
		expect(shown).toMatch(/go on with: mailctl .* --at \d{4}-\d\d-\d\dT09:00\n$/);
	});

	it('names the variables before the editor opens', async () => {
		const sink = await startSmtpSink();
		const { guided, json } = await withList(sink);
		await json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		const { shown } = await guided(
			['--list', '1', '--subject', 'News'],
			[
				['❯ a text, written', ''],
				['Text, Enter opens this editor:', '\x03', 'all'],
			],
			140,
		);
		await sink.close();
		expect(shown).toContain(
			'variables: #name#, #email#, #city#; #name|friend# has a default; #unsubscribe_url# is the link to unsubscribe: put it in\n',
		);
	});

	it('warns of recipients without a value, and leaves them out where that is chosen', async () => {
		const sink = await startSmtpSink();
		const { guided, json } = await withList(sink);
		await json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		await json(['subscribers', 'create', '-l', '1', '--email', 'bob@example.com', '--meta', 'city=Oslo']);
		const mail = ['--list', '1', '--subject', 'News', '--text', 'Hi #city#'];
		const { code, shown } = await guided(mail, [
			['❯ send it to 1 recipient, without 1 recipient', ''],
			['(y/N)', 'y'],
		]);
		expect([code, sink.received.map(({ to }) => to)]).toEqual([9, [['bob@example.com']]]);
		expect(shown).toContain('warning: ann@example.com: no value for #city#.\n');
		expect(shown).toContain('warning: left out: ann@example.com: no value for #city#.\n');
		expect(shown).toMatch(/first of them:\n\s+bob@example\.com\n(?!\s+ann)/);
		expect(shown).toContain('--skip-invalid --yes --expect-count 1');
		await json(['subscribers', 'delete', 'bob@example.com', '-l', '1', '--yes']);
		const none = await guided(mail, [['What now?', '\x03', 'all']]);
		await sink.close();
		expect(none.shown).toContain('Subject: News\nTo: ann@example.com\n\n  Hi #city#\n');
		expect(none.shown).not.toContain('❯ send it');
	});

	it('says why no row of a table can be sent to, and offers no sending', async () => {
		const sink = await startSmtpSink();
		const { guided, file, json } = await withList(sink);
		const mail = ['--from', 'news@example.com', '--text', 'Hi'];
		const look = async (...more: string[]) =>
			(
				await guided(
					[...mail, ...more],
					[
						['Subject:', 'News'],
						['What now?', '\x03'],
					],
				)
			).shown;
		const faulty = await look('--csv', await file('faulty.csv', 'email\nann\nbob@\nann@example.com,b\n'));
		expect(faulty).toContain('warning: line 2: ann: to: Enter a valid email address: it has no @\n');
		expect(faulty).toContain('line 3: bob@: to: Enter a valid email address: nothing stands after @\n');
		expect(faulty).toContain('warning: line 4: ann@example.com: 2 cells where the header has 1\n');
		expect(await look('--csv', await file('none.csv', 'email\n'))).toContain('nobody would receive it\n');
		await json(['subscribers', 'update', '-l', '1', 'ann@example.com', '--inactive']);
		const inactive = await look('--list', '1');
		expect(inactive).toContain('warning: nobody would receive it\n');
		for (const shown of [faulty, inactive]) expect(shown).not.toMatch(/send it to \d/);
		await sink.close();
	});

	it('asks whether another variable was meant, and proposes no default for one that is none', async () => {
		const sink = await startSmtpSink();
		const { guided, json } = await withList(sink);
		await json(['fields', 'create', '--variable', 'City', '--name', 'City']);
		const mail = ['--list', '1', '--subject', 'News', '--text', 'Hi #city#'];
		const { shown } = await guided(mail, [['What now?', '\x03', 'all']]);
		await sink.close();
		expect(shown).toContain(
			'warning: #city# is no known variable\nhint: did you mean #City#? Upper and lower case count\n',
		);
		expect(shown).toContain('warning: ann@example.com: no value for #city#.\n');
	});

	it('is exit 2 in a script', async () => {
		const sink = await startSmtpSink();
		const { run } = await withList(sink);
		expect(await run(['send'])).toMatchObject({ code: 2, stderr: expect.stringContaining('no recipients') });
		await sink.close();
	});

	it('asks nothing where there is no mail server', async () => {
		const { run } = await makeProject();
		const result = await typing([], (options) => run(['send'], options));
		expect(result).toMatchObject({ code: 2, stderr: expect.not.stringContaining('?') });
		expect(result.stderr).toContain('no mail server is configured');
		expect(stripVTControlCharacters(result.stderr)).toMatch(
			/asked for it:\s+mailctl --db \S+ engine init\n.*first try: mailctl sink\n/,
		);
		const look = await typing([['❯ some addresses', '\x03', 'all']], (options) =>
			run(['send', '--preview', 'text'], options),
		);
		expect(look.code).toBe(130);
	});
});
