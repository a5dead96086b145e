import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import iconv from 'iconv-lite';
import { describe, expect, it } from 'vitest';
import { openTable } from '../../src/tables/read-table.js';
import { all, cellsOf, faultsOf, readTable } from './tables.js';

const plain = '{"email":"a@x","name":"Ann"}\n{"email":"b@x","name":"Bob"}\n';

describe('lines of JSON', () => {
	const rows = [
		['a@x', 'Ann'],
		['b@x', 'Bob'],
	];
	const bom = Buffer.from([0xef, 0xbb, 0xbf]);
	const accepted: [name: string, bytes: Buffer | string][] = [
		['plain', plain],
		['with BOM', Buffer.concat([bom, Buffer.from(plain)])],
		['UTF-16', iconv.encode(plain, 'utf-16le', { addBOM: true })],
		['CRLF', plain.replaceAll('\n', '\r\n')],
		['CR', plain.replaceAll('\n', '\r')],
		['blank lines, no line end', `\n\n${plain.replace('\n', '\n \r\n\n').trimEnd()}`],
		['a BOM inside, from files that were joined', plain.replace('\n', '\n\ufeff\r\n\ufeff')],
		['spaces between tokens', plain.replaceAll(':', ' : ').replaceAll('{', '  { ')],
		['another order of keys', '{"email":"a@x","name":"Ann"}\n{"name":"Bob","email":"b@x"}\n'],
	];
	it.each(accepted)('are read: %s', async (_, bytes) => {
		for (const chunk of [1, 7, 65_536]) {
			const table = await readTable(bytes, { chunk });
			expect(table).toMatchObject({ header: ['email', 'name'], delimiter: '' });
			expect(table.rows.map(({ cells }) => cells)).toEqual(rows);
		}
	});

	it('give a column for each key of the first lines; missing and null values give empty cells', async () => {
		const table = await readTable('{"email":"a@x"}\n{"email":"b@x","name":null,"is_active":false}\n');
		expect(table.header).toEqual(['email', 'name', 'is_active']);
		expect(cellsOf(table.rows)).toEqual([
			['a@x', '', ''],
			['b@x', '', 'false'],
		]);
	});

	it('have a column for each key of meta, and keep other nested values as JSON', async () => {
		const table = await readTable(
			[
				'{"email":"a@x","meta":{"city":"Oslo","age":7,"vip":true},"tags":["x"]}',
				'{"email":"b@x","meta":"{\\"city\\":\\"Rome\\"}"}',
				'{"email":"c@x","meta":{}}',
			].join('\n'),
		);
		expect(table.header).toEqual(['email', 'meta.city', 'meta.age', 'meta.vip', 'meta', 'tags']);
		expect(cellsOf(table.rows)).toEqual([
			['a@x', 'Oslo', '', '', '{"age":7,"vip":true}', '["x"]'],
			['b@x', 'Rome', '', '', '', ''],
			['c@x', '', '', '', '', ''],
		]);
	});

	it('may have keys such as __proto__', async () => {
		const table = await readTable('{"email":"a@x","__proto__":"p","constructor":"c"}\n');
		expect(table.header).toEqual(['email', '__proto__', 'constructor']);
		expect(cellsOf(table.rows)).toEqual([['a@x', 'p', 'c']]);
	});

	it('that are invalid are reported with their number, and the next ones are read', async () => {
		const long = 'x'.repeat(10_000_000);
		const { rows } = await readTable(
			[
				'{"email":"a@x","n":1}',
				'{"email":',
				'',
				'[1]',
				'"text"',
				'{"email":"b@x","n":"a\\u0000b"}',
				'{"email":"b@x","n":"\\ud800"}',
				'{"email":"b@x","n":12345678901234567890}',
				`{"email":"b@x","n":"${long}"}`,
				`{"email":"b@x","n":"${'x'.repeat(1024 * 1024 + 1)}"}`,
				`{"email":"b@x","n":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
				'{"email":"z@x","n":2}',
			].join('\r\n'),
		);
		expect(faultsOf(rows)).toEqual([
			'2 bad_json',
			'4 bad_json',
			'5 bad_json',
			'6 nul',
			'7 encoding',
			'8 bad_json',
			'9 row_too_long',
			'10 cell_too_long',
			'11 bad_json',
		]);
		expect(cellsOf(rows)).toEqual([
			['a@x', '1'],
			['z@x', '2'],
		]);
		expect(rows.at(-1)).toMatchObject({ line: 12 });
	});

	it('keep every digit of their numbers, or are reported as invalid', async () => {
		const { rows } = await readTable(
			[
				'{"email":"a@x","n":5.0,"meta":{"v":5.0,"w":0.1}}',
				'{"email":"b@x","n":0.12345678901234567890}',
				'{"email":"c@x","meta":{"v":0.12345678901234567890}}',
				'{"email":"d@x","meta":"{\\"v\\":9007199254740993}"}',
				'{"email":"e@x","n":1000000000000000,"meta":{"v":1e21,"w":0.30000000000000004}}',
			].join('\n'),
		);
		expect(faultsOf(rows)).toEqual(['2 bad_json', '3 bad_json', '4 bad_json']);
		expect(cellsOf(rows)).toEqual([
			['a@x', '5.0', '', '', '{"v":5,"w":0.1}'],
			['e@x', '1000000000000000', '', '', '{"v":1e+21,"w":0.30000000000000004}'],
		]);
	});

	it('give rows that say which of their cells are JSON objects or arrays', async () => {
		const late = '{"email":"a@x","meta":{},"tags":[1]}\n'.repeat(8_000);
		const { header, rows } = await readTable(`${late}{"email":"b@x","meta":{"city":["Oslo"]}}\n`);
		expect(header).toEqual(['email', 'meta', 'tags']);
		expect([rows[0], rows.at(-1)]).toMatchObject([{ nested: [2] }, { line: 8_001, nested: [1] }]);
	});

	it('can have new keys in meta on a late line, and the new values keep their types', async () => {
		const many = '{"email":"a@example.com","meta":{}}\n'.repeat(8_000);
		const { header, rows } = await readTable(
			`${many}{"email":"b@x","meta":{"city":"Oslo","age":7,"note":""}}\n`,
		);
		expect(header).toEqual(['email', 'meta']);
		expect(rows.at(-1)).toMatchObject({ kind: 'row', cells: ['b@x', '{"age":7,"note":"","city":"Oslo"}'] });
	});

	it('can be an array with one object per line', async () => {
		const { rows } = await readTable('[\n{"email":"a@x","name":"A"},\n{"email":"b@x","name":"B"}\n]\n');
		expect(rows.map((row) => [row.kind, row.line, row.cells])).toEqual([
			['row', 2, ['a@x', 'A']],
			['row', 3, ['b@x', 'B']],
		]);
	});

	it('are rejected if they have a key that is not a column', async () => {
		const many = '{"email":"a@example.com","name":"Ann"}\n'.repeat(8_000);
		const { rows } = await readTable(`${many}{"email":"b@x","city":"Oslo"}\n{"email":"c@x"}\n`);
		expect(faultsOf(rows)).toEqual(['8001 unknown_key']);
		expect(rows[8_000]).toMatchObject({ error: 'a key that no earlier line has: "city"' });
		expect(rows).toHaveLength(8_002);
	});

	it('give the same rows, whatever the size of the chunks', async () => {
		const line = fc.constantFrom(
			'{"a":"é😀"}',
			'{"b":1}',
			'{',
			'',
			' ',
			'{"a":"\\n"}',
			'[]',
			'{"a":"x\u2028"}',
		);
		const end = fc.constantFrom('\n', '\r\n', '\r');
		await fc.assert(
			fc.asyncProperty(
				fc.array(fc.tuple(line, end), { maxLength: 20 }),
				fc.integer({ min: 1, max: 9 }),
				async (lines, chunk) => {
					const text = `{"a":"1"}\n${lines.flat().join('')}`;
					const whole = await readTable(text);
					expect((await readTable(text, { chunk })).rows).toEqual(whole.rows);
					expect(new Set(whole.rows.map((row) => row.line)).size).toBe(whole.rows.length);
				},
			),
			{ numRuns: 200 },
		);
	});
});

describe('the format NDJSON', () => {
	it('is detected by the name of the file, but not by a brace alone', async () => {
		const folder = await mkdtemp(join(tmpdir(), 'mailctl-ndjson-'));
		const path = join(folder, 'people.JSONL');
		await writeFile(path, `oops\n${plain}`);
		const table = await openTable(path);
		expect(table).toMatchObject({ format: 'ndjson', header: ['email', 'name'] });
		expect(faultsOf(await all(table.rows))).toEqual(['1 bad_json']);
		expect(await readTable('{email},name\na@x,Ann\n')).toMatchObject({ header: ['{email}', 'name'] });
	});

	it.each(['[]\n', '[ ]', '[\n]\n', '\uFEFF[]'])('accepts an empty array: %j', async (text) => {
		expect(await readTable(text)).toMatchObject({ header: ['email'], rows: [], delimiter: '' });
	});

	it.each([
		['an array', '[\n  {\n    "email": "a@x"\n  }\n]\n', 'json', 'is one JSON array'],
		['an object over several lines', '{\n  "email": "a@x"\n}\n', 'bad_header', '(line 1): no JSON object'],
		['objects without keys', '{}\n{}\n', 'empty', 'is empty'],
	])('rejects %s', async (_, text, code, words) => {
		await expect(readTable(text)).rejects.toMatchObject({
			code,
			name: 'TableError',
			message: expect.stringContaining(words),
		});
	});
});
