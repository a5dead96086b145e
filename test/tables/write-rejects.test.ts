import { existsSync } from 'node:fs';
import { appendFile, mkdtemp, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { mapHeader } from '../../src/tables/map-columns.js';
import { openTable } from '../../src/tables/read-table.js';
import { openRejects } from '../../src/tables/write-rejects.js';
import { all, cellsOf } from './tables.js';

const header = ['email', 'name'];
let path: string;

beforeEach(async () => {
	path = join(await mkdtemp(join(tmpdir(), 'mailctl-rejects-')), 'people.csv.rejects.csv');
});

function reject(line: number, cells: readonly string[] = ['a@', 'Ann']) {
	return { line, code: 'invalid', error: 'Enter a valid email address.', cells };
}

describe('a rejects file', () => {
	it('is created with the first reject, readable only by its owner', async () => {
		const rejects = await openRejects({ path, header });
		await rejects.write([]);
		expect(existsSync(path)).toBe(false);
		await rejects.write([reject(3)]);
		expect(await readFile(path, 'utf8')).toBe(
			'email,name,_line,_code,_error\na@,Ann,3,invalid,Enter a valid email address.\n',
		);
		expect((await stat(path)).mode & 0o777).toBe(0o600);
		expect(rejects.written).toBe(1);
		await rejects.close();
	});

	it('never replaces a file, even one that appears before the first reject is written', async () => {
		const first = await openRejects({ path, header });
		await writeFile(path, 'mine');
		await expect(openRejects({ path, header })).rejects.toMatchObject({
			code: 'file_exists',
			name: 'TableError',
		});
		await expect(first.write([reject(2)])).rejects.toMatchObject({ code: 'file_exists' });
		expect(await readFile(path, 'utf8')).toBe('mine');
	});

	it('has rows that are as wide as its header', async () => {
		const rejects = await openRejects({ path, header });
		await rejects.write([reject(2, ['a@x']), reject(3, ['a@x', 'Doe', ' John', 'x"y']), reject(4, [])]);
		await rejects.close();
		const table = await openTable(path);
		const rows = await all(table.rows);
		expect(cellsOf(rows).map((cells) => cells.slice(0, 3))).toEqual([
			['a@x', '', '2'],
			['a@x', 'Doe, John,x"y', '3'],
			['', '', '4'],
		]);
	});

	it('can be imported, and the rejects file of that import has no duplicate columns', async () => {
		const rejects = await openRejects({ path, header });
		await rejects.write([reject(7)]);
		await rejects.close();
		const table = await openTable(path);
		expect(mapHeader(table.header, { fields: [] })).toMatchObject({
			kind: 'mapped',
			mapping: { columns: [{ target: 'email' }, { target: 'name' }] },
		});
		const rows = await all(table.rows);
		const again = await openRejects({ path: `${path}.2`, header: table.header });
		await again.write(rows.map((row) => reject(row.line, row.cells)));
		await again.close();
		expect(await readFile(`${path}.2`, 'utf8')).toBe(
			'email,name,_line,_code,_error\na@,Ann,2,invalid,Enter a valid email address.\n',
		);
	});
});

describe('a rejects file in the source’s format', () => {
	it.each([';', '\t', '|'])('has delimiter %j and a BOM, and can be imported', async (delimiter) => {
		const cells = [`a${delimiter}b`, 'Zoë'];
		const rejects = await openRejects({ path, header, delimiter, isMarked: true });
		await rejects.write([reject(2, cells), reject(3, [...cells, 'more'])]);
		await rejects.close();
		const text = await readFile(path, 'utf8');
		expect(text.split('\n')[0]).toBe(
			`\uFEFF${['email', 'name', '_line', '_code', '_error'].join(delimiter)}`,
		);
		const table = await openTable(path);
		expect(table).toMatchObject({ delimiter, isMarked: true, encoding: 'utf-8' });
		expect(cellsOf(await all(table.rows)).map((row) => row.slice(0, 3))).toEqual([
			[...cells, '2'],
			[cells[0], `Zoë${delimiter}more`, '3'],
		]);
	});
});

it('an existing rejects file is not changed', async () => {
	await writeFile(path, 'mine');
	await expect(openRejects({ path, header })).rejects.toMatchObject({ code: 'file_exists' });
	expect(await readFile(path, 'utf8')).toBe('mine');
});

describe('a continued rejects file', () => {
	async function firstRun(): Promise<string> {
		const rejects = await openRejects({ path, header });
		await rejects.write([reject(3), reject(5, ['b@', 'a "quoted"\nname'])]);
		await rejects.close();
		return readFile(path, 'utf8');
	}

	it('contains no row twice', async () => {
		const before = await firstRun();
		const rejects = await openRejects({ path, header, resume: true });
		await rejects.write([reject(3), reject(5)]);
		await rejects.write([reject(9)]);
		await rejects.close();
		expect(await readFile(path, 'utf8')).toBe(`${before}a@,Ann,9,invalid,Enter a valid email address.\n`);
	});

	it('is repaired after a crash at any position', async () => {
		const whole = await firstRun();
		const size = Buffer.byteLength(whole);
		for (let cut = 0; cut < size; cut += 1) {
			await writeFile(path, whole);
			await truncate(path, cut);
			const rejects = await openRejects({ path, header, resume: true });
			await rejects.write([reject(3), reject(5, ['b@', 'a "quoted"\nname'])]);
			await rejects.close();
			expect(await readFile(path, 'utf8')).toBe(whole);
		}
	});

	it.each([
		['a NUL', 'a\0b'],
		['a cell that is too long', `long${'x'.repeat(1024 * 1024)}`],
		['a cell of quotes, line ends and delimiters', '"a",\r\n""b'],
	])('is repaired after a crash if an earlier row has %s', async (_, cell) => {
		const rows = [reject(2, ['x@', cell]), ...Array.from({ length: 100 }, (_, n) => reject(n + 3))];
		const first = await openRejects({ path, header });
		await first.write(rows);
		await first.close();
		const whole = await readFile(path);
		await truncate(path, whole.length - 5);
		const rejects = await openRejects({ path, header, resume: true });
		await rejects.write([reject(102)]);
		await rejects.close();
		expect((await readFile(path)).equals(whole)).toBe(true);
	});

	it('is rejected if its last row has no line number', async () => {
		await firstRun();
		await appendFile(path, 'mine,without,a,line\n');
		const before = await readFile(path, 'utf8');
		await expect(openRejects({ path, header, resume: true })).rejects.toMatchObject({ code: 'file_exists' });
		expect(await readFile(path, 'utf8')).toBe(before);
	});
});
