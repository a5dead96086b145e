/** `subscribers import` at a terminal: columns known by name or by their cells, and questions about the rest. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject } from '../../../support/project.js';
import { runProgram } from '../../../support/run-program.js';
import { typing } from '../../../support/typing.js';

type Answers = Parameters<typeof typing>[0];

describe('a list that is not there', () => {
	const words = (path: string, ...more: string[]) => ['subscribers', 'import', path, ...more];
	const place = async () => {
		const project = await makeProject();
		return { ...project, path: await project.file('people.csv', 'email\nann@example.com\n') };
	};

	it.each([
		40, 80,
	])('is made by a person who agrees, and the import goes on, at %i columns', async (columns) => {
		const { run, json, path } = await place();
		const answers: Answers = [
			['Create it?', 'y'],
			['Why do its subscribers', 'You signed up'],
		];
		const made = await typing(answers, (options) => run(words(path, '-l', 'News'), options), columns);
		expect(made.code).toBe(0);
		expect(made.stderr).toContain('There is no list "News".');
		expect(await json(['lists', 'list'])).toMatchObject([
			{ name: 'News', email_reason: 'You signed up', active_subscribers_count: 1 },
		]);
	});

	it('is named by a person where there is none yet', async () => {
		const { run, json, path } = await place();
		const answers: Answers = [
			['Which list:', 'News', 'all'],
			['❯ News (a new list)', ''],
			['Why do its subscribers', 'You signed up'],
		];
		const made = await typing(answers, (options) => run(words(path), options));
		expect(made.code).toBe(0);
		expect(stripVTControlCharacters(made.stderr)).toContain('There is no list yet: type a name for one.');
		expect(made.stderr).not.toContain('Create it?');
		expect(await json(['lists', 'list'])).toMatchObject([{ name: 'News', active_subscribers_count: 1 }]);
	});

	it('is a new one by its name, before lists that only have it inside', async () => {
		const { run, json, path } = await place();
		for (const name of ['News', 'Old friends'])
			await json(['lists', 'create', '--name', name, '--email-reason', 'r']);
		const imported = async (keys: string) => {
			const answers: Answers = [
				['Which list:', keys, 'all'],
				['❯ ', ''],
				['Why do its subscribers', 'You signed up'],
			];
			return typing(answers, (options) => run(words(path), options));
		};
		const chosen = async (keys: string) => {
			expect((await imported(keys)).code).toBe(0);
			const lists = (await json(['lists', 'list'])) as { name: string; active_subscribers_count: number }[];
			return lists.filter((list) => list.active_subscribers_count > 0).map(({ name }) => name);
		};
		expect(await chosen('news')).toEqual(['News']);
		expect(await chosen('Subscribers')).toEqual(['News', 'Subscribers']);
		expect(await chosen('friends')).toEqual(['News', 'Subscribers', 'friends']);
		expect(await chosen('Old')).toEqual(['News', 'Old friends', 'Subscribers', 'friends']);
	});

	it('is made once the columns are known, and named in the command that does the same', async () => {
		const { run, json, file } = await place();
		const unknown = await file('unknown.csv', 'email,Thing\nann@example.com,x\n');
		const left: Answers = [['What is the column "Thing"', '\x03', 'all']];
		expect((await typing(left, (options) => run(words(unknown, '-l', 'News'), options))).code).toBe(130);
		const none = await file('nomail.csv', 'name,city\nAnn,Oslo\n');
		expect((await typing([], (options) => run(words(none, '-l', 'News'), options))).code).toBe(2);
		expect(await json(['lists', 'list'])).toEqual([]);
		const answers: Answers = [
			['What is the column "Thing"', ''],
			['Create it?', 'y'],
			['Why do its subscribers', 'You signed up'],
		];
		const made = await typing(answers, (options) => run(words(unknown, '-l', 'News'), options));
		expect([made.code, stripVTControlCharacters(made.stderr)]).toEqual([
			0,
			expect.stringMatching(
				/the same without questions:\s+mailctl .* lists create --name News --email-reason 'You signed up'\nhint: and then:\s+mailctl .* subscribers import .* --list News /,
			),
		]);
	});

	it('is not made by who declines, nor for a file that cannot be imported, nor in a dry run', async () => {
		const { run, json, file, path } = await place();
		const no: Answers = [['Create it?', 'n']];
		expect((await typing(no, (options) => run(words(path, '-l', 'News'), options))).code).toBe(130);
		const dry = await typing([], (options) => run(words(path, '-l', 'News', '-n'), options));
		expect({ code: dry.code, asked: dry.stderr.includes('Create') }).toEqual({ code: 3, asked: false });
		const broken = await file('none.csv', '');
		const unusable = await typing([], (options) => run(words(broken, '-l', 'News'), options));
		expect({ code: unusable.code, asked: unusable.stderr.includes('Create') }).toEqual({
			code: 2,
			asked: false,
		});
		expect(await json(['lists', 'list'])).toEqual([]);
	});

	it('is exit 3 in a script, with both commands; an id is never a new name', async () => {
		const { run, db, path } = await place();
		const own = `mailctl --db ${db}`;
		expect(await run(words(path, '-l', 'Monthly news'))).toEqual({
			code: 3,
			stdout: '',
			stderr:
				'error: list "Monthly news" not found\n' +
				`hint: ${own} lists list\nhint: ${own} lists create --name 'Monthly news' --email-reason TEXT makes it\n`,
		});
		expect(await typing([], (options) => run(words(path, '-l', '99'), options))).toMatchObject({ code: 3 });
	});
});

const down = '\x1b[B';
const up = '\x1b[A';
const people = 'Kontakt,Umsatz (€),Notiz,city\nann@example.com,12.5,x,Oslo\nbob@example.com,30,,Rom\n';

async function guided(content: string | Buffer, answers: Answers, columns?: number) {
	const project = await makeProject();
	const { json, run, file } = project;
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	await json(['fields', 'create', '--variable', 'city', '--name', 'City']);
	const path = await file('people.csv', content);
	const words = ['subscribers', 'import', path, '-l', '1'];
	const result = await typing(answers, (options) => run(words, options), columns);
	return { ...project, path, words, ...result, shown: stripVTControlCharacters(result.stderr) };
}

it('calls a column of days dates, however they are written', async () => {
	const { shown } = await guided(
		'E-Mail;Seit\nann@example.com;03.04.2021\nbob@example.com;12.12.2022\n',
		[['❯ a new field, Seit', '']],
		80,
	);
	expect(shown).toContain('(03.04.2021 · 12.12.2022)');
});

it('tells numbers with a decimal comma apart', async () => {
	const { shown } = await guided(
		'E-Mail;Score\nann@example.com;1.234,50\nbob@example.com;0,5\n',
		[['❯ a new field, Score', '']],
		80,
	);
	expect(shown).toContain('(1.234,50 · 0,5)');
});

it('shortens a header as long as a page', async () => {
	const name = `Notes ${'n'.repeat(494)}`;
	const { shown } = await guided(`email,${name}\nann@example.com,x\n`, [
		['❯ a new field, named', down, 'all'],
		['❯ leave it out', ''],
	]);
	expect(shown).toMatch(/What is the column "Notes\s+n+…n+" \(x\)\?/);
	expect(shown.slice(0, shown.indexOf('the same without questions'))).not.toContain('n'.repeat(80));
});

it('prints a command with every option that was given, and with its target', async () => {
	const project = await makeProject();
	const { json, file, folder, db } = project;
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	const path = await file("it's.csv", 'Kontakt;Stadt\nann@example.com;K\xf6ln\n');
	const given = [
		...['--map', 'Kontakt=email', '--delimiter', ';', '--encoding', 'utf-8', '--rejects', 'bad rows.csv'],
		...['--on-conflict', 'skip', '--reactivate', '--batch-size', '7', '--concurrency', '2', '--rate', '9/s'],
		...['--max-errors', '5%', '--dry-run'],
	];
	const { stderr } = await typing([['❯ a new field, Stadt', '']], (options) =>
		project.run(['subscribers', 'import', path, '-l', 'Readers', ...given], options),
	);
	const shown = stripVTControlCharacters(stderr);
	const printed = /the same without questions:\s+(mailctl .*)\n/.exec(shown)?.[1] ?? shown;
	for (const words of [
		`mailctl --db ${db} subscribers import`,
		`'${path.replace("'", "'\\''")}' --list Readers`,
		"--map Kontakt=email --map Stadt=Stadt --delimiter ';' --encoding utf-8 --rejects 'bad rows.csv'",
		'--on-conflict skip --create-fields --reactivate --batch-size 7 --concurrency 2 --rate 9/s',
		'--max-errors 5% --dry-run',
	])
		expect(printed).toContain(words);
	const pasted = runProgram('bash', ['-c', `printf '%s\\0' ${printed}`])
		.stdout.split('\0')
		.slice(1, -1);
	expect(await cli(pasted, { env: { HOME: folder } })).toMatchObject({ code: 0 });
});

it.each([
	[
		[],
		[
			['Which list:', ''],
			['File:', 'FILE'],
		],
	],
	[['FILE'], [['Which list:', '']]],
] as const)('prints the command where file or list alone were asked for (%j)', async (given, answers) => {
	const { json, file, folder, run } = await makeProject();
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	const path = await file('people.csv', 'email\nann@example.com\n');
	const named = (word: string) => (word === 'FILE' ? path : word);
	const { code, stderr } = await typing(
		answers.map(([question, answer]) => [question, named(answer)] as const),
		(options) => run(['subscribers', 'import', ...given.map(named)], options),
	);
	expect(code).toBe(0);
	const printed = /the same without questions:\s+(mailctl .*)\n/.exec(stripVTControlCharacters(stderr))?.[1];
	expect(printed).toMatch(/ --list Readers$/);
	const again = await cli((printed ?? '').split(' ').slice(1), { env: { HOME: folder } });
	expect([again.code, again.stdout]).toEqual([0, expect.stringContaining('1')]);
});

it('rewrites no line of a terminal that cannot', async () => {
	const { path, run } = await guided('email\nann@example.com\n', []);
	const words = ['subscribers', 'import', path, '-l', '1', '--rejects', `${path}.again.csv`];
	const { code, stderr } = await run(words, { columns: 80, env: { TERM: 'dumb' } });
	expect([code, stderr]).toEqual([0, expect.stringContaining('read 1 = ')]);
	expect(stderr).not.toMatch(/[\x1b\r]/);
});

it('says how the file is read before it asks about its columns', async () => {
	const { shown } = await guided(
		Buffer.from('E-Mail;Gr\xf6\xdfe\nann@example.com;K\xf6ln\nbob@example.com;M\xfcnchen\n', 'latin1'),
		[['❯ a new field', '']],
		120,
	);
	const guess = shown.indexOf('read as windows-1252, probably');
	expect(guess).toBeGreaterThan(-1);
	expect(guess).toBeLessThan(shown.indexOf('What is the column "Größe"'));
	expect(shown.split('probably')).toHaveLength(2);
});

describe.each([40, 80, 120])('subscribers import on a terminal of %i columns', (columns) => {
	it('finds the addresses by their cells, asks about the rest, and prints the command', async () => {
		const { code, shown, json, path, db, run } = await guided(
			people,
			[
				['❯ a new field, umsatz', ''],
				['❯ a new field, Notiz', down, 'all'],
				['❯ a new field, named', down, 'all'],
				['❯ leave it out', ''],
			],
			columns,
		);
		expect(code).toBe(0);
		expect(shown).toContain('"Kontakt" holds e-mail addresses');
		expect(shown.replaceAll(/\s+/g, '')).toContain('(12.5·30)');
		expect(await json(['subscribers', 'get', 'ann@example.com', '-l', '1'])).toMatchObject({
			meta: { city: 'Oslo', umsatz: '12.5' },
		});
		const maps = ['--map', 'Kontakt=email', '--map', "'Umsatz (€)=umsatz'", '--map', 'Notiz=-'];
		const line = [
			'mailctl',
			'--db',
			db,
			'subscribers',
			'import',
			path,
			'--list',
			'Readers',
			...maps,
			'--create-fields',
		];
		expect(shown.replaceAll(/\s/g, '')).toContain(line.join('').replaceAll(' ', ''));
		const words = line.slice(3).map((word) => word.replaceAll("'", ''));
		expect(await run([...words, '--rejects', `${path}.again.csv`, '-o', 'json'])).toMatchObject({
			code: 0,
			stdout: expect.stringContaining('"unchanged": 2'),
		});
	});
});

describe('subscribers import at a terminal', () => {
	it('asks nothing about columns that are known', async () => {
		const { code, shown } = await guided('Courriel,city\nann@example.com,Oslo\n', []);
		expect(code).toBe(0);
		expect(shown).not.toContain('?');
	});

	it('offers no place that another column has', async () => {
		const { code, shown, json } = await guided('E-Mail,First,Last,city\nann@example.com,Ann,Lee,Oslo\n', [
			['❯ the name of the subscriber, joined', down, 'all'],
			['❯ columns of their own', ''],
			['❯ a new field, First', up, 'all'],
			['❯ the name of the subscriber', ''],
			['❯ a new field, Last', down, 'all'],
			['❯ a new field, named', ''],
			['Variable of the new field:', 'city'],
			['another column is city already', '\x15surname'],
		]);
		expect(code).toBe(0);
		expect(shown.split('What is the column "Last"')[1]).not.toContain('the name of the subscriber');
		expect(await json(['subscribers', 'get', 'ann@example.com', '-l', '1'])).toMatchObject({
			name: 'Ann',
			meta: { surname: 'Lee', city: 'Oslo' },
		});
	});

	it('offers to join first and last name, and prints the command', async () => {
		const { code, shown, json } = await guided('Vorname;Name;E-Mail\nAnn;Lee;ann@example.com\n', [
			['❯ the name of the subscriber, joined', ''],
		]);
		expect(code).toBe(0);
		expect(shown.replaceAll(/\s+/g, ' ')).toContain('--map Vorname+Name=name');
		expect(await json(['subscribers', 'get', 'ann@example.com', '-l', '1'])).toMatchObject({
			name: 'Ann Lee',
		});
	});

	it('asks about them one by one where they are columns of their own', async () => {
		const { code, json } = await guided('First name,Surname,E-Mail\nAnn,Lee,ann@example.com\n', [
			['❯ the name of the subscriber, joined', down, 'all'],
			['❯ columns of their own', ''],
			['❯ a new field, first_name', ''],
			['❯ a new field, Surname', ''],
		]);
		expect(code).toBe(0);
		expect(await json(['subscribers', 'get', 'ann@example.com', '-l', '1'])).toMatchObject({
			name: '',
			meta: { first_name: 'Ann', Surname: 'Lee' },
		});
	});

	it('asks which column has the addresses where several do', async () => {
		const { code, json } = await guided('a,b\nann@example.com,amy@example.com\n', [
			['Which column', down, 'all'],
			['❯ b', ''],
			['❯ a new field, a', ''],
		]);
		expect(code).toBe(0);
		expect(await json(['subscribers', 'get', 'amy@example.com', '-l', '1'])).toMatchObject({
			meta: { a: 'ann@example.com' },
		});
	});

	it('asks which column has the addresses where other texts stand among them', async () => {
		const { code, json } = await guided('Kontakt,Rolle\nann@example.com,x\nnone,y\n', [
			['Which column of', ''],
			['❯ a new field, Rolle', ''],
		]);
		expect(code).toBe(9);
		expect(await json(['subscribers', 'get', 'ann@example.com', '-l', '1'])).toMatchObject({
			meta: { Rolle: 'x' },
		});
	});

	it('asks nothing about a file without addresses', async () => {
		const { json, file, run } = await makeProject();
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const path = await file('people.csv', 'Vorname,Nachname\nAnn,Lee\n');
		const { code, stderr } = await typing([], (options) =>
			run(['subscribers', 'import', path, '-l', '1'], options),
		);
		expect([code, stderr]).toEqual([2, expect.stringContaining('no email column')]);
		expect(stderr).not.toContain('What are the columns');
	});

	it('prints no command that would be refused', async () => {
		const { json, file, run } = await makeProject();
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const path = await file('people.csv', 'Kontakt\nnone\n');
		const { code, stderr } = await typing([['Which list:', '']], (options) =>
			run(['subscribers', 'import', path], options),
		);
		expect([code, stderr]).toEqual([2, expect.stringContaining('no email column')]);
		expect(stderr).not.toContain('the same without questions');
	});

	it.each(['\x03', '\x04'])('imports nothing when it is left', async (key) => {
		const { code, json } = await guided(people, [['Umsatz', key, 'all']]);
		expect(code).toBe(130);
		expect(await json(['lists', 'get', '1'])).toMatchObject({ overall_subscribers_count: 0 });
		expect(await json(['fields', 'list'])).toHaveLength(1);
	});

	it('is exit 2 in a script, as before', async () => {
		const { run, words } = await guided('Courriel,city\n', []);
		const { file } = await makeProject();
		const path = await file('people.csv', people);
		expect(await run([...words.slice(0, 2), path, ...words.slice(3)])).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('unknown column "Notiz"'),
		});
	});
});
