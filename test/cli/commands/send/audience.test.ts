import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeProject, type Project, said } from '../../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../../support/smtp-sink.js';

describe('mailctl send to selected people of several lists', () => {
	let project: Project;
	let sink: SmtpSink;

	beforeEach(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		for (const name of ['Readers', 'Guests', 'Staff'])
			await project.json(['lists', 'create', '--name', name, '--email-reason', 'You asked.']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		await people(1, 'ann@example.com,Ann,Oslo,\nbob@example.com,Bob,Rome,\ncarl@example.com,Carl,Bonn,no\n');
		await people(2, 'Ann@example.com,Anna,Rome,\ndora@example.com,Dora,Oslo,\ncarl@example.com,Karl,Oslo,\n');
		await people(3, 'dora@example.com,Dora,Oslo,no\n');
	});
	afterEach(() => sink.close());

	const people = async (list: number, rows: string) => {
		const file = await project.file(`${list}.csv`, `email,name,city,is_active\n${rows}`);
		await project.json(['subscribers', 'import', file, '-l', String(list)]);
	};
	const mail = ['send', '--from', 'news@example.com', '--subject', 'News for #city#', '--text', 'Hi #name#'];
	const send = (count: number, ...more: string[]) => [
		...mail,
		...more,
		'--yes',
		'--expect-count',
		String(count),
	];
	const both = ['--list', 'Readers', '--list', 'Guests'];
	const sentTo = () => sink.received.flatMap(({ to }) => to).sort();
	const subjects = () =>
		sink.received.map(({ raw }) => /^Subject: (.*)\r$/m.exec(raw.toString('latin1'))?.[1]).sort();
	const notes = (run: Parameters<typeof said>[0]) =>
		said(run).flatMap((line) => (line['note'] === undefined ? [] : [line['note']]));

	it('sends one mail to a person on several lists, with the values of the first active subscription', async () => {
		const run = await project.run([...send(4, ...both), '--campaign', 'spring', '-o', 'json']);
		expect([run.code, sentTo()]).toEqual([
			0,
			['Ann@example.com', 'bob@example.com', 'carl@example.com', 'dora@example.com'].map((to) =>
				to.toLowerCase(),
			),
		]);
		expect(subjects()).toEqual(['News for Oslo', 'News for Oslo', 'News for Oslo', 'News for Rome']);
		expect(notes(run).slice(0, 4)).toEqual([
			'4 recipients of lists 1 "Readers", 2 "Guests"',
			'left out: 1 inactive, 1 already in an earlier list',
			'list 1 "Readers": 2 recipients; left out: 1 inactive',
			'list 2 "Guests": 2 recipients; left out: 1 already in an earlier list',
		]);
		expect(await project.json(['campaigns', 'results', 'spring', '--only', 'left-out'])).toEqual([]);
	});

	it('leaves out people who are on an excluded list or fail a condition, and reports the reasons', async () => {
		const ofNone = send(1, '--list', 'Guests', '--where', 'meta.city=oslo');
		const none = await project.run(ofNone);
		const hint = 'hint: left out: 3 not meta.city=oslo\n';
		expect([none.code, none.stderr]).toEqual([
			2,
			`error: list 2 "Guests" has no recipients; nothing was sent\n${hint}`,
		]);
		const dry = await project.run([...ofNone, '--dry-run']);
		expect([dry.code, dry.stderr]).toEqual([
			2,
			`error: list 2 "Guests" has no recipients; nothing was sent\n${hint}`,
		]);
		const run = await project.run([
			...send(1, ...both, '--exclude-list', 'Staff', '--where', 'name~nn'),
			'--campaign',
			'spring',
		]);
		expect([run.code, sentTo()]).toEqual([0, ['ann@example.com']]);
		const left = (await project.json(['campaigns', 'results', 'spring', '--only', 'left-out'])) as {
			to: string;
			state: string;
			text: string;
		}[];
		expect(left.map(({ to, state, text }) => [to, state, text])).toEqual([
			['bob@example.com', 'left_out', 'not name~nn'],
			['carl@example.com', 'left_out', 'inactive'],
			['dora@example.com', 'left_out', 'in excluded list "Staff"'],
			['carl@example.com', 'left_out', 'not name~nn'],
		]);
		const why = await project.run(['why', 'dora@example.com']);
		expect(why.stdout).toContain('Campaign spring left out this address: in excluded list "Staff".\n');
	});

	it('stores lists and conditions, and `campaigns get` shows both', async () => {
		const words = [...both, '--exclude-list', 'Staff', '--where', 'meta.city!=Bonn'];
		await project.json(send(3, ...words, '--campaign', 'told'));
		expect(await project.json(['campaigns', 'get', 'told'])).toMatchObject({
			audience: { lists: [1, 2], exclude_lists: [3], where: ['meta.city!=Bonn'] },
		});
		const { stdout } = await project.run(['campaigns', 'get', 'told', '-o', 'table', '--no-color']);
		const names = ((await project.json(['lists', 'list'])) as { name: string }[]).map(({ name }) => name);
		expect(stdout).toMatch(new RegExp(`^LIST +${names[0]}, ${names[1]}$`, 'm'));
	});

	it('reports the same counts in a dry run, and creates no campaign', async () => {
		const words = [...both, '--exclude-list', 'Staff', '--where', 'meta.city!=Bonn'];
		const dry = await project.run([...mail, ...words, '-n', '-o', 'json']);
		expect(JSON.parse(dry.stdout)).toMatchObject({
			recipients: 3,
			suppressed: 0,
			rejected: 0,
			lists: [
				{ list_id: 1, staged: 2, left_out: 1, reasons: [{ code: 'inactive', detail: null, count: 1 }] },
				{
					list_id: 2,
					staged: 1,
					left_out: 2,
					reasons: [
						{ code: 'duplicate', detail: null, count: 1 },
						{ code: 'excluded', detail: '3', count: 1 },
					],
				},
			],
		});
		expect(await project.json(['campaigns', 'list'])).toEqual([]);
		expect(await project.json(send(3, ...words))).toMatchObject({ recipients: 3, staged: 3, left_out: 3 });
	});

	it.each([
		['meta.ciy=Oslo', 'unknown field "ciy"', 'did you mean meta.city?', 0],
		['emai~example', 'there is no field "emai"', 'did you mean email?', 0],
		['City=Oslo', 'there is no field "City"', 'did you mean meta.city?', 0],
		['meta.city', 'an operator is missing: =, !=, ~, <, <=, > or >=', expect.stringContaining('fields: '), 9],
		[
			'created>soon',
			'a date is expected here: 2026-01-31 or 2026-01-31T12:00:00',
			expect.stringContaining('fields: '),
			8,
		],
		['created~2026', 'compare a date with =, !=, <, <=, > or >=', expect.stringContaining('fields: '), 7],
		['name>b', 'compare a text with =, != or ~', expect.stringContaining('fields: '), 4],
		['meta.city>b', 'a number is expected here', expect.stringContaining('fields: '), 10],
	])('rejects --where %s and marks the position of the error', async (condition, message, hint, at) => {
		const run = await project.run([...send(1, '--list', '1', '--where', condition), '-o', 'json']);
		expect([run.code, JSON.parse(run.stderr.split('\n')[0] ?? '')]).toMatchObject([
			2,
			{ error: { message: `--where: ${message}`, details: [condition, `${' '.repeat(at)}^`], hint } },
		]);
	});

	it('rejects a repeated mail even with reordered lists, but accepts the same mail for other people', async () => {
		await project.json(send(4, ...both));
		const again = await project.run(send(4, '--list', 'Guests', '--list', 'Readers'));
		expect([again.code, again.stderr]).toEqual([
			2,
			expect.stringContaining('add --again to send it once more'),
		]);
		expect((await project.run(send(1, '--list', 'Readers', '--where', 'meta.city=Oslo'))).code).toBe(0);
	});
});
