import { beforeEach, describe, expect, it } from 'vitest';
import type { Api, PageRequest } from '../../../../../src/api/api.js';
import { readOnly } from '../../../../../src/cli/commands/subscribers/import/run.js';
import type { CliOptions, CliResult } from '../../../../support/cli.js';
import { makeProject, type Project, said } from '../../../../support/project.js';
import { stripped } from '../../../../support/stripped.js';

describe('mailctl subscribers import --dry-run', () => {
	let project: Project;

	beforeEach(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'City']);
		const before = [
			'email,name,city,is_active,disable_reason',
			'same@example.com,Same,Oslo,,',
			'Case@Example.com,Case,Oslo,,',
			'name@example.com,Before,Oslo,,',
			'city@example.com,City,Oslo,,',
			'left@example.com,Left,Oslo,no,',
			'gone@example.com,Gone,Oslo,no,asked by phone',
		];
		await project.json(words(await project.file('before.csv', before.join('\n'))));
	});

	const words = (path: string, ...more: string[]) => ['subscribers', 'import', path, '-l', '1', ...more];
	const text = [
		'email,name,city,is_active,disable_reason',
		'new@example.com,New,Rome,,',
		'same@example.com,Same,Oslo,yes,',
		'same@example.com,Twice,Oslo,,',
		'CASE@example.com,,,,',
		'name@example.com,After,,,',
		'city@example.com,,Rome,,',
		'left@example.com,,,yes,',
		'gone@example.com,,,yes,',
		'nobody,,,,',
		'',
	].join('\n');

	it.each([
		['subscribers import', ['-l', '1']],
		['suppressions import', []],
	])('fails like a real %s if the rejects file exists or cannot be created', async (verb, more) => {
		const path = await project.file('bad.csv', 'email\nnobody\n');
		const kept = await project.file('bad.csv.rejects.csv', 'what somebody edits\n');
		for (const rejects of [kept, path, `${project.folder}/none/r.csv`]) {
			const all = [...verb.split(' '), path, ...more, '--rejects', rejects];
			const real = await project.run(all);
			expect(real).toMatchObject({ code: 2, stderr: expect.stringContaining('error: the rejects file') });
			expect(await project.run([...all, '-n'])).toEqual(real);
		}
	});

	it.each([
		[[], { created: 1, updated: 2, unchanged: 4, duplicate: 1, rejected: 1 }],
		[['--reactivate'], { created: 1, updated: 4, unchanged: 2, duplicate: 1, rejected: 1 }],
		[['--on-conflict', 'skip'], { created: 1, updated: 0, unchanged: 6, duplicate: 1, rejected: 1 }],
		[['--on-conflict', 'error'], { created: 1, updated: 0, unchanged: 0, duplicate: 0, rejected: 8 }],
	])('with %j predicts the counts of the import, on a database and on another service', async (more, counts) => {
		const path = await project.file('people.csv', text);
		const elsewhere: CliOptions = { connect: stripped() };
		const plan = { read: 9, ...counts, unchecked: 0 };
		const here = await project.json(words(path, ...more, '-n'));
		const there = (await project.json(words(path, ...more, '-n'), elsewhere)) as object;
		expect(here).toMatchObject({ dry_run: true, ...plan });
		expect(there).toMatchObject({ dry_run: true, ...plan });
		const { unchecked: _, ...done } = plan;
		expect(await project.json(words(path, ...more), { code: 9 })).toEqual(done);
	});

	it.each([
		['update', { created: 2, updated: 5, unchanged: 0, rejected: 0, other_reasons: 3 }],
		['skip', { created: 2, updated: 2, unchanged: 3, rejected: 0, other_reasons: 1 }],
		['error', { created: 2, updated: 0, unchanged: 0, rejected: 5, other_reasons: 1 }],
	])('with --on-conflict %s counts suppression reasons as the import does', async (conflict, counts) => {
		const file = [
			'email,disable_reason',
			'new@example.com,COMPLAINED',
			'other@example.com,moved',
			'same@example.com,Complained',
			'name@example.com,UNSUBSCRIBED',
			'left@example.com,away',
			'city@example.com,asked',
			'gone@example.com,HARDBOUNCED',
		];
		const path = await project.file('reasons.csv', file.join('\n'));
		const all = words(path, '--on-conflict', conflict);
		const plan = await project.run([...all, '-n', '-o', 'json']);
		const real = await project.run([...all, '-o', 'json']);
		const { other_reasons, ...done } = counts;
		const warned = (run: CliResult) => said(run).flatMap(({ warning }) => warning ?? []);
		expect(JSON.parse(plan.stdout)).toMatchObject({ ...counts });
		expect(JSON.parse(real.stdout)).toMatchObject(done);
		expect(warned(plan)).toEqual(warned(real));
		expect(warned(plan)[0]).toContain(`${other_reasons} row`);
	});

	it('describes the file, its columns and the rejected rows', async () => {
		const path = await project.file('people.csv', 'E-Mail;Town;Fax\nnobody;Oslo;1\nann@example.com;Rome;\n');
		const more = ['--map', 'Town=city', '--create-fields', '--map', 'Fax=-', '-n'];
		expect(await project.json(words(path, ...more))).toMatchObject({
			format: 'csv',
			encoding: 'utf-8',
			delimiter: ';',
			columns: { 'E-Mail': 'email', Town: 'meta.city' },
			first_row: { 'E-Mail': 'nobody', Town: 'Oslo' },
			left_out: ['Fax'],
			create_fields: [],
			rejects: [{ line: 2, code: 'invalid', error: 'email: Enter a valid email address: it has no @' }],
		});
		const { stdout, stderr } = await project.run(words(path, ...more, '--no-color'), { columns: 200 });
		expect(stdout).toBe('');
		expect(stderr.replace(/\r\x1b\[K(?:comparing[^\r]*)?/g, '')).toBe(
			[
				`${path}: CSV, UTF-8, delimiter ";"`,
				'columns: E-Mail → email, Town → city',
				'left out: Fax',
				`dry run: would import ${path} into list 1 "Readers": read 2 = created 1 + updated 0 + unchanged 0 + duplicate 0 + rejected 1`,
				'first row: E-Mail = nobody, Town = Oslo',
				'line 2: email: Enter a valid email address: it has no @ (invalid)',
				'',
			].join('\n'),
		);
	});

	it('groups many rejected rows by their error', async () => {
		const rows = (count: number, row: string) => `${row}\n`.repeat(count);
		const path = await project.file(
			'people.csv',
			`email\n${rows(4, 'a@example..com')}${rows(30, 'nobody')}${rows(2, 'x@example.com,y')}${rows(3, 'ann@example.com')}`,
		);
		const { stderr } = await project.run([...words(path, '-n'), '-o', 'table']);
		expect(stderr).toContain(
			[
				'and 16 more rejected rows; totals by error:',
				'30 × email: Enter a valid email address: it has no @ (invalid)',
				'4 × email: Enter a valid email address: its form is invalid (invalid)',
				'2 × 2 cells where the header has 1 (too_many_cells)',
				'',
			].join('\n'),
		);
		expect(await project.json(words(path, '-n'))).toMatchObject({
			rejected: 36,
			duplicate: 2,
			reject_kinds: [
				{ code: 'invalid', rows: 30 },
				{ code: 'invalid', rows: 4 },
				{ code: 'too_many_cells', error: '2 cells where the header has 1', rows: 2 },
			],
		});
	});

	it('shows the first row, decoded with the guessed or given encoding', async () => {
		const bytes = Buffer.from('email;name\nann@example.com;Zo\xeb\n', 'latin1');
		const path = await project.file('people.csv', bytes);
		const first = async (...more: string[]) =>
			((await project.json(words(path, ...more, '-n'))) as { first_row: unknown }).first_row;
		expect(await first()).toEqual({ email: 'ann@example.com', name: 'Zoë' });
		expect(await first('--encoding', 'windows-1251')).toEqual({ email: 'ann@example.com', name: 'Zoл' });
		expect(await project.json(words(await project.file('none.csv', 'email\n'), '-n'))).toMatchObject({
			first_row: null,
		});
	});

	it('counts rows as unchanged if their numbers and booleans equal the stored ones', async () => {
		await project.json(['fields', 'create', '--variable', 'age', '--name', 'Age']);
		await project.json(['fields', 'create', '--variable', 'vip', '--name', 'Vip']);
		const line = (n: number) =>
			JSON.stringify({ email: `p${n}@example.com`, meta: { age: n, vip: true, city: '' } });
		const path = await project.file('typed.ndjson', Array.from({ length: 50 }, (_, n) => line(n)).join('\n'));
		await project.json(words(path));
		for (const connect of [undefined, stripped()])
			expect(await project.json(words(path, '-n'), connect === undefined ? {} : { connect })).toMatchObject({
				read: 50,
				unchanged: 50,
				updated: 0,
			});
	});

	it('reads standard input, but shows no progress and writes no rejects file', async () => {
		const stdin: CliOptions = { stdin: 'email\nbad\nann@example.com\n' };
		const rejects = `${project.folder}/r.csv`;
		for (const more of [[], ['--rejects', rejects]])
			expect(await project.json(words('-', ...more, '-n'), stdin)).toMatchObject({
				read: 2,
				created: 1,
			});
		expect((await project.run(words('-', '--rejects', rejects), stdin)).code).toBe(9);
	});
});

describe('a dry run on a database', () => {
	let project: Project;

	beforeEach(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
	});

	const words = (path: string, ...more: string[]) => ['subscribers', 'import', path, '-l', '1', ...more];

	async function foreseen(path: string, ...more: string[]) {
		const before = await project.json(['lists', 'get', '1']);
		const dry = await project.run([...words(path, ...more), '-n', '-o', 'json']);
		expect(await project.json(['lists', 'get', '1'])).toEqual(before);
		const rejects = `${path}.${more.length}.csv`;
		const real = await project.run([...words(path, ...more), '--rejects', rejects, '-o', 'json']);
		const plan = JSON.parse(dry.stdout);
		expect({ ...plan, code: dry.code }).toMatchObject({ ...JSON.parse(real.stdout), code: 0, unchecked: 0 });
		return plan;
	}

	it('predicts the counts for erased addresses, suppressed addresses, and meta that becomes too long', async () => {
		await project.json(['fields', 'create', '--variable', 'bio', '--name', 'Bio']);
		await project.json(['fields', 'create', '--variable', 'cv', '--name', 'CV']);
		const long = 'x'.repeat(40_000);
		const before = `email,bio\nfull@example.com,${long}\nerased@example.com,\nleft@example.com,\n`;
		await project.json(words(await project.file('before.csv', before)));
		await project.json([
			'subscribers',
			'erase',
			'erased@example.com',
			'--yes',
			'--confirm',
			'erased@example.com',
		]);
		await project.json(['suppressions', 'add', 'left@example.com', '--reason', 'UNSUBSCRIBED']);
		const path = await project.file(
			'people.csv',
			`email,cv\nfull@example.com,${long}\nerased@example.com,\nleft@example.com,\nnew@example.com,\n`,
		);
		expect(await foreseen(path, '--reactivate')).toMatchObject({
			created: 1,
			updated: 1,
			rejected: 2,
			rejects: [{ code: 'max_length' }, { code: 'erased' }],
		});
	});

	it('detects duplicates and new fields across all batches of the file', async () => {
		const line = (n: number) => `p${n % 9_000}@example.com,Town ${n}\n`;
		const path = await project.file(
			'people.csv',
			`email,Town\n${Array.from({ length: 10_000 }, (_, n) => line(n)).join('')}bad,Oslo\n`,
		);
		const plan = await foreseen(path, '--create-fields', '--batch-size', '700');
		expect(plan).toMatchObject({ created: 9_000, duplicate: 1_000, rejected: 1 });
		expect(plan).toMatchObject({ rejects: [{ line: 10_002 }], create_fields: [{ variable: 'Town' }] });
	});

	it('predicts exact counts for a large file, which a second thread reads', async () => {
		const name = 'x'.repeat(200);
		const line = (n: number) => `p${n % 6_000}@example.com,${name}\n`;
		const path = await project.file(
			'people.csv',
			`email,name\n${Array.from({ length: 7_000 }, (_, n) => line(n)).join('')}`,
		);
		expect(await foreseen(path)).toMatchObject({
			created: 6_000,
			duplicate: 1_000,
			first_row: { email: 'p0@example.com', name },
		});
		expect(await foreseen(path, '--on-conflict', 'error')).toMatchObject({ rejected: 7_000 });
	});

	it('stops at the row at which --max-errors would stop the import', async () => {
		const path = await project.file('people.csv', 'email\nnobody\na@example.com\nnobody\nb@example.com\n');
		const more = ['--max-errors', '0', '--batch-size', '2'];
		const dry = await project.run([...words(path, ...more), '-n', '-o', 'json']);
		expect(JSON.parse(dry.stdout)).toMatchObject({ read: 2, created: 1, rejected: 1 });
		expect(said(dry)).toContainEqual({
			warning: 'the import will exit with 9: 1 of 2 rows was rejected, more than --max-errors 0 allows',
		});
		const real = await project.run([...words(path, ...more), '-o', 'json']);
		expect({ code: real.code, counts: JSON.parse(real.stdout) }).toMatchObject({
			code: 9,
			counts: { read: 2, created: 1, rejected: 1 },
		});
	});
});

describe('a dry run on a service other than mailctl', () => {
	const calls: string[] = [];
	const page = async (request: PageRequest & { email__exact?: string }) => {
		calls.push(`page ${request.email__exact ?? ''}`);
		return { count: 0, next: null, previous: null, results: [] };
	};
	const api = { subscribers: () => ({ page }) } as unknown as Api;

	it('sends a limited number of requests, and counts the rows that it does not check', async () => {
		const read = readOnly(api, 2);
		const subscribers = read.subscribers(1);
		for (const n of [1, 2, 3]) {
			await subscribers.page({ email__exact: `p${n}@example.com` });
			await subscribers.create({ email: `P${n}@example.com` });
		}
		expect(calls).toEqual(['page p1@example.com', 'page p2@example.com']);
		expect(read.unasked()).toBe(1);
	});
});
