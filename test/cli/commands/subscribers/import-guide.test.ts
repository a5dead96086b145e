/** `subscribers import` on a terminal: it recognizes columns by name or by their cells, and asks about the rest. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { cli } from '../../../support/cli.js';
import { makeProject } from '../../../support/project.js';
import { runProgram } from '../../../support/run-program.js';
import { typing } from '../../../support/typing.js';

type Answers = Parameters<typeof typing>[0];

const down = '\x1b[B';
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

it('the import guide prints a command that includes the answers, the given options and the database', async () => {
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

it('the import guide prints a command even if it asks only for the list', async () => {
	const { json, file, run } = await makeProject();
	await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	const path = await file('people.csv', 'email\nann@example.com\n');
	const { code, stderr } = await typing([['Which list:', '']], (options) =>
		run(['subscribers', 'import', path], options),
	);
	const printed = /the same without questions:\s+(mailctl .*)\n/.exec(stripVTControlCharacters(stderr))?.[1];
	expect([code, printed]).toEqual([0, expect.stringMatching(/ --list Readers$/)]);
});

it('the import guide prints the format that it detects before it asks about columns', async () => {
	const { shown } = await guided(
		Buffer.from('E-Mail;Gr\xf6\xdfe\nann@example.com;K\xf6ln\nbob@example.com;M\xfcnchen\n', 'latin1'),
		[['❯ a new field', '']],
		120,
	);
	const guess = shown.indexOf('its encoding is probably windows-1252');
	expect(guess).toBeGreaterThan(-1);
	expect(guess).toBeLessThan(shown.indexOf('What is the column "Größe"'));
});

it.each([
	40, 120,
])('the import guide finds the address column by its cells and asks about the others, on a terminal %i characters wide', async (columns) => {
	const { code, shown, json, path, db, run } = await guided(
		people,
		[
			['❯ a new field, umsatz', ''],
			['❯ a new field, Notiz', down, 'all'],
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
	const line = [
		...['mailctl', '--db', db, 'subscribers', 'import', path, '--list', 'Readers'],
		...['--map', 'Kontakt=email', '--map', "'Umsatz (€)=umsatz'", '--map', 'Notiz=-', '--create-fields'],
	];
	expect(shown.replaceAll(/\s/g, '')).toContain(line.join('').replaceAll(' ', ''));
	const words = line.slice(3).map((word) => word.replaceAll("'", ''));
	expect(await run([...words, '--rejects', `${path}.again.csv`, '-o', 'json'])).toMatchObject({
		code: 0,
		stdout: expect.stringContaining('"unchanged": 2'),
	});
});

describe('subscribers import on a terminal', () => {
	it('asks nothing if it knows all columns', async () => {
		const { code, shown } = await guided('Courriel,city\nann@example.com,Oslo\n', []);
		expect(code).toBe(0);
		expect(shown).not.toContain('?');
	});

	it('does not offer a field that another column already fills', async () => {
		const { code, shown, json } = await guided('E-Mail,First,Last\nann@example.com,Ann,Lee\n', [
			['❯ a new field, First', `${down}${down}${down}`, 'all'],
			['❯ the name of the subscriber', ''],
			['❯ a new field, Last', ''],
		]);
		expect(code).toBe(0);
		expect(shown.split('What is the column "Last"')[1]).not.toContain('the name of the subscriber');
		expect(await json(['subscribers', 'get', 'ann@example.com', '-l', '1'])).toMatchObject({
			name: 'Ann',
			meta: { Last: 'Lee' },
		});
	});

	it('asks for the address column if several columns contain addresses', async () => {
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

	it('asks nothing and prints no command if no column has addresses', async () => {
		const { code, shown } = await guided('Vorname,Nachname\nAnn,Lee\n', []);
		expect([code, shown]).toEqual([2, expect.stringContaining('no email column')]);
		expect(shown).not.toMatch(/What is the column|the same without questions/);
	});

	it.each(['\x03', '\x04'])('imports nothing if the user leaves with %j', async (key) => {
		const { code, json } = await guided(people, [['Umsatz', key, 'all']]);
		expect(code).toBe(130);
		expect(await json(['lists', 'get', '1'])).toMatchObject({ overall_subscribers_count: 0 });
		expect(await json(['fields', 'list'])).toHaveLength(1);
	});
});
