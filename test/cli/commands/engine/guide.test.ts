import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { startSmtpSink } from '../../../support/smtp-sink.js';
import { typing } from '../../../support/typing.js';

type Answers = Parameters<typeof typing>[0];

async function guided(answers: Answers, columns?: number) {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-guide-'));
	const db = join(folder, 'news.db');
	const run = (words: readonly string[], options = {}) =>
		cli(['--db', db, ...words], { env: { HOME: folder }, ...options });
	const result = await typing(
		answers,
		(options) => run(['engine', 'init'], { ...options, env: { HOME: folder } }),
		columns,
	);
	return { db, run, result };
}

const sender = ['Sender address:', 'news@example.com'] as const;

describe.each([40, 120])('engine init on a terminal of %i columns', (columns) => {
	it('tries the mail server, creates the database and prints the equivalent command', async () => {
		const sink = await startSmtpSink();
		const url = `smtp://127.0.0.1:${sink.port}`;
		const { run, result } = await guided(
			[
				['Sender address:', 'nobody'],
				['not an e-mail address', `${'\x7f'.repeat('nobody'.length)}news@example.com`],
				['Mail server', 'smtp://127.0.0.1:1'],
				['What now?', ''],
				['Mail server', url],
				['Public URL', 'https://mail.example.com'],
				['Time zone', 'osl', 'all'],
				['❯ Europe/Oslo', ''],
				['How long to keep messages', ''],
			],
			columns,
		);
		await sink.close();
		expect(result.code).toBe(0);
		const text = result.stderr.replaceAll(/\s+/g, ' ');
		expect(text).toContain('127.0.0.1:1: connect ECONNREFUSED: connection refused');
		expect(text).toContain('accepts mail from news@example.com');
		const command = `engine init --sender news@example.com --smtp ${url} --public-url https://mail.example.com --time-zone Europe/Oslo --keep-messages 400d`;
		expect(text.replaceAll(' ', '')).toContain(command.replaceAll(' ', ''));
		expect(JSON.parse((await run(['engine', 'settings', 'get', '-o', 'json'])).stdout)).toEqual(
			expect.arrayContaining([
				expect.objectContaining({ name: 'smtp_url', value: url }),
				expect.objectContaining({ name: 'time_zone', value: 'Europe/Oslo' }),
				expect.objectContaining({ name: 'keep_messages', value: '400d' }),
			]),
		);
	});
});

it('engine init keeps an existing database’s settings if the user only presses Enter', async () => {
	const sink = await startSmtpSink();
	const url = `smtp://127.0.0.1:${sink.port}`;
	const { run } = await guided(
		[
			sender,
			['Mail server', url],
			['Public URL', 'https://mail.example.com'],
			['Time zone', 'osl', 'all'],
			['❯ Europe/Oslo', ''],
			['How long', `${'\x7f'.repeat(4)}none`],
		],
		120,
	);
	const kept = async () => [
		(await run(['engine', 'settings', 'get', '-o', 'json'])).stdout,
		(await run(['senders', 'list', '-o', 'name'])).stdout,
	];
	const before = await kept();
	const again = await typing(
		[
			['Sender address: (news@example.com)', ''],
			['Mail server', ''],
			['Public URL', ''],
			['Time zone', ''],
			['How long', ''],
		],
		(options) => run(['engine', 'init'], options),
		120,
	);
	await sink.close();
	expect(again.code).toBe(0);
	expect(again.stderr.replaceAll(/\s+/g, ' ')).toContain(
		'news.db already exists: Enter keeps each setting. Ctrl-C leaves everything as it is.',
	);
	expect(await kept()).toEqual(before);
});

it('engine init sets no retention if the user chooses to keep messages for ever', async () => {
	const questions: Answers = [sender, ['Mail server', ''], ['Public URL', ''], ['Time zone', '']];
	const { run, result } = await guided(
		[...questions, ['older ones are deleted, figures stay', `${'\x7f'.repeat(4)}none`]],
		120,
	);
	expect(result.stderr).toContain('--keep-messages none');
	const { stdout } = await run(['engine', 'settings', 'get', 'keep_messages', '-o', 'json']);
	expect(JSON.parse(stdout)).toMatchObject({ value: null });
});

describe('engine init', () => {
	const questions: readonly (readonly [string, Answers])[] = [
		['Sender address:', []],
		['Password of ann', [sender, ['Mail server', 'smtp://ann@127.0.0.1:1']]],
		['Time zone', [sender, ['Mail server', ''], ['Public URL', '']]],
	];
	it.each(questions)('creates no database if the user stops at "%s"', async (question, before) => {
		for (const key of ['\x03', '\x04']) {
			const { db, result } = await guided([...before, [question, key, 'all']]);
			expect(result).toMatchObject({
				code: 130,
				stderr: expect.stringContaining('declined, nothing was changed'),
			});
			expect(existsSync(db)).toBe(false);
		}
	});
});

it('engine init accepts a mail server without a scheme, and a sender with a name', async () => {
	const folder = await mkdtemp(join(tmpdir(), 'mailctl-guide-'));
	const sink = await startSmtpSink();
	const asked = await guided([
		['Sender address:', 'Ann <news@example.com>'],
		['Mail server', `127.0.0.1:${sink.port}`],
		['Public URL', ''],
		['Time zone', ''],
		['How long to keep messages', ''],
	]);
	await sink.close();
	const db = join(folder, 'news.db');
	const given = ['--sender', 'Ann <news@example.com>', '--smtp', `127.0.0.1:${sink.port}`];
	const run = (...words: string[]) => cli(['--db', db, ...words], { env: { HOME: folder } });
	const { stdout } = await run('engine', 'init', ...given, '-o', 'json');
	const settings = { smtp_url: `smtp://127.0.0.1:${sink.port}`, page_sender_name: 'Ann' };
	expect(JSON.parse(stdout)).toMatchObject({ settings, sender: { from_email: 'news@example.com' } });
	expect((await run('engine', 'init', '--sender', 'Bob <news@example.com>', '-o', 'json')).stdout).toContain(
		'"page_sender_name": "Ann"',
	);
	expect(asked.result.code).toBe(0);
	expect((await asked.run(['senders', 'list', '-o', 'name'])).stdout).toBe('news@example.com\n');
	expect((await asked.run(['engine', 'settings', 'get', 'smtp_url'])).stdout).toContain(settings.smtp_url);
	expect((await run('engine', 'init', '--sender', 'Ann <news>')).stderr).toMatch(
		/^error: --sender: "Ann <news>" /,
	);
});
