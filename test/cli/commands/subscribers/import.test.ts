import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { errorOf, makeProject, type Project, said } from '../../../support/project.js';
import { runProgram } from '../../../support/run-program.js';
import { stripped } from '../../../support/stripped.js';

describe('mailctl subscribers import', () => {
	let project: Project;

	beforeEach(async () => {
		project = await makeProject();
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['fields', 'create', '--variable', 'city', '--name', 'Home town']);
	});

	const words = (path: string, ...more: string[]) => [
		'subscribers',
		'import',
		path,
		'-l',
		'Readers',
		...more,
	];
	const people = async () =>
		(await project.json([
			...['subscribers', 'list', '-l', '1', '--fields', 'email,name,is_active,meta'],
		])) as unknown[];
	const counts = (more: Record<string, number>) => ({
		...{ read: 0, created: 0, updated: 0, unchanged: 0, duplicate: 0, rejected: 0 },
		...more,
	});

	it('counts every row once, and writes rejected rows to a file that the user can correct and import', async () => {
		const path = await project.file(
			'people.csv',
			[
				'E-Mail,Name,home TOWN',
				'ann@example.com,Ann,Oslo',
				'nobody,Bob,Rome',
				'ANN@example.com,Ann again,Oslo',
				'bob@example.com,"Bob ""B"", Jr",Rome',
				'too,many,cells,here',
				'',
			].join('\r\n'),
		);
		const run = await project.run([...words(path), '-o', 'json']);
		expect({ code: run.code, document: JSON.parse(run.stdout), said: said(run) }).toEqual({
			code: 9,
			document: counts({ read: 5, created: 2, duplicate: 1, rejected: 2 }),
			said: [
				{
					hint: `2 rejected rows and 1 duplicate row are in ${path}.rejects.csv; correct the rejected rows and import that file`,
				},
			],
		});
		const rejects = await readFile(`${path}.rejects.csv`, 'utf8');
		expect(rejects.split('\n')).toEqual([
			'E-Mail,Name,home TOWN,_line,_code,_error',
			'nobody,Bob,Rome,3,invalid,email: Enter a valid email address: it has no @',
			'ANN@example.com,Ann again,Oslo,4,duplicate,email: ANN@example.com is in this import already.',
			'too,many,"cells,here",6,too_many_cells,4 cells where the header has 3',
			'',
		]);
		const mended = await project.file('mended.csv', rejects.replace('nobody,', 'carl@example.com,'));
		expect(await project.json(words(mended), { code: 9 })).toEqual(
			counts({ read: 3, created: 1, duplicate: 1, rejected: 1 }),
		);
		expect(await people()).toEqual([
			{ email: 'ann@example.com', name: 'Ann', is_active: true, meta: { city: 'Oslo' } },
			{ email: 'bob@example.com', name: 'Bob "B", Jr', is_active: true, meta: { city: 'Rome' } },
			{ email: 'carl@example.com', name: 'Bob', is_active: true, meta: { city: 'Rome' } },
		]);
	});

	it('imports duplicates from a rejects file only if the user clears their cells in the column _code', async () => {
		const path = await project.file(
			'people.csv',
			'email,name\nann@example.com,Ann\nANN@example.com,Other\nbad,Bob\n',
		);
		await project.run(words(path));
		const rejects = `${path}.rejects.csv`;
		const expected = counts({ read: 2, duplicate: 1, rejected: 1 });
		expect(await project.json(words(rejects, '-n'))).toMatchObject(expected);
		expect(await project.json(words(rejects), { code: 9 })).toEqual(expected);
		expect(await readFile(`${path}.rejects-2.csv`, 'utf8')).toBe(
			'email,name,_line,_code,_error\n' +
				'ANN@example.com,Other,2,duplicate,the previous import already had this row (clear its _code to import it anyway)\n' +
				'bad,Bob,3,invalid,email: Enter a valid email address: it has no @\n',
		);
		expect(await people()).toMatchObject([{ name: 'Ann' }]);
		const meant = await project.file(
			'meant.csv',
			(await readFile(rejects, 'utf8')).replace(',duplicate,', ',,'),
		);
		expect(await project.json(words(meant), { code: 9 })).toMatchObject({ updated: 1, duplicate: 0 });
		expect(await people()).toMatchObject([{ name: 'Other' }]);
	});

	it('rejects arrays and objects in text columns, and rejects them again from the rejects file', async () => {
		const rows = [
			{ email: 'a@example.com', city: [1, 2] },
			{ email: 'c@example.com', name: { x: 1 } },
			{ email: 'd@example.com', city: 5, name: true, tags: ['x'] },
		];
		const path = await project.file('nested.ndjson', rows.map((row) => JSON.stringify(row)).join('\n'));
		const counts = { read: 3, created: 1, rejected: 2 };
		const told = words(path, '--map', 'tags=-');
		expect(await project.json([...told, '--dry-run'])).toMatchObject(counts);
		expect(await project.json(told, { code: 9 })).toMatchObject(counts);
		expect(await people()).toMatchObject([{ email: 'd@example.com', name: 'true', meta: { city: '5' } }]);
		const rejects = `${path}.rejects.csv`;
		const written = await readFile(rejects, 'utf8');
		const value = 'Use a string, a number, true, false or null.';
		expect(written).toContain(`,1,nested_value,"meta.city: ${value}"`);
		expect(written).toContain(',2,nested_value,name: Not a valid string.');
		expect(await project.json(words(rejects), { code: 9 })).toMatchObject({ created: 0, rejected: 2 });
	});

	it.each([
		[
			'people.csv',
			'Note,email,city,name\nx,bad,Rome,Bob\ny,ann@example.com,Oslo,Ann\nz,too,many,cells,here\n',
		],
		[
			'people.ndjson',
			'{"Note":"x","email":"bad","city":"Rome","name":"Bob"}\n{"email":"ann@example.com","name":"Ann"}\n{"Note":"z","email":"too","city":"many","name":"cells,here"}\n',
		],
	])('leaves out columns of the rejects file of %s if --map left them out before', async (name, text) => {
		const path = await project.file(name, text);
		const first = await project.run([...words(path, '--map', 'note=-', '--map', 'city=-'), '-o', 'json']);
		expect({ code: first.code, said: said(first) }).toEqual({
			code: 9,
			said: [
				{ note: 'left out: Note, city' },
				{ hint: `2 rejected rows are in ${path}.rejects.csv; correct them and import that file` },
			],
		});
		const rejects = `${path}.rejects.csv`;
		const written = await readFile(rejects, 'utf8');
		const lines = written.split('\n');
		expect(lines[0]).toBe('email,name,_line,_code,_error,Note,city');
		expect(lines[1]).toMatch(/^bad,Bob,.*,x,Rome$/);
		expect(lines[2]).toMatch(/^too,"cells,here",.*,z,many$/);
		expect((await project.run(words(rejects))).code).toBe(9);
		expect(await readFile(`${path}.rejects-2.csv`, 'utf8')).toMatch(
			/^email,name,_line,_code,_error,Note,city\nbad,Bob,2,invalid,[^,]*,x,Rome\n/,
		);
		const mended = written
			.replace('bad,', 'bob@example.com,')
			.replace('too,', 'carl@example.com,')
			.replace(',too_many_cells,', ',,');
		const again = await project.run(words(await project.file('mended.csv', mended), '-o', 'json'));
		expect({ code: again.code, said: said(again) }).toEqual({
			code: 0,
			said: [{ note: 'left out: _line, _code, _error, Note, city' }],
		});
		expect(await people()).toMatchObject([
			{ email: 'ann@example.com', meta: {} },
			{ email: 'bob@example.com', name: 'Bob', meta: {} },
			{ email: 'carl@example.com', name: 'cells,here', meta: {} },
		]);
		const meant = await project.run(words(`${project.folder}/mended.csv`, '--map', 'city=city'));
		expect(meant.code).toBe(0);
		expect(await people()).toMatchObject([
			{},
			{ email: 'bob@example.com', meta: { city: 'Rome' } },
			{ email: 'carl@example.com', meta: { city: 'many' } },
		]);
	});

	it('suppresses addresses with a known disable_reason, and warns about other reasons', async () => {
		const path = await project.file(
			'left.csv',
			'email,disable_reason\na@x.org,complained\nb@x.org,moved\nc@x.org,on holiday\n',
		);
		const { code, stderr } = await project.run(words(path));
		expect({ code, stderr }).toEqual({
			code: 0,
			stderr: expect.stringContaining(
				'warning: 2 rows have a disable_reason other than UNSUBSCRIBED, HARDBOUNCED or COMPLAINED: the subscribers keep the reason',
			),
		});
		expect(await project.json(['suppressions', 'list'])).toMatchObject([
			{ email: 'a@x.org', reason: 'COMPLAINED', list_id: null, source: 'IMPORT' },
		]);
		const dry = await project.run([...words(path), '--dry-run', '-o', 'json']);
		expect(JSON.parse(dry.stdout)).toMatchObject({ unchanged: 3, updated: 0 });
	});

	it('rejects columns without a heading, unless --map "=-" leaves them out', async () => {
		const path = await project.file('people.csv', 'email;;name;\nann@example.com;x;Ann;y\n');
		for (const how of [[], ['--create-fields']]) {
			const { code, stderr } = await project.run(words(path, ...how));
			expect({ code, stderr }).toEqual({
				code: 2,
				stderr: expect.stringContaining('a column without a name: --map "=-" leaves it out'),
			});
		}
		const { code, stderr } = await project.run(words(path, '--map', '=-'));
		expect({ code, stderr }).toEqual({
			code: 0,
			stderr: 'left out: column 2 (no name), column 4 (no name)\n',
		});
		expect((await project.run(words(path, '--map', '=name'))).stderr).toContain('COLUMN=FIELD is needed');
	});

	it('writes rejected rows in UTF-8 with a byte order mark and the source’s delimiter', async () => {
		const cyrillic = Buffer.concat([
			Buffer.from('email;name\nbad;'),
			Buffer.from([0xc0, 0xed, 0xed, 0xe0]),
			Buffer.from('\n'),
		]);
		const path = await project.file('people.csv', cyrillic);
		expect(await project.json(words(path), { code: 9 })).toMatchObject({ rejected: 1 });
		const rejects = await readFile(`${path}.rejects.csv`, 'utf8');
		expect(rejects).toBe(
			'\uFEFFemail;name;_line;_code;_error\nbad;Анна;2;invalid;email: Enter a valid email address: it has no @\n',
		);
		const mended = await project.file('mended.csv', rejects.replace('bad', 'anna@example.com'));
		expect(await project.json(words(mended))).toEqual(counts({ read: 1, created: 1 }));
		expect(await people()).toMatchObject([{ email: 'anna@example.com', name: 'Анна' }]);
	});

	it.each([
		['on a database', {}],
		['on another service', { connect: stripped() }],
	])('counts the rows of a pipe as unchanged in a second import, %s', async (_where, options) => {
		const command = words('-', '--rejects', join(project.folder, 'rejects.csv'));
		const piped = { ...options, stdin: 'email,city\nann@example.com,Oslo\nbob@example.com,Rome\n' };
		expect(await project.json(command, piped)).toEqual(counts({ read: 2, created: 2 }));
		expect(await project.json(command, piped)).toEqual(counts({ read: 2, unchanged: 2 }));
		expect(await people()).toHaveLength(2);
	});

	it('prints all errors about columns and imports nothing', async () => {
		const path = await project.file('people.csv', 'mail,Town,Town,Fax\nann@example.com,Oslo,Oslo,1\n');
		const result = await project.run([...words(path), '-o', 'json']);
		expect({ code: result.code, stdout: result.stdout }).toEqual({ code: 2, stdout: '' });
		expect(errorOf(result)['details']).toEqual([
			'the column "Town" appears twice',
			'unknown column "Town"',
			'unknown column "Fax"',
		]);
		expect(errorOf(result)['hint']).toBe(
			'add --map Town=FIELD, --create-fields or --ignore-unknown; fields: city',
		);
		expect(await people()).toEqual([]);
	});

	it('maps columns to fields with --map, creates fields with --create-fields, and ignores columns with --ignore-unknown', async () => {
		const path = await project.file(
			'people.csv',
			'Contact,Town,First Name,Fax\nann@example.com,Oslo,Ann,1\n',
		);
		const map = ['--map', 'Contact=email', '--map', 'Town=city', '--map', 'Fax=-'];
		expect(await project.json(words(path, ...map, '--create-fields', '-n'))).toMatchObject({
			dry_run: true,
			read: 1,
			created: 1,
			columns: { Contact: 'email', Town: 'meta.city', 'First Name': 'meta.first_name' },
			create_fields: [{ variable: 'first_name', name: 'First Name' }],
		});
		expect([await people(), ((await project.json(['fields', 'list'])) as []).length]).toEqual([[], 1]);
		await project.json(words(path, ...map, '--create-fields'));
		expect(await people()).toMatchObject([{ meta: { city: 'Oslo', first_name: 'Ann' } }]);
		const other = await project.file('other.csv', 'email,Fax\nbob@example.com,1\n');
		expect((await project.run(words(other))).code).toBe(2);
		expect((await project.run(words(other, '--create-fields', '--ignore-unknown'))).code).toBe(2);
		expect(await project.json(words(other, '--ignore-unknown'))).toMatchObject({ created: 1 });
	});

	it('joins several columns into the name or a field, and shows the result in a dry run', async () => {
		const project = await makeProject();
		const { json, file } = project;
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const rows = [
			'Vorname;Nachname;E-Mail',
			' Ann ;Lee;ann@example.com',
			';Kurz;bob@example.com',
			';;c@example.com',
		];
		const path = await file('people.csv', `${rows.join('\n')}\n`);
		const words = ['subscribers', 'import', path, '-l', '1'];
		const joined = [...words, '--map', 'Vorname+Nachname=name'];
		expect(await json([...joined, '--dry-run'])).toMatchObject({
			columns: { 'E-Mail': 'email', 'Vorname + Nachname': 'name' },
			first_row: { 'E-Mail': 'ann@example.com', 'Vorname + Nachname': 'Ann Lee' },
			left_out: [],
		});
		expect(await json(joined)).toMatchObject({ read: 3, created: 3 });
		const people = await json(['subscribers', 'list', '-l', '1', '--sort', 'id']);
		expect(people).toMatchObject([{ name: 'Ann Lee' }, { name: 'Kurz' }, { name: '' }]);
	});

	it('suggests --rejects if the rejects file cannot be written', async () => {
		const { run, json, file, folder } = await makeProject();
		await json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		const path = await file('people.csv', 'email\nann@example.com\nnobody\n');
		const rejects = join(folder, 'none', 'bad.csv');
		expect(await run(['subscribers', 'import', path, '-l', '1', '--rejects', rejects])).toMatchObject({
			code: 2,
			stderr: expect.stringMatching(
				/error: the rejects file .* cannot be written: there is no folder \S+\/none\nhint: make the file and its folder writable, or choose another file with --rejects FILE\n$/,
			),
		});
	});

	it('never overwrites a rejects file, but adds a number to the name', async () => {
		const path = await project.file('people.csv', 'email\nbad\n');
		const mine = await project.file('people.csv.rejects.csv', 'mine');
		for (const number of [2, 3])
			expect(await project.run(words(path))).toMatchObject({
				code: 9,
				stderr: `hint: 1 rejected row is in ${path}.rejects-${number}.csv; correct it and import that file\n`,
			});
		const { code, stderr } = await project.run(words(path, '--rejects', mine));
		expect({ code, stderr }).toEqual({
			code: 2,
			stderr:
				`error: the rejects file ${mine} exists already\n` +
				`hint: move it away, or name another with --rejects ${path}.rejects-4.csv\n`,
		});
		expect(await readFile(mine, 'utf8')).toBe('mine');
		expect(await readFile(`${path}.rejects-3.csv`, 'utf8')).toContain('bad,2,invalid');
		const other = `${project.folder}/other.csv`;
		expect((await project.run(words(path, '--rejects', other))).code).toBe(9);
		expect(await readFile(other, 'utf8')).toContain('bad,2,invalid');
	});

	it('treats a named pipe or a device like standard input', async () => {
		const pipe = join(project.folder, 'pipe');
		runProgram('mkfifo', [pipe]);
		expect(await project.run(words(pipe))).toMatchObject({
			code: 2,
			stderr: `error: an import from ${pipe} needs --rejects FILE\n`,
		});
		expect((await project.run(words(pipe, '--resume'))).stderr).toContain(
			`--resume needs a file, or --job NAME: ${pipe} can be read only once`,
		);
		const written = writeFile(pipe, 'email\nann@example.com\nbad\n');
		expect(await project.json(words(pipe, '--rejects', join(project.folder, 'r.csv')), { code: 9 })).toEqual(
			counts({ read: 2, created: 1, rejected: 1 }),
		);
		await written;
		expect(await project.run(words('/dev/null'))).toMatchObject({
			code: 2,
			stderr: 'error: an import from /dev/null needs --rejects FILE\n',
		});
	});

	it('starts from the beginning with --resume if the earlier run finished', async () => {
		const path = await project.file('people.csv', 'email,is_active\nann@example.com,1\n');
		await project.json(words(path));
		expect(await project.json(words(path, '--resume'))).toEqual(counts({ read: 1, unchanged: 1 }));
	});
});

describe('a column heading in an import', () => {
	const mail = ['send', '--from', 'news@example.com', '--subject', 'S', '--text', 'T', '-n'];

	it.each<[what: string, name: string, shown: string]>([
		['terminal escapes', '\u001b[31mred\u001b]0;x\u0007', '\\x1b[31mred\\x1b]0;x\\x07'],
		['the name of an object’s own property', '__proto__', '__proto__'],
		['letters that reverse the direction of text', '\u202egnp.exe', '\\u202egnp.exe'],
		['a name as long as a page', 'n'.repeat(200_000), `${'n'.repeat(80)}…`],
	])('is printed escaped and shortened, and is never stored: %s', async (_, name, shown) => {
		const project = await makeProject({ smtp: 9 });
		await project.json(['lists', 'create', '--name', 'L', '--email-reason', 'r']);
		const file = await project.file('people.csv', `email,"${name}"\nann@example.com,x\n`);
		const words = ['subscribers', 'import', file, '-l', '1'];
		for (const more of [[], ['--create-fields']]) {
			const refused = await project.run([...words, ...more]);
			expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/^[\n\x20-\x7e…]{0,800}$/)]);
		}
		expect(await project.run([...words, '--ignore-unknown'])).toMatchObject({
			code: 0,
			stderr: `left out: ${shown}\n`,
		});
		expect(await project.json(['fields', 'list'])).toEqual([]);
		const sent = await project.run([...mail, '--csv', file]);
		expect([sent.code, sent.stderr]).toEqual([0, expect.stringContaining(`left out: ${shown}\n`)]);
	});
});
