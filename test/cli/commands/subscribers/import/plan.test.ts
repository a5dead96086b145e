// What `--dry-run` says is what then happens, whoever keeps the list; and it asks a service only so much.
import { beforeEach, describe, expect, it } from 'vitest';
import { emailKey } from '../../../../../src/api/address.js';
import type { Api, PageRequest } from '../../../../../src/api/api.js';
import type { Subscriber } from '../../../../../src/api/records.js';
import { readPlanned } from '../../../../../src/cli/commands/subscribers/import/forecast.js';
import { People, standingOf } from '../../../../../src/cli/commands/subscribers/import/people.js';
import { Standings } from '../../../../../src/cli/commands/subscribers/import/standing.js';
import type { CliOptions } from '../../../../support/cli.js';
import { makeProject, type Project } from '../../../../support/project.js';
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
		[[], { created: 1, updated: 2, unchanged: 4, duplicate: 1, rejected: 1 }],
		[['--reactivate'], { created: 1, updated: 4, unchanged: 2, duplicate: 1, rejected: 1 }],
		[['--on-conflict', 'skip'], { created: 1, updated: 0, unchanged: 6, duplicate: 1, rejected: 1 }],
		[['--on-conflict', 'error'], { created: 1, updated: 0, unchanged: 0, duplicate: 0, rejected: 8 }],
	])('with %j says what then happens, here and on a deployment that is not ours', async (more, counts) => {
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

	it('says what the file is, what the columns become and which rows are rejected', async () => {
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
			rejects: [{ line: 2, code: 'invalid', error: 'email: Enter a valid email address.' }],
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
				'line 2: email: Enter a valid email address. (invalid)',
				'',
			].join('\n'),
		);
	});

	it('shows the first row as it was decoded, so that a wrong code page is seen', async () => {
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

	it('finds typed values unchanged where the list holds the same', async () => {
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

	it('reads standard input, and leaves no mark and no rejects file', async () => {
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

describe('who is in a list, for a plan', () => {
	const person = (n: number): Subscriber => ({
		id: n,
		list_id: 1,
		email: `p${n}@example.com`,
		name: `Person ${n}`,
		is_active: n % 2 === 0,
		disable_reason: n % 3 === 0 ? 'HARDBOUNCED' : null,
		is_email_verified: false,
		meta: { city: `Town ${n}`, age: n },
		source: 'API',
		opt_in_signed: null,
		date_created: '2026-11-01T10:00:00.000000',
	});
	const targets = ['email', 'name', 'meta.city', 'meta.age', 'disable_reason'];

	/** A list of `count`, `perPage` a page whatever is asked for. */
	function listOf(count: number, perPage: number) {
		const all = Array.from({ length: count }, (_, n) => person(n));
		let requests = 0;
		const page = async (request: PageRequest & { email__exact?: string }) => {
			requests += 1;
			const { email__exact, page: number = 1 } = request;
			const found = email__exact === undefined ? all : all.filter(({ email }) => email === email__exact);
			const results = found.slice((number - 1) * perPage, number * perPage);
			const next = number * perPage < found.length ? `?page=${number + 1}` : null;
			return { count: found.length, next, previous: null, results };
		};
		return { subscribers: { page } as unknown as ReturnType<Api['subscribers']>, requests: () => requests };
	}

	const rowsFor = (numbers: readonly number[]) =>
		readPlanned({ first: 0, columns: ['email'], cells: numbers.map((n) => `P${n}@example.com`) });

	it('keeps people so that they compare as the records do', () => {
		const people = new People(1_000, targets);
		for (let n = 0; n < 1_000; n += 1) people.add(person(n));
		for (let n = 0; n < 1_000; n += 1) {
			const kept = people.find(emailKey(`P${n}@EXAMPLE.com`));
			const record = standingOf(person(n));
			expect(kept).toMatchObject({ isActive: record.isActive, isBound: record.isBound });
			for (const [target, cell] of [
				['name', `Person ${n}`],
				['name', `Person ${n + 1}`],
				['meta.city', `Town ${n}`],
				['meta.age', String(n)],
				['meta.fax', ''],
				['disable_reason', 'HARDBOUNCED'],
			] as const)
				expect(kept?.holds(target, cell)).toBe(record.holds(target, cell));
		}
		expect(people.find(emailKey('nobody@example.com'))).toBeNull();
	});

	it('takes 40 bytes a person and less than twice that', () => {
		expect(People.bytesFor(1_000_000, 3)).toBeLessThan(64 * 1024 * 1024);
	});

	it('takes in no more than it has room for', () => {
		const people = new People(0, targets);
		for (let n = 0; n < 5_000; n += 1) people.add(person(n));
		expect(people.find(emailKey('p4999@example.com'))).toBeNull();
		expect(people.find(emailKey('p0@example.com'))).not.toBeNull();
	});

	it('reads a list once, after it has asked for as long as that was cheaper', async () => {
		const { subscribers, requests } = listOf(1_000, 100);
		const signal = new AbortController().signal;
		const standings = new Standings(subscribers, { signal, targets, concurrency: 4, maxRequests: 20_000 });
		const found = await standings.find(rowsFor([1, 2, 3_000]));
		expect(found.map((one) => (one === 'unchecked' ? one : one?.isActive))).toEqual([false, true, undefined]);
		const asked = requests();
		for (let round = 0; round < 5; round += 1)
			await standings.find(rowsFor(Array.from({ length: 100 }, (_, n) => n)));
		expect(requests() - asked).toBeLessThan(2 * 5 * 100);
		const before = requests();
		await standings.find(rowsFor([1, 2, 999]));
		expect(requests()).toBe(before);
	});

	it('asks no more often than it may where a list cannot be kept, and says of the rest that it was not checked', async () => {
		const { subscribers, requests } = listOf(1_000, 100);
		const options = { targets, concurrency: 4, maxRequests: 50, maxKeptBytes: 1 };
		const standings = new Standings(subscribers, { signal: new AbortController().signal, ...options });
		const found = await standings.find(rowsFor(Array.from({ length: 80 }, (_, n) => n)));
		expect(found.filter((one) => one === 'unchecked')).toHaveLength(30);
		expect(found[49]).toMatchObject({ isActive: false });
		expect(found[50]).toBe('unchecked');
		// The first page, and each address as it is written and in lower case.
		expect(requests()).toBeLessThanOrEqual(1 + 2 * 50);
	});
});
