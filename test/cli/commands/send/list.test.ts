import { readFile } from 'node:fs/promises';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('mailctl send --list', () => {
	let project: Project;
	let sink: SmtpSink;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'You asked.']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		const csv =
			'email,name,city,is_active\nann@example.com,Ann,Oslo,\nbob@example.com,Bob,Rome,\ncarl@example.com,Carl,Bonn,no\n';
		await project.json(['subscribers', 'import', await project.file('people.csv', csv), '-l', '1']);
	});
	afterEach(() => sink.close());

	const body = ['--subject', 'News for #city#', '--text', 'Hi #name#'];
	const send = (...more: string[]) => [
		'send',
		'--from',
		'news@example.com',
		'--list',
		'Readers',
		...body,
		...more,
	];
	const agreed = (...more: string[]) => send('--yes', '--expect-count', '2', ...more);
	const messages = async () =>
		(await project.json(['messages', 'list', '--fields', 'to,state'])) as { to: string; state: string }[];
	const sentTo = () => sink.received.flatMap(({ to }) => to).sort();

	it('sends to every active subscriber with his own values and says what became of it', async () => {
		const run = await project.run([...agreed('--job', 'november'), '-o', 'json']);
		expect({ code: run.code, document: JSON.parse(run.stdout) }).toEqual({
			code: 0,
			document: {
				job: 'november',
				campaign_unique_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
				state: 'released',
				recipients: 2,
				staged: 2,
				suppressed: 0,
				rejected: 0,
				messages: { sent: 2 },
			},
		});
		expect(run.stderr.split('\n')).toEqual([
			'2 recipients of list 1 "Readers"',
			'hint: without --bulk these mails carry no List-Unsubscribe header',
			`job november, campaign ${JSON.parse(run.stdout).campaign_unique_id}`,
			'sent 2',
			'',
		]);
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
		const mails = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
		expect(mails.map(({ subject, text }) => [subject, text?.trim()]).sort()).toEqual([
			['News for Oslo', 'Hi Ann'],
			['News for Rome', 'Hi Bob'],
		]);
	});

	it('carries List-Unsubscribe as bulk mail', async () => {
		await project.json(agreed('--bulk'));
		expect(sink.received[0]?.raw.toString('latin1')).toMatch(
			/^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m,
		);
	});

	it.each([
		[['--yes']],
		[['--expect-count', '2']],
		[[]],
		[['--confirm', '2']],
	])('in a script wants --yes and --expect-count, not %j', async (words) => {
		expect(await project.run(send(...words))).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: sending to a list needs consent\n' +
				'hint: add --yes --expect-count N, N being the recipients you expect\n',
		});
		expect(await messages()).toEqual([]);
	});

	it('releases nothing when the count is another, and goes on once it is right', async () => {
		const job = ['--job', 'november'];
		expect(await project.run(send('--yes', '--expect-count', '3', ...job))).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: the list has 2 recipients, not 3; nothing was released\nhint: --expect-count 2 if that is right\n',
		});
		expect(sink.received).toEqual([]);
		expect(await project.json(['worker', '--drain'])).toMatchObject({ sent: 0 });
		expect(await project.json(agreed(...job))).toMatchObject({ recipients: 2, messages: { sent: 2 } });
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
	});

	it('goes on with a job of the same name without sending anything twice', async () => {
		await project.json(agreed('--job', 'november', '--no-wait'));
		expect(sink.received).toEqual([]);
		const again = await project.run([...agreed('--job', 'november'), '-o', 'json']);
		expect({ code: again.code, document: JSON.parse(again.stdout) }).toMatchObject({
			code: 0,
			document: { messages: { sent: 2 } },
		});
		expect(again.stderr).toContain('the job "november" is released already: going on with it');
		expect((await project.run(agreed('--job', 'november'))).code).toBe(0);
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
	});

	it('refuses the name of a job for another message or another list', async () => {
		await project.json(agreed('--job', 'november'));
		await project.json(['lists', 'create', '--name', 'Other', '--email-reason', 'r']);
		const other = [
			'send',
			'--from',
			'news@example.com',
			'--list',
			'Other',
			...body,
			'--yes',
			'--expect-count',
			'0',
		];
		for (const [words, why] of [
			[agreed('--job', 'november', '--tag', 'x'), 'its content or options differ'],
			[[...other, '--job', 'november'], 'it was begun with another list'],
		] as const) {
			const { code, stderr } = await project.run(words);
			expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
				code: 5,
				stderr: `error: the job "november" stands for another mailing: ${why}`,
			});
		}
		expect(sink.received).toHaveLength(2);
	});

	it('lists who cannot be sent to, and sends to the others with --skip-invalid', async () => {
		await project.json(['subscribers', 'update', 'bob@example.com', '-l', '1', '--unset-meta', 'city']);
		expect(await project.run(agreed('--strict-vars'))).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: 1 recipient cannot be sent to as it is; nothing was released\n' +
				'error: bob@example.com: no value for #city#.\n' +
				'hint: mend them, or give --skip-invalid, or --no-strict-vars for missing variables\n',
		});
		expect(sink.received).toEqual([]);
		const skipped = await project.run([
			...agreed('--strict-vars', '--skip-invalid', '--expect-count', '1'),
			'-o',
			'json',
		]);
		expect({ code: skipped.code, document: JSON.parse(skipped.stdout) }).toMatchObject({
			code: 9,
			document: { recipients: 1, staged: 1, rejected: 1, messages: { sent: 1 } },
		});
		expect(skipped.stderr).toContain('warning: left out: bob@example.com: no value for #city#.\n');
		expect(sentTo()).toEqual(['ann@example.com']);
	});

	it('says so again when a named job is staged already', async () => {
		await project.json(['subscribers', 'update', 'bob@example.com', '-l', '1', '--unset-meta', 'city']);
		const job = agreed('--strict-vars', '--job', 'november');
		const again = ['send', 'resume', 'november', '--yes', '--expect-count', '2'];
		for (const words of [job, job, again]) {
			const { code, stderr } = await project.run(words);
			const [first, who] = stderr.split('\n');
			expect({ code, first, who, last: stderr.split('\n').at(-2) }).toEqual({
				code: 2,
				first: 'error: 1 recipient cannot be sent to as it is; nothing was released',
				who: 'error: bob@example.com: no value for #city#.',
				last: 'hint: mend them and give another --job, or give --skip-invalid, or --no-strict-vars for missing variables',
			});
		}
		expect(await project.json([...job, '--skip-invalid', '--expect-count', '1'], { code: 9 })).toMatchObject({
			messages: { sent: 1 },
		});
	});

	it('shows the first ten who cannot be sent to, whichever run found them, and says where more are', async () => {
		const people = Array.from({ length: 12 }, (_, n) => `c${n}@example.com\n`).join('');
		const file = await project.file('more.csv', `email\n${people}`);
		await project.json(['subscribers', 'import', file, '-l', '1', '--yes']);
		const job = agreed('--strict-vars', '--expect-count', '14', '--job', 'november');
		const resumed = ['send', 'resume', 'november', '--yes', '--expect-count', '14'];
		for (const words of [job, resumed]) {
			const lines = (await project.run(words)).stderr.trimEnd().split('\n');
			expect(lines.slice(1, -1)).toEqual([
				...Array.from({ length: 10 }, (_, n) => `error: c${n}@example.com: no value for #city#.`),
				'error: and 2 more',
			]);
			expect(lines.at(-1)).toContain('mend them (-o json has all of them)');
		}
		const { code, stderr } = await project.run([...resumed, '-o', 'json']);
		const { details, hint } = JSON.parse(stderr.trim().split('\n').at(-1) ?? '').error;
		expect([code, details]).toEqual([
			2,
			Array.from({ length: 12 }, (_, n) => `c${n}@example.com: no value for #city#.`),
		]);
		expect(hint).not.toContain('-o json');
	});

	it('sends what the first would get to --test-to alone', async () => {
		const run = await project.run([...send('--bulk', '--test-to', 'me@example.com'), '-o', 'json']);
		expect({ code: run.code, stderr: run.stderr }).toEqual({
			code: 0,
			stderr: 'a trial of "News for Oslo" as for ann@example.com, to me@example.com\nsent 1\n',
		});
		expect(sentTo()).toEqual(['me@example.com']);
		expect((await PostalMime.parse(sink.received[0]?.raw ?? '')).subject).toBe('News for Oslo');
	});

	it('warns with --test-to of a variable without a value for the first', async () => {
		await project.json(['subscribers', 'update', 'ann@example.com', '-l', '1', '--unset-meta', 'city']);
		expect(await project.run(send('--test-to', 'me@example.com'))).toMatchObject({
			code: 0,
			stderr: expect.stringContaining('warning: no value for #city#\n'),
		});
	});

	it('warns that the links of bulk mail lead nowhere while there is no public URL', async () => {
		const warning = 'links to unsubscribe point to this machine: nobody else can follow them';
		expect((await project.run(agreed('--bulk'))).stderr).toContain(warning);
		await project.json(['engine', 'init', '--public-url', 'https://mail.example.com']);
		expect((await project.run(agreed('--bulk'))).stderr).not.toContain('warning:');
	});

	it('refuses a list without active subscribers, unless that is expected', async () => {
		await project.json(['lists', 'create', '--name', 'Empty', '--email-reason', 'r']);
		const empty = (count: string) =>
			project.run([
				'send',
				'--from',
				'news@example.com',
				'--list',
				'Empty',
				...body,
				'--yes',
				'--expect-count',
				count,
			]);
		expect(await empty('2')).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('has no active subscribers'),
		});
		expect(await empty('0')).toMatchObject({ code: 0 });
	});

	it('shows a person the headers and the text with --dry-run', async () => {
		const { stdout, stderr } = await project.run(send('-n', '-o', 'table'));
		expect(stderr).toContain('dry run: would send "News for Oslo" to the 2 active subscribers');
		expect(stdout).toMatch(/^Subject: News for Oslo$/m);
		expect(stdout).toMatch(/\n\nHi Ann\n$/);
		expect(sink.received).toEqual([]);
	});

	it.each([
		['--expect-count', '3', 'the list has 2 recipients, not 3; nothing was released'],
		['--max-recipients', '1', '2 recipients are more than --max-recipients 1; nothing was released'],
	])('holds %s in a dry run as when it is sent', async (option, value, message) => {
		const run = await project.run(send(option, value, '--dry-run'));
		expect([run.code, run.stdout, run.stderr]).toEqual([2, '', expect.stringContaining(message)]);
		await project.json(send(option, '2', '--dry-run'));
	});

	it('finds in a dry run who has no value for a variable, as when it is sent', async () => {
		await project.json(['subscribers', 'update', 'ann@example.com', '-l', '1', '--unset-meta', 'city']);
		const words = send('--strict-vars', '--expect-count', '1');
		const dry = await project.run([...words, '-n']);
		expect(dry).toMatchObject({ code: 2, stdout: '' });
		expect(dry.stderr).toBe((await project.run([...words, '--yes'])).stderr);
		const skipped = await project.run([...words, '--skip-invalid', '-n', '-o', 'json']);
		expect({ code: skipped.code, document: JSON.parse(skipped.stdout) }).toMatchObject({
			code: 9,
			document: { recipients: 1, rejected: 1, message: expect.stringContaining('Subject: News for Rome') },
		});
		expect(skipped.stderr).toContain('warning: left out: ann@example.com: no value for #city#.\n');
		const loose = await project.run([...send('-n'), '-o', 'table']);
		expect([loose.code, loose.stderr]).toEqual([
			0,
			'warning: no value for #city#\n' +
				'dry run: would send "News for #city#" to the 2 active subscribers of list 1 "Readers"; ' +
				'without --strict-vars their variables are not checked one by one\n',
		]);
	});

	it('shows the first message and sends nothing with --preview and --dry-run', async () => {
		expect((await project.run(send('--preview', 'text'))).stdout).toBe('Hi Ann\n');
		expect(await project.json(send('-n'))).toMatchObject({
			dry_run: true,
			list_id: 1,
			recipients: 2,
			message: expect.stringContaining('Subject: News for Oslo'),
		});
		expect(await project.run(send('-n', '--from', 'evil@example.com'))).toMatchObject({
			code: 5,
			stderr:
				'error: from: Sender address is not verified. (evil@example.com)\n' +
				`hint: mailctl --db ${project.db} senders add ADDRESS\n`,
		});
		expect([await messages(), sink.received]).toEqual([[], []]);
	});

	it.each([
		[['--to', 'a@example.com'], '--to and --list both name recipients; give one'],
		[
			['--cc', 'a@example.com'],
			'--cc and --bcc do not go with --list: a copy of every message is never meant',
		],
		[['--idempotency-key', 'k'], '--idempotency-key does not go with --list; --job NAME plays that part'],
		[['--max-recipients', '1'], '2 recipients are more than --max-recipients 1; nothing was released'],
		[['--results', '/nowhere/r.csv'], /--results: \/nowhere\/r.csv cannot be written/],
	])('refuses %j', async (words, message) => {
		const { code, stdout, stderr } = await project.run(agreed(...words));
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(stderr.split('\n')[0]?.replace('error: ', '')).toMatch(message);
		expect(sink.received).toEqual([]);
	});

	it('of an unknown list is exit 3; without active subscribers there is nothing to preview', async () => {
		expect((await project.run([...agreed(), '--list', 'Nobody'])).code).toBe(3);
		await project.json(['lists', 'create', '--name', 'Empty', '--email-reason', 'r']);
		expect((await project.run([...send(), '--list', 'Empty', '-n'])).stderr).toBe(
			'error: list 2 "Empty" has no active subscribers\n',
		);
	});

	it('to nobody is done at once', async () => {
		await project.json(['lists', 'create', '--name', 'Empty', '--email-reason', 'r']);
		const words = send('--yes', '--expect-count', '0');
		expect(await project.json(words.map((word) => (word === 'Readers' ? 'Empty' : word)))).toMatchObject({
			recipients: 0,
			state: 'released',
			messages: {},
		});
	});

	it('writes every message into --results', async () => {
		const path = `${project.folder}/r.csv`;
		await project.json(agreed('--results', path));
		const lines = (await readFile(path, 'utf8')).trimEnd().split('\r\n');
		expect(lines.map((line) => line.split(',')[1])).toEqual(['to', 'ann@example.com', 'bob@example.com']);
	});

	it('leaves out who unsubscribed, counting him as a recipient', async () => {
		await project.json([
			'subscribers',
			'import',
			await project.file('s.csv', 'email,is_active,disable_reason\nann@example.com,no,UNSUBSCRIBED\n'),
			'-l',
			'1',
		]);
		expect(await project.run(agreed('--bulk'))).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('the list has 1 recipient, not 2'),
		});
		expect(sink.received).toEqual([]);
	});
});
