import iconv from 'iconv-lite';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CliResult } from '../../../support/cli.js';
import { errorOf, makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('mailctl send --batch', () => {
	let project: Project;
	let sink: SmtpSink;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
	});
	afterEach(() => sink.close());

	const from = 'news@example.com';
	const requests = (...all: object[]) =>
		project.file('batch.ndjson', all.map((one) => `${JSON.stringify({ from, ...one })}\n`).join(''));
	const batch = (file: string, count: number, ...more: string[]) => [
		...['send', '--batch', file, '--yes', '--expect-count', String(count)],
		...more,
	];
	const sentTo = () => sink.received.flatMap(({ to }) => to).sort();

	it('sends each request with its own content, context and copies', async () => {
		const file = await requests(
			{ to: ['ann@example.com', 'bob@example.com'], subject: 'A', text_body: 'Hi #x#', context: { x: '1' } },
			{ to: ['ann@example.com'], subject: 'B', text_body: 'Receipt', cc: ['desk@example.com'] },
		);
		const document = await project.json(batch(file, 3, '--campaign', 'b'));
		expect(document).toMatchObject({ name: 'b', staged: 3, rejected: 0, messages: { sent: 3 } });
		const mails = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
		expect(mails.map((mail) => [mail.to?.[0]?.address, mail.subject, mail.text?.trim()]).sort()).toEqual([
			['ann@example.com', 'A', 'Hi 1'],
			['ann@example.com', 'B', 'Receipt'],
			['bob@example.com', 'A', 'Hi 1'],
		]);
		expect(sentTo()).toContain('desk@example.com');
	});

	it.each([
		'utf-16le',
		'utf-16be',
	])('rejects a file in %s, with and without a byte order mark', async (encoding) => {
		const line = JSON.stringify({ from, to: ['ann@example.com'], subject: 'A', text_body: 'Hi' });
		for (const addBOM of [true, false]) {
			const file = await project.file('wide.ndjson', iconv.encode(`${line}\r\n`, encoding, { addBOM }));
			for (const more of [[], ['-n'], ['--test-to', 'me@example.com']]) {
				const run = await project.run(batch(file, 1, ...more));
				expect([run.code, run.stderr]).toEqual([2, 'error: wide.ndjson is UTF-16: save it as UTF-8\n']);
			}
		}
		expect(sentTo()).toEqual([]);
	});

	it('prints each error with its line number and sends nothing', async () => {
		const file = await project.file(
			'bad.ndjson',
			[
				JSON.stringify({ from, to: ['ann@example.com'], subject: 'A', text_body: 'Hi' }),
				'{"from": ',
				'',
				JSON.stringify({ from, to: ['nobody'], subject: 'A', text_body: 'Hi' }),
				JSON.stringify({ from: 'evil@example.com', to: ['c@example.com'], subject: 'A', text_body: 'Hi' }),
				JSON.stringify({ from, to: ['d@example.com'], subject: 'A', text_body: 'Hi #gone#' }),
				JSON.stringify({ from, to: ['ann@example.com'], subject: 'A', text_body: 'Hi' }),
			].join('\n'),
		);
		const run = await project.run([...batch(file, 6), '-o', 'json']);
		expect([run.code, errorOf(run)['details'], sentTo()]).toEqual([
			2,
			[
				'line 2: not usable JSON',
				'line 4: nobody: to.0: Enter a valid email address: it has no @',
				'line 5: c@example.com: from: Sender address is not verified.',
				'line 6: d@example.com: no value for #gone#.',
				'line 7: ann@example.com is in this campaign already.',
			],
			[],
		]);
	});

	it('reports the same errors in a dry run', async () => {
		const lines = [
			{ from, to: ['ann@example.com'], subject: 'A', text_body: 'Hi' },
			{ from, to: ['ann@example.com', 'bob@example.com'], subject: 'A', text_body: 'Hi' },
			{ from, to: ['ann@example.com'], subject: 'B', text_body: 'Hi #email#' },
			{ from: 'evil@example.com', to: ['c@example.com'], subject: 'A', text_body: 'Hi' },
			{ from, to: ['d@example.com'], subject: 'A', text_body: 'Hi #gone#' },
		];
		const file = await project.file('d.ndjson', lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
		const placesOf = (ended: CliResult) =>
			(errorOf(ended)['details'] as string[]).map((text) => text.split(':')[0]);
		const dry = await project.run([...batch(file, 3), '-o', 'json', '--dry-run']);
		const real = await project.run([...batch(file, 3), '-o', 'json']);
		expect([dry.code, dry.stdout, real.code]).toEqual([2, '', 2]);
		expect(placesOf(dry)).toEqual(placesOf(real));
		const words = [...batch(file, 3), '--skip-invalid', '--dry-run'];
		expect(await project.json(words, { code: 9 })).toMatchObject({
			...{ requests: 5, recipients: 3, duplicates: 1, rejected: 3 },
			send: { to: ['ann@example.com'] },
		});
	});

	describe.each([
		['the case of a sender', { from: 'NEWS@Example.COM' }],
		['the tag', { tag: 'Monday' }],
		['the order of Reply-To addresses', { reply_to: ['r@example.com', 'q@example.com'] }],
		['the order of Cc addresses', { cc: ['d@EXAMPLE.com', 'c@example.com'] }],
		['the case of a header', { headers: { 'x-id': '1' } }],
		['the order of JSON keys', {}],
	])('with lines that differ only in %s', (_, more) => {
		const mail = {
			...{ text_body: 'Hi', subject: 'A', from: 'news@example.com', tag: 'monday' },
			...{ headers: { 'X-Id': '1' }, cc: ['c@example.com', 'd@example.com'] },
			reply_to: ['q@example.com', 'r@example.com'],
		};
		const lines = [
			{ ...mail, to: ['ann@example.com'] },
			{ to: ['Ann@example.com', 'bob@example.com'], ...mail, ...more },
		];
		const finding = 'line 2: Ann@example.com is in this campaign already.';

		it('rejects a recipient who is in both lines, in a dry run and in a real run', async () => {
			const file = await project.file('same.ndjson', lines.map((line) => JSON.stringify(line)).join('\n'));
			for (const end of [['-n'], []])
				expect(errorOf(await project.run([...batch(file, 2), '-o', 'json', ...end]))).toMatchObject({
					exit_code: 2,
					details: [finding],
				});
			expect(sentTo()).toEqual([]);
		});
	});

	it('warns that unsubscribe links point to this machine, but only if a request has an unsubscribe link', async () => {
		const warned = async (request: object) => {
			const { stderr } = await project.run(batch(await requests(request), 1));
			return stderr.includes('unsubscribe links point to this machine');
		};
		const plain = { to: ['a@example.com'], subject: 'A', text_body: 'Hi' };
		expect(await warned(plain)).toBe(false);
		expect(await warned({ ...plain, type: 'BULK' })).toBe(true);
		expect(await warned({ ...plain, text_body: 'Leave: #unsubscribe_url#' })).toBe(true);
	});

	describe('with numbers instead of texts', () => {
		const looks = [
			['-n', '-o', 'table'],
			['--preview', 'text'],
			['--preview-as', 'a@example.com', '--preview', 'text'],
		];
		const trial = ['--test-to', 'me@example.com'];
		const mail = { to: ['a@example.com'], subject: 'S', text_body: 'Hi #n#', context: { n: 5 } };

		it.each([
			['the context', {}, 'Hi 5'],
			['the subject', { subject: 7 }, 'Hi 5'],
			['the text', { text_body: 7 }, '7'],
			['a header', { headers: { 'X-Id': 7 } }, 'Hi 5'],
			['the tag', { tag: 7 }, 'Hi 5'],
		])('shows a number in %s as text, in every preview and in the mail', async (_, more, text) => {
			const file = await requests({ ...mail, ...more });
			for (const look of looks) {
				const run = await project.run(['send', '--batch', file, ...look]);
				expect([look, run.code, run.stdout]).toEqual([look, 0, expect.stringContaining(text)]);
			}
			const eml = await project.run(['send', '--batch', file, '--eml', '-']);
			expect((await PostalMime.parse(eml.stdout)).text?.trim()).toBe(text);
			await project.json(['send', '--batch', file, ...trial]);
			await project.json(batch(file, 1));
			const sent = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
			expect(sent.map((one) => one.text?.trim())).toEqual([text, text]);
		});
	});

	it('keeps all digits of a number', async () => {
		const line = `{"from":"${from}","to":["a@example.com"],"subject":9007199254740993,"text_body":"#n# #x# #y#",
			"context":{"n":9007199254740993,"x":5.0,"y":1e2}}`;
		const file = await project.file('long.ndjson', line.replaceAll('\n', ''));
		const text = '9007199254740993 5.0 100.0';
		expect((await project.run(['send', '--batch', file, '--preview', 'text'])).stdout.trim()).toBe(text);
		await project.json(batch(file, 1));
		const [mail] = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
		expect([mail?.subject, mail?.text?.trim()]).toEqual(['9007199254740993', text]);
	});
});
