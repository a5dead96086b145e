import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import PostalMime from 'postal-mime';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf, makeProject, type Project, said } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('mailctl send --csv', () => {
	let project: Project;
	let sink: SmtpSink;
	let people: string;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		people = await project.file(
			'people.csv',
			'E-Mail;name;Favourite Town\nann@example.com;Ann;Oslo\nbob@example.com;Bob;Rome\n',
		);
	});
	afterEach(() => sink.close());

	const body = ['--subject', 'News for #favourite_town#', '--text', 'Hi #name#'];
	const send = (file: string, ...more: string[]) => [
		...['send', '--from', 'news@example.com', '--csv', file],
		...body,
		...more,
	];
	const agreed = (file: string, ...more: string[]) => send(file, '--yes', '--expect-count', '2', ...more);
	const sentTo = () => sink.received.flatMap(({ to }) => to).sort();
	const jobs = async () =>
		(await project.json(['campaigns', 'list', '--fields', 'name,state'])) as {
			name: string;
			state: string;
		}[];

	it('sends a message for each row, and reports the counts', async () => {
		const run = await project.run([...agreed(people, '--campaign', 'november'), '-o', 'json']);
		expect({ code: run.code, document: JSON.parse(run.stdout), said: said(run) }).toEqual({
			code: 0,
			document: {
				name: 'november',
				id: expect.stringMatching(/^[0-9a-f-]{36}$/),
				state: 'finished',
				recipients: 2,
				staged: 2,
				suppressed: 0,
				rejected: 0,
				messages: { sent: 2 },
			},
			said: [
				{ note: 'campaign november: staging people.csv' },
				{ note: '2 recipients of people.csv' },
				{ note: expect.stringMatching(/^campaign november, [0-9a-f-]{36}$/) },
				{ note: 'sent 2' },
			],
		});
		const mails = await Promise.all(sink.received.map(({ raw }) => PostalMime.parse(raw)));
		expect(mails.map(({ to, subject, text }) => [to?.[0]?.address, subject, text?.trim()]).sort()).toEqual([
			['ann@example.com', 'News for Oslo', 'Hi Ann'],
			['bob@example.com', 'News for Rome', 'Hi Bob'],
		]);
	});

	it('reads NDJSON files and standard input', async () => {
		const lines =
			'{"email": "ann@example.com", "name": "Ann", "favourite_town": "Oslo"}\n{"email": "bob@example.com", "name": "Bob", "favourite_town": "Rome"}\n';
		await project.json(agreed(await project.file('people.ndjson', lines)));
		await project.json(agreed('-'), { stdin: await readFile(people, 'utf8') });
		expect(sentTo()).toEqual(['ann@example.com', 'ann@example.com', 'bob@example.com', 'bob@example.com']);
	});

	it('makes a column a variable with --map COLUMN=NAME, and ignores a column with --map COLUMN=-', async () => {
		const file = await project.file('p.csv', 'who,name,Favourite Town\nann@example.com,Ann,Oslo\n');
		const map = ['--map', 'who=email', '--map', 'Favourite Town=town', '--map', 'name=-'];
		await project.json([
			...['send', '--from', 'news@example.com', '--csv', file, ...map],
			...['--subject', 'S', '--text', 'in #town#', '--yes', '--expect-count', '1'],
		]);
		expect((await PostalMime.parse(sink.received[0]?.raw ?? '')).text?.trim()).toBe('in Oslo');
		const without = await project.run(agreed(await project.file('q.csv', 'who\nann@example.com\n')));
		expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('no email column')]);
	});

	it('prints every error with its line number, and sends nothing', async () => {
		const file = await project.file(
			'bad.csv',
			'email,name,favourite_town\nann@example.com,Ann,Oslo\nnobody,No,Rome\nANN@example.com,Ann,Oslo\nbob@example.com,Bob\n',
		);
		const run = await project.run([...agreed(file), '-o', 'json']);
		expect(run.code).toBe(2);
		expect(errorOf(run)).toMatchObject({
			message: '3 recipients have errors; nothing was released',
			details: [
				'line 3: nobody: to: Enter a valid email address: it has no @',
				'line 4: ANN@example.com is in this campaign already.',
				expect.stringMatching(/^line 5: bob@example.com: .*cells/),
			],
		});
		expect(sentTo()).toEqual([]);
		expect(await jobs()).toEqual([]);
	});

	it('leaves out bad rows with --skip-invalid, exits with 9, and writes every row into --results', async () => {
		const file = await project.file(
			'bad.csv',
			'email,name,favourite_town\nann@example.com,Ann,Oslo\nnobody,No,Rome\n',
		);
		const results = join(project.folder, 'results.csv');
		const run = await project.run(
			send(file, '--yes', '--expect-count', '1', '--skip-invalid', '--results', results),
		);
		expect([run.code, sentTo()]).toEqual([9, ['ann@example.com']]);
		const [, ann, nobody] = (await readFile(results, 'utf8')).split('\r\n');
		expect(ann).toMatch(/^2,ann@example\.com,[0-9a-f-]{36},sent,250,/);
		expect(nobody).toMatch(/^3,nobody,,rejected,invalid,to: Enter a valid email address: it has no @,0,/);
	});

	it('rejects a message that uses a column heading instead of a variable, unless --no-strict-vars is given', async () => {
		const file = await project.file('names.csv', 'EMAIL;名前;First Name\nann@example.com;Аня;Ann\n');
		const mail = ['send', '--from', 'news@example.com', '--csv', file, '--subject', 'Hi #名前#'];
		const words = [...mail, '--text', 'Dear #First name|friend#', '--yes', '--expect-count', '1'];
		for (const how of [[], ['--dry-run'], ['--test-to', 'me@example.com']]) {
			const run = await project.run([...words, ...how]);
			expect([run.code, run.stderr.split('\n')]).toEqual([
				2,
				expect.arrayContaining([
					'error: the message uses names of columns instead of variables; nothing was sent',
					'error: #名前#: --map "名前=NAME" makes the column "名前" a variable',
					'error: #First name#: for the column "First Name", write #first_name#',
				]),
			]);
		}
		expect(await jobs()).toEqual([]);
		await project.json([...words, '--no-strict-vars']);
		expect((await PostalMime.parse(sink.received[0]?.raw ?? '')).subject).toBe('Hi #名前#');
	});

	it('suggests #City# if the message contains #city# and the column is named City', async () => {
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		const file = await project.file('city.csv', 'email,City\nann@example.com,Oslo\n');
		const mail = ['send', '--from', 'news@example.com', '--csv', file, '--subject', 'S'];
		const words = [...mail, '--text', 'in #city#', '--yes', '--expect-count', '1'];
		const run = await project.run(words);
		expect([run.code, run.stderr]).toEqual([
			2,
			expect.stringContaining('error: #city#: for the column "City", write #City#\n'),
		]);
		const given = await project.run([...words, '--context', 'city=Bonn', '--dry-run']);
		expect([given.code, given.stderr]).toEqual([0, '']);
		const without = await project.run([...words, '--map', 'City=-']);
		expect([without.code, without.stderr]).toEqual([
			2,
			expect.stringContaining('line 2: ann@example.com: no value for #city#.'),
		]);
	});

	it('rejects a variable without a value, unless --no-strict-vars is given', async () => {
		const file = await project.file('few.csv', 'email,name\nann@example.com,Ann\nbob@example.com,Bob\n');
		const run = await project.run(agreed(file));
		expect([run.code, run.stderr]).toEqual([
			2,
			expect.stringContaining(
				'no value for #favourite_town#: 2 of 2 recipients (the first: line 2 ann@example.com, line 3 bob@example.com)',
			),
		]);
		await project.json(agreed(file, '--no-strict-vars'));
		expect(sentTo()).toHaveLength(2);
	});

	it.each([
		[['--yes', '--expect-count', '3'], 'people.csv has 2 recipients, not 3; nothing was released'],
		[
			['--yes', '--expect-count', '2', '--max-recipients', '1'],
			'2 recipients are more than --max-recipients 1',
		],
		[['--yes'], 'sending to people.csv must be confirmed'],
		[['--yes', '--expect-count', '2', '--campaign', ''], '--campaign "" is not a name'],
		[['--yes', '--expect-count', '2', '--campaign', 'a\nb'], '--campaign "a'],
		[['--to', 'a@example.com'], 'use either --to or --csv, not both'],
		[['--list', '1'], 'use either --list or --csv, not both'],
		[['--cc', 'a@example.com'], 'use either --cc or --csv, not both'],
		[['--idempotency-key', 'k'], 'use either --idempotency-key or --csv, not both'],
	])('rejects %j', async (words, message) => {
		const run = await project.run(send(people, ...words));
		expect([run.code, run.stderr, sentTo()]).toEqual([2, expect.stringContaining(message), []]);
	});

	const faulty = () =>
		project.file(
			'bad.csv',
			[
				...'email,name,favourite_town nobody,No,Rome ann@example.com,Ann,Oslo'.split(' '),
				...'ANN@example.com,Ann,Oslo bob@example.com,Bob'.split(' '),
				',Eve,Bonn\n',
			].join('\n'),
		);

	it('prints the same errors in a dry run, in the same words', async () => {
		const file = await faulty();
		const real = await project.run([...send(file, '--yes', '--expect-count', '1'), '-o', 'json']);
		const dry = await project.run([...send(file, '--expect-count', '1'), '-n', '-o', 'json']);
		expect([real.code, dry.code, dry.stdout]).toEqual([2, 2, '']);
		const { message, details } = errorOf(dry);
		expect({ message, details }).toEqual({
			message: '4 recipients have errors; nothing was released',
			details: errorOf(real)['details'],
		});
		expect(await project.run(send(file, '-n'))).toMatchObject({
			code: 2,
			stderr: expect.stringContaining(
				'error: line 2: nobody: to: Enter a valid email address: it has no @\n',
			),
		});
	});

	it('leaves out bad rows in a dry run with --skip-invalid and exits with 9', async () => {
		const words = [...send(await faulty(), '--skip-invalid', '--expect-count', '1'), '-n'];
		const { code, stdout, stderr } = await project.run([...words, '-o', 'json']);
		expect([code, JSON.parse(stdout)]).toMatchObject([
			9,
			{ dry_run: true, rows: 5, recipients: 1, duplicates: 1, rejected: 4 },
		]);
		expect(said({ stderr })).toContainEqual({
			warning: 'left out: line 4: ANN@example.com is in this campaign already.',
		});
		expect((await project.run([...words, '-o', 'table'])).stderr).toContain(
			'would send "News for #favourite_town#" to the 1 recipient of bad.csv, 4 left out',
		);
	});

	it('shows the first row in a preview, and warns about errors in all rows', async () => {
		const file = await project.file(
			'blank.csv',
			'email,name,favourite_town\nann@example.com,Ann,\nnobody,No,Rome\nANN@example.com,Ann,Oslo\n',
		);
		const look = await project.run(send(file, '--preview', 'text'));
		expect(look).toMatchObject({ code: 0, stdout: expect.stringContaining('Ann') });
		expect(look.stderr).toContain('warning: line 3: nobody: to: Enter a valid email address: it has no @\n');
		expect(look.stderr).toContain('warning: line 4: ANN@example.com is in this campaign already.\n');
		expect(look.stderr).toContain('hint: these errors stop the send: correct them, or add --skip-invalid\n');
		const few = await project.file('few.csv', 'email,name\nann@example.com,Ann\nbob@example.com,Bob\n');
		expect((await project.run(send(few, '--preview', 'text'))).stderr).toContain(
			'warning: no value for #favourite_town#: 2 of 2 recipients (the first: line 2 ann@example.com, line 3 bob@example.com)\n',
		);
	});

	it('continues a campaign if its file was moved, but rejects the campaign’s name for a different file', async () => {
		await project.run(send(people, '--yes', '--expect-count', '5', '--campaign', 'j'));
		const moved = join(project.folder, 'moved.csv');
		await rename(people, moved);
		await project.json(agreed(moved, '--campaign', 'j'));
		await writeFile(people, 'email,name,favourite_town\neve@example.com,Eve,Bonn\n');
		const run = await project.run(agreed(people, '--campaign', 'j'));
		expect([run.code, run.stderr]).toEqual([5, expect.stringContaining('belongs to another campaign')]);
		expect(sentTo()).toEqual(['ann@example.com', 'bob@example.com']);
	});

	it.each(['--csv', '--batch'])('rejects %s if the named file does not exist', async (flag) => {
		const content = flag === '--csv' ? ['--from', 'news@example.com', '--subject', 'x', '--text', 'x'] : [];
		expect(await project.run(['send', flag, '/nowhere.csv', ...content])).toMatchObject({
			code: 2,
			stderr: 'error: /nowhere.csv: no such file\n',
		});
	});
});
