import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, withValues } from '../../../support/cli.js';
import { connectWith } from '../../../support/connect-with.js';
import { startForeign } from '../../../support/foreign.js';
import { errorOf, makeProject, type Project, said } from '../../../support/project.js';
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
		...'send --from news@example.com --list Readers'.split(' '),
		...body,
		...more,
	];
	const agreed = (...more: string[]) => send('--yes', '--expect-count', '2', ...more);
	const messages = async () =>
		(await project.json(['messages', 'list', '--fields', 'to,state'])) as { to: string; state: string }[];
	const sentTo = () => sink.received.flatMap(({ to }) => to).sort();

	it('uses a variable’s default for people without a value', async () => {
		await project.json(['subscribers', 'update', '-l', '1', 'bob@example.com', '--unset-meta', 'city']);
		const mail = ['send', '--from', 'news@example.com', '--list', 'Readers', '--yes', '--expect-count', '2'];
		const text = 'Hi #name|friend#, #job|what do you do?#';
		await project.json([...mail, '--subject', 'News for #city|your town#', '--text', text]);
		const mails = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
		const seen = mails.map(({ to, subject, text: body }) => [to?.[0]?.address, subject, body?.trim()]);
		expect(seen.sort()).toEqual([
			['ann@example.com', 'News for Oslo', 'Hi Ann, what do you do?'],
			['bob@example.com', 'News for your town', 'Hi Bob, what do you do?'],
		]);
	});

	it('sends each active subscriber a mail with the subscriber’s own values, and reports the counts', async () => {
		const run = await project.run([...agreed('--campaign', 'november'), '-o', 'json']);
		expect({ code: run.code, document: JSON.parse(run.stdout) }).toEqual({
			code: 0,
			document: {
				name: 'november',
				id: expect.stringMatching(/^[0-9a-f-]{36}$/),
				state: 'finished',
				recipients: 2,
				staged: 2,
				suppressed: 0,
				rejected: 0,
				left_out: 1,
				messages: { sent: 2 },
			},
		});
		expect(said(run)).toEqual([
			{ note: '2 recipients of list 1 "Readers"' },
			{ note: 'left out: 1 inactive' },
			{
				warning: 'the body of this bulk mail has no unsubscribe link',
				hint: 'write #unsubscribe_url# where the link belongs',
			},
			{
				warning: 'unsubscribe links point to this machine, so nobody else can open them',
				hint: `mailctl --db ${project.db} engine settings set public_url https://HOST`,
			},
			{ note: `campaign november, ${JSON.parse(run.stdout).id}` },
			{ note: 'sent 2' },
		]);
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
		const mails = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
		expect(mails.map(({ subject, text }) => [subject, text?.trim()]).sort()).toEqual([
			['News for Oslo', 'Hi Ann'],
			['News for Rome', 'Hi Bob'],
		]);
	});

	it.each([[[]], [['--bulk']]])('sends bulk mail with List-Unsubscribe for the options %j', async (words) => {
		await project.json(['engine', 'settings', 'set', 'public_url', 'https://m.example.com']);
		const { stderr } = await project.run(agreed(...words));
		expect(stderr).not.toContain('public_url');
		expect(sink.received[0]?.raw.toString('latin1')).toMatch(
			/^List-Unsubscribe-Post: List-Unsubscribe=One-Click\r$/m,
		);
	});

	it('omits one-click unsubscription and warns once if public_url is an http URL', async () => {
		await project.json(['engine', 'settings', 'set', 'public_url', 'http://m.example.com']);
		const { code, stderr } = await project.run(agreed());
		expect({ code, warnings: stderr.split('public_url is http').length - 1 }).toEqual({
			code: 0,
			warnings: 1,
		});
		const mail = sink.received[0]?.raw.toString('latin1');
		expect(mail).toMatch(/^List-Unsubscribe: <http:\/\/m\.example\.com\/u\//m);
		expect(mail).not.toContain('List-Unsubscribe-Post');
	});

	it('omits List-Unsubscribe with --transactional, and rejects --transactional together with --bulk', async () => {
		await project.json(agreed('--transactional', '--campaign', 'november'));
		expect(sink.received[0]?.raw.toString('latin1')).not.toMatch(/^List-Unsubscribe/m);
		expect(await project.json(['campaigns', 'get', 'november'])).toMatchObject({ type: 'TRANSACTIONAL' });
		expect(await project.run(agreed('--transactional', '--bulk'))).toMatchObject({
			code: 2,
			stderr: 'error: use either --bulk or --transactional, not both\n',
		});
	});

	it('rejects a variable without a value, but sends the mail with --no-strict-vars', async () => {
		await project.json(['subscribers', 'update', 'bob@example.com', '-l', '1', '--unset-meta', 'city']);
		for (const more of [[], ['--transactional'], ['-n']])
			expect(await project.run(agreed(...more))).toMatchObject({
				code: 2,
				stderr: expect.stringContaining('error: bob@example.com: no value for #city#.\n'),
			});
		expect(sink.received).toEqual([]);
		expect(await project.json(agreed('--no-strict-vars'))).toMatchObject({ messages: { sent: 2 } });
	});

	it.each([
		[['--yes'], '--expect-count N'],
		[['--expect-count', '2'], '--yes'],
		[[], '--yes --expect-count N'],
		[['--confirm', '2'], '--yes --expect-count N'],
	])('rejects %j in a script, where both --yes and --expect-count are required', async (words, missing) => {
		expect(await project.run(send(...words))).toEqual({
			code: 2,
			stdout: '',
			stderr: `error: sending to list 1 "Readers" must be confirmed\nhint: add ${missing}\n`,
		});
		expect(await messages()).toEqual([]);
	});

	it('creates no campaign if it rejects the send, on a database and on another service', async () => {
		const wrong = send('--yes', '--expect-count', '3');
		expect((await project.run(wrong)).code).toBe(2);
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
		const foreign = await startForeign();
		const env = { MAILCTL_TOKEN: 't', HOME: project.folder };
		const there = (words: readonly string[]) => cli(['--base-url', foreign.baseUrl, ...words], { env });
		expect((await there(withValues(wrong, { '--text': 'Hi' }))).code).toBe(2);
		expect((await there(['campaigns', 'list', '-o', 'json'])).stdout).toBe('[]\n');
		await foreign.close();
	});

	it('does not release the staged campaign if --expect-count is wrong, and releases it with the right count', async () => {
		const job = ['--campaign', 'november'];
		expect(await project.run(send('--yes', '--expect-count', '3', ...job))).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: list 1 "Readers" has 2 recipients, not 3; nothing was released\nhint: if 2 is right, give --expect-count 2\n' +
				`hint: it stays staged: mailctl --db ${project.db} campaigns cancel november frees its name\n`,
		});
		expect(sink.received).toEqual([]);
		expect(await project.json(['worker', '--drain'])).toMatchObject({ sent: 0 });
		expect(await project.json(agreed(...job))).toMatchObject({ recipients: 2, messages: { sent: 2 } });
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
	});

	it('continues the campaign if the same command runs again, and sends nothing twice', async () => {
		await project.json(agreed('--campaign', 'november', '--no-wait'));
		expect(sink.received).toEqual([]);
		const again = await project.run([...agreed('--campaign', 'november'), '-o', 'json']);
		expect({ code: again.code, document: JSON.parse(again.stdout) }).toMatchObject({
			code: 0,
			document: { messages: { sent: 2 } },
		});
		expect(said(again)).toContainEqual({
			note: 'the campaign "november" is released already: resuming it',
		});
		expect((await project.run(agreed('--campaign', 'november'))).code).toBe(0);
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
	});

	it('rejects a campaign name that another message or list already has', async () => {
		await project.json(agreed('--campaign', 'november'));
		await project.json(['lists', 'create', '--name', 'Other', '--email-reason', 'r']);
		const other = [
			...'send --from news@example.com --list Other'.split(' '),
			...body,
			'--yes',
			'--expect-count',
			'0',
		];
		for (const words of [
			agreed('--campaign', 'november', '--tag', 'x'),
			[...other, '--campaign', 'november'],
		]) {
			const { code, stderr } = await project.run(words);
			expect({ code, stderr: stderr.split('\n')[0] }).toEqual({
				code: 5,
				stderr: 'error: the name "november" belongs to another campaign',
			});
		}
		expect(sink.received).toHaveLength(2);
	});

	it('prints the recipients with errors, and sends to the others with --skip-invalid', async () => {
		await project.json(['subscribers', 'update', 'bob@example.com', '-l', '1', '--unset-meta', 'city']);
		expect(await project.run(agreed('--strict-vars'))).toEqual({
			code: 2,
			stdout: '',
			stderr:
				'error: 1 recipient has an error; nothing was released\n' +
				'error: bob@example.com: no value for #city#.\n' +
				'hint: correct them, or add --skip-invalid; give a variable a default, #name|friend#, or add --no-strict-vars\n',
		});
		expect(sink.received).toEqual([]);
		const skipped = await project.run([
			...send('--yes', '--expect-count', '1', '--strict-vars', '--skip-invalid'),
			'-o',
			'json',
		]);
		expect({ code: skipped.code, document: JSON.parse(skipped.stdout) }).toMatchObject({
			code: 9,
			document: { recipients: 1, staged: 1, rejected: 1, messages: { sent: 1 } },
		});
		expect(said(skipped)).toContainEqual({ warning: 'left out: bob@example.com: no value for #city#.' });
		expect(sentTo()).toEqual(['ann@example.com']);
	});

	it('lets the corrected mail use the name of a rejected campaign', async () => {
		await project.json(['subscribers', 'update', 'bob@example.com', '-l', '1', '--unset-meta', 'city']);
		const job = agreed('--strict-vars', '--campaign', 'november');
		for (const words of [job, job]) {
			expect((await project.run(words)).code).toBe(2);
			expect(await project.json(['campaigns', 'list'])).toEqual([]);
		}
		const foreign = await startForeign();
		const env = { MAILCTL_TOKEN: 't', HOME: project.folder };
		const there = (words: readonly string[]) => cli(['--base-url', foreign.baseUrl, ...words], { env });
		const table = await project.file('wrong.csv', 'email\nann@example.com\nnobody\n');
		const rows = [
			'send',
			'--from',
			'news@example.com',
			...body,
			'--csv',
			table,
			'--yes',
			'--expect-count',
			'2',
		];
		expect((await there([...rows, '--campaign', 'november'])).code).toBe(2);
		expect((await there(['campaigns', 'list', '-o', 'json'])).stdout).toBe('[]\n');
		await foreign.close();
		const mended = withValues(job, { '--subject': 'News for #city|you#' });
		expect(await project.json(mended)).toMatchObject({ name: 'november', messages: { sent: 2 } });
	});

	/** Fails after it has staged a list, as a power cut would. */
	const cutOff = connectWith((campaigns) => ({
		...campaigns,
		addList: async (...words) => {
			await campaigns.addList(...words);
			throw new Error('the lights went out');
		},
	}));

	/** Adds twelve subscribers without a city to the two who have one. */
	async function addPeople(): Promise<void> {
		const people = Array.from({ length: 12 }, (_, n) => `c${n}@example.com\n`).join('');
		const file = await project.file('more.csv', `email\n${people}`);
		await project.json(['subscribers', 'import', file, '-l', '1', '--yes']);
	}
	const lacksCity =
		'no value for #city#: 12 of 14 recipients (the first: c0@example.com, c1@example.com, c2@example.com)';

	it('prints one line for an error that many recipients share, even if an earlier run stopped after staging', async () => {
		await addPeople();
		const job = send('--yes', '--expect-count', '14', '--strict-vars', '--campaign', 'november');
		const resumed = ['campaigns', 'resume', 'november', '--yes', '--expect-count', '14'];
		expect((await project.run(job, { connect: cutOff })).code).toBe(1);
		for (const words of [job, resumed]) {
			const lines = (await project.run(words)).stderr.trimEnd().split('\n');
			expect(lines[0]).toBe('error: 12 recipients have errors; nothing was released');
			expect(lines.slice(1, -1)).toEqual([`error: ${lacksCity}`]);
			expect(lines.at(-1)).toContain('hint: correct them, or add --skip-invalid');
		}
		const { code, stderr } = await project.run([...resumed, '-o', 'json']);
		const { details } = errorOf({ stderr });
		expect([code, details]).toEqual([
			2,
			Array.from({ length: 12 }, (_, n) => `c${n}@example.com: no value for #city#.`),
		]);
	});

	it('prints one line for each missing variable, with the most frequent first', async () => {
		await addPeople();
		await project.json(['fields', 'create', '--variable', 'plan', '--name', 'Plan']);
		await project.json(['subscribers', 'update', 'ann@example.com', '-l', '1', '--meta', 'plan=pro']);
		const words = withValues(agreed(), { '--text': 'Hi #city#, #plan#' });
		for (const how of [[], ['--dry-run']]) {
			const { code, stderr } = await project.run([...words, ...how]);
			expect([code, stderr.split('\n').slice(0, 3)]).toEqual([
				2,
				[
					'error: 13 recipients have errors; nothing was released',
					'error: no value for #plan#: 13 of 14 recipients (the first: bob@example.com, c0@example.com, c1@example.com)',
					`error: ${lacksCity}`,
				],
			]);
		}
		const one = withValues(words, { '--expect-count': '1' });
		const kept = await project.json([...one, '--skip-invalid', '--campaign', 'j'], { code: 9 });
		expect(kept).toMatchObject({ staged: 1, rejected: 13 });
		const { lists } = (await project.json([
			'api',
			'GET',
			`/ext/mailings/${(kept as { id: string }).id}/`,
		])) as {
			lists: { reasons: unknown[] }[];
		};
		expect(lists[0]?.reasons).toEqual([
			{ code: 'missing_variable', detail: 'without a value for #plan#', count: 1 },
			{ code: 'inactive', detail: null, count: 1 },
			{ code: 'missing_variable', detail: 'without a value for #city#, #plan#', count: 12 },
		]);
	});

	it('shows one message in a preview, and warns about errors of other recipients', async () => {
		await addPeople();
		const look = await project.run(send('--preview', 'text'));
		expect([look.code, look.stdout]).toEqual([0, 'Hi Ann\n']);
		expect(look.stderr).toContain(
			`warning: ${lacksCity}\nhint: these errors stop the send: correct them, or add --skip-invalid; give a variable a default`,
		);
		const lacking = await project.run(send('--preview', 'text', '--preview-as', 'c0@example.com'));
		expect(lacking.stderr.match(/no value for/g)).toHaveLength(1);
		const skipped = await project.run(send('--preview', 'text', '--skip-invalid'));
		expect(skipped.stderr).toContain(`warning: left out: ${lacksCity}\n`);
		const loose = await project.run(send('--preview', 'text', '--no-strict-vars'));
		expect(loose.stderr).not.toContain('no value');
	});

	it('sends only the first recipient’s message with --test-to', async () => {
		const run = await project.run([...send('--bulk', '--test-to', 'me@example.com'), '-o', 'json']);
		expect({ code: run.code, said: said(run) }).toEqual({
			code: 0,
			said: [
				{ note: 'a test of "News for Oslo" to me@example.com, as ann@example.com would get it' },
				{ note: 'sent 1' },
			],
		});
		expect(sentTo()).toEqual(['me@example.com']);
		expect((await PostalMime.parse(sink.received[0]?.raw ?? '')).subject).toBe('News for Oslo');
	});

	it('shows the test message in a dry run, and exits with 9 if its recipient is suppressed', async () => {
		const words = send('--test-to', 'me@example.com', '-n');
		const what = 'send a test of "News for Oslo" to me@example.com, as ann@example.com would get it';
		const said = await project.run([...words, '-o', 'table']);
		expect(said).toMatchObject({ code: 0, stderr: `dry run: would ${what}\n` });
		expect(said.stdout).toContain('\nTo: me@example.com\n');
		expect(await project.json(words)).toMatchObject({ send: { to: ['me@example.com'] } });
		await project.json(['suppressions', 'add', 'me@example.com', '--reason', 'HARDBOUNCED']);
		expect(await project.run(words)).toMatchObject({ code: 9 });
		expect(sentTo()).toEqual([]);
	});

	it('warns that links in bulk mail lead to this machine if there is no public URL', async () => {
		const warning = 'unsubscribe links point to this machine, so nobody else can open them';
		const table = await project.file('people.csv', 'email\nann@example.com\n');
		const request = {
			type: 'BULK',
			from: 'news@example.com',
			to: ['b@example.com'],
			subject: 'S',
			text_body: 'T',
		};
		const batch = await project.file('b.ndjson', JSON.stringify(request));
		const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '--bulk'];
		const kinds = [
			agreed('--bulk'),
			[...mail, '--csv', table, '--yes', '--expect-count', '1'],
			['send', '--batch', batch, '--yes', '--expect-count', '1'],
			[...mail, '--to', 'ann@example.com'],
		];
		for (const words of kinds)
			for (const dry of [['-n'], []])
				expect((await project.run([...words, ...dry])).stderr).toContain(warning);
		await project.json(['engine', 'init', '--public-url', 'https://mail.example.com']);
		for (const words of kinds)
			for (const dry of [['-n'], []])
				expect((await project.run([...words, ...dry])).stderr).not.toContain('warning: links');
	});

	it('rejects a list without active subscribers unless --expect-count is 0', async () => {
		await project.json(['lists', 'create', '--name', 'Empty', '--email-reason', 'r']);
		const empty = (count: string) =>
			project.run([
				...'send --from news@example.com --list Empty'.split(' '),
				...body,
				'--yes',
				'--expect-count',
				count,
			]);
		expect(await empty('2')).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('has no recipients; nothing was sent'),
		});
		expect(await empty('0')).toMatchObject({ code: 0 });
	});

	it.each([
		['--expect-count', '3', 'list 1 "Readers" has 2 recipients, not 3; nothing was released'],
		['--max-recipients', '1', '2 recipients are more than --max-recipients 1; nothing was released'],
	])('detects %s in a dry run as in a real run', async (option, value, message) => {
		const run = await project.run(send(option, value, '--dry-run'));
		expect([run.code, run.stdout, run.stderr]).toEqual([2, '', expect.stringContaining(message)]);
		await project.json(send(option, '2', '--dry-run'));
	});

	it('reports people without a value in a dry run as in a real run', async () => {
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
		expect(said(skipped)).toContainEqual({ warning: 'left out: ann@example.com: no value for #city#.' });
		const loose = await project.run([...send('-n', '--no-strict-vars'), '-o', 'table']);
		expect([loose.code, loose.stderr]).toEqual([
			0,
			'left out: 1 inactive\n' +
				'warning: the body of this bulk mail has no unsubscribe link\n' +
				'hint: write #unsubscribe_url# where the link belongs\n' +
				'warning: unsubscribe links point to this machine, so nobody else can open them\n' +
				`hint: mailctl --db ${project.db} engine settings set public_url https://HOST\n` +
				'warning: no value for #city#\n' +
				'dry run: would send "News for #city#" to the 2 recipients of list 1 "Readers"\n',
		]);
	});

	it('shows the first message and sends nothing with --preview or --dry-run', async () => {
		const shown = await project.run(send('--preview', 'text'));
		expect(shown.stdout).toBe('Hi Ann\n');
		expect(shown.stderr).toContain('From: news@example.com\nTo: ann@example.com\nSubject: News for Oslo\n');
		expect(await project.json(send('-n'))).toMatchObject({
			dry_run: true,
			list_id: 1,
			recipients: 2,
			message: expect.stringContaining('Subject: News for Oslo'),
		});
		expect(await project.run(withValues(send('-n'), { '--from': 'evil@example.com' }))).toMatchObject({
			code: 5,
			stderr:
				'error: from: Sender address is not verified. (evil@example.com)\n' +
				`hint: mailctl --db ${project.db} senders add evil@example.com\n`,
		});
		expect([await messages(), sink.received]).toEqual([[], []]);
	});

	it.each([
		[['--to', 'a@example.com'], 'use either --to or --list, not both'],
		[['--cc', 'a@example.com'], 'use either --cc or --list, not both'],
		[['--idempotency-key', 'k'], 'use either --idempotency-key or --list, not both'],
		[['--max-recipients', '1'], '2 recipients are more than --max-recipients 1; nothing was released'],
		[['--results', '/nowhere/r.csv'], /--results: \/nowhere\/r.csv cannot be written/],
	])('rejects %j', async (words, message) => {
		const { code, stdout, stderr } = await project.run(agreed(...words));
		expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
		expect(stderr.split('\n')[0]?.replace('error: ', '')).toMatch(message);
		expect(sink.received).toEqual([]);
	});

	it('creates a campaign whose is_complete is true, even after `campaigns cancel`', async () => {
		await project.json([...agreed('--campaign', 'december'), '--no-wait']);
		const get = ['campaigns', 'get', 'december'];
		expect(await project.json(get)).toMatchObject({ rows: 3, is_complete: true });
		await project.json(['campaigns', 'cancel', 'december', '--yes']);
		expect(await project.json(get)).toMatchObject({ rows: 3, is_complete: true });
	});
});
