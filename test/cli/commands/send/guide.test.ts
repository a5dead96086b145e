/** `send` at a terminal with too little given: asks for the rest, shows the message, and prints the command that does the same. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { makeProject } from '../../../support/project.js';
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
		return { ...result, shown: stripVTControlCharacters(result.stderr) };
	};
	return { ...project, text, guided };
}

/** To the last question, for a list and a text file. */
function toTheEnd(text: string): Answers {
	return [
		['To whom?', ''],
		['Which list:', 'read', 'all'],
		['❯ Readers (1 active subscriber)', ''],
		['From:', ''],
		['❯ a text, written', down, 'all'],
		['❯ a text from a file', ''],
		['Subject:', 'News'],
		['File:', text],
	];
}

describe.each([40, 80, 120])('send on a terminal of %i columns', (columns) => {
	it('asks for recipients, sender and content, shows the message, tests it and sends it', async () => {
		const sink = await startSmtpSink();
		const { guided, text, db, run } = await withList(sink);
		const { code, shown } = await guided(
			[],
			[
				...toTheEnd(text),
				['❯ send it to 1 recipient', `${down}${down}`, 'all'],
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
		const words = [
			'send',
			'--from',
			'news@example.com',
			'--list',
			'1',
			'--subject',
			'News',
			'--text-file',
			text,
		];
		const line = [`mailctl --db ${db}`, ...words, '--yes --expect-count 1'].join(' ');
		expect(shown.replaceAll(/\s/g, '')).toContain(`thesamewithoutquestions:${line.replaceAll(' ', '')}`);
		expect((await run([...words, '--again', '--dry-run'])).code).toBe(0);
		const next = /who opens and clicks it: mailctl --db \S+ campaigns report (\S+)/.exec(
			shown.replaceAll(/\s+/g, ' '),
		);
		expect((await run(['campaigns', 'report', next?.[1] ?? ''])).code).toBe(0);
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

	it.each(steps)('at "%s" sends nothing, and names what was typed', async (question, before) => {
		const sink = await startSmtpSink();
		const { guided, text, json } = await withList(sink);
		for (const key of ['\x03', '\x04']) {
			const { code, shown } = await guided([], [...toTheEnd(text).slice(0, before), [question, key, 'all']]);
			expect(code).toBe(130);
			expect(shown).toContain('declined, nothing was changed');
			if (before > 3)
				expect(shown.replaceAll(/\s+/g, ' ')).toContain('send --from news@example.com --list 1');
		}
		await sink.close();
		expect(sink.received).toEqual([]);
		expect(await json(['campaigns', 'list'])).toEqual([]);
	});
});

describe('send at a later time', () => {
	it('asks for the time until it is one, and the command it prints has it', async () => {
		const sink = await startSmtpSink();
		const { guided, text, run } = await withList(sink);
		const { code, shown } = await guided(
			[],
			[
				...toTheEnd(text),
				['❯ send it to 1 recipient', down, 'all'],
				['❯ send it at a later time', ''],
				['When, by the clock', '2020-01-01 09:00'],
				['past', '\x15tomorrow 9:00'],
				['(y/N)', 'y'],
			],
		);
		await sink.close();
		expect(code).toBe(0);
		expect(sink.received).toEqual([]);
		expect(shown).toContain('planned for ');
		expect(shown.replaceAll(/\s/g, '')).toContain("--at'tomorrow9:00'--yes");
		expect(JSON.parse((await run(['campaigns', 'list', '-o', 'json'])).stdout)).toMatchObject([
			{ state: 'planned' },
		]);
	});

	it('is not offered for some addresses', async () => {
		const sink = await startSmtpSink();
		const { guided, text } = await withList(sink);
		const { shown } = await guided(
			['--to', 'bob@example.com'],
			[
				['From:', ''],
				['❯ a text, written', down, 'all'],
				['❯ a text from a file', ''],
				['Subject:', 'x'],
				['File:', text],
				['❯ send it to 1 recipient', '\x03', 'all'],
			],
		);
		await sink.close();
		expect(shown).not.toContain('later time');
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
				['From:', ''],
				['(y/N)', 'y'],
			],
		);
		const chosen = await guided(
			['--to', 'bob@example.com'],
			[
				['From:', '\x15no address'],
				['"no address" is no e-mail address', '\x15news@example.com'],
				['❯ a text, written', `${down}${down}${down}`, 'all'],
				['❯ Markdown from a file', ''],
				['File:', letter],
				['❯ send it to 1 recipient', ''],
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

	it('asks for the rest alone', async () => {
		const sink = await startSmtpSink();
		const { guided, text } = await withList(sink);
		const { code, shown } = await guided(
			['--to', 'bob@example.com', '--text-file', text],
			[
				['From:', ''],
				['Subject:', 'News'],
				['❯ send it to 1 recipient', ''],
			],
		);
		await sink.close();
		expect(code).toBe(0);
		expect(shown).not.toContain('To whom?');
		expect(sink.received.map(({ to }) => to)).toEqual([['bob@example.com']]);
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
		const look = await typing([['Addresses:', '\x03', 'all']], (options) =>
			run(['send', '--preview', 'text'], options),
		);
		expect(look.code).toBe(130);
	});
});
