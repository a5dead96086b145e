import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import iconv from 'iconv-lite';
import { describe, expect, it } from 'vitest';
import type { TableError } from '../../src/tables/finding.js';
import { openTable } from '../../src/tables/read-table.js';
import { sniff } from '../../src/tables/sniff.js';
import { formatCsvRow } from '../../src/tables/write-csv.js';
import { startCpuClock } from '../support/cpu-clock.js';
import { cellsOf, faultsOf, readTable } from './tables.js';

const corpora = process.env['MAILCTL_CORPORA'] ?? '../shared/corpora';
const plain = [
	['a@example.com', 'Ann'],
	['b@example.com', 'Bob'],
];

describe('a file', () => {
	it.each([
		'utf-16le',
		'utf-16be',
	])('is read except for its last row if the last character is incomplete: %s', async (name) => {
		const whole = iconv.encode('email,name\na@example.com,Ann\nb@example.com,Bo', name, { addBOM: true });
		for (const chunk of [1, 65_536]) {
			const { rows } = await readTable(Buffer.concat([whole, Buffer.from([0x62])]), { chunk });
			expect(faultsOf(rows)).toEqual(['3 encoding']);
		}
	});

	const bom = Buffer.from([0xef, 0xbb, 0xbf]);
	const text = 'email,name\na@example.com,Ann\nb@example.com,Bob\n';
	const accepted: [name: string, bytes: Buffer | string][] = [
		['UTF-8', text],
		['UTF-8 with BOM', Buffer.concat([bom, Buffer.from(text)])],
		['UTF-16 BE with BOM', iconv.encode(text, 'utf-16be', { addBOM: true })],
		['UTF-16 LE without BOM', iconv.encode(text, 'utf-16le')],
		['semicolons', text.replaceAll(',', ';')],
		['tabs', text.replaceAll(',', '\t')],
		['pipes', text.replaceAll(',', '|')],
		['CRLF', text.replaceAll('\n', '\r\n')],
		['CR', text.replaceAll('\n', '\r')],
		['mixed line ends', 'email,name\r\na@example.com,Ann\nb@example.com,Bob\r'],
		['blank lines', '\n\nemail,name\n\n\na@example.com,Ann\r\n\r\nb@example.com,Bob\n\n'],
		['no line end at the end', text.trimEnd()],
		['a BOM inside, from files that were joined', text.replace('b@', '\ufeffb@')],
		['lines of spaces', 'email,name\n  \na@example.com,Ann\n\ufeff\r\n \t\nb@example.com,Bob\n  '],
		['spaces around quotes', text.replaceAll(/[^,\n]+/g, ' "$&"\t ')],
		['quotes around every cell', text.replaceAll(/[^,\n]+/g, '"$&"')],
	];
	it.each(accepted)('is read: %s', async (_, bytes) => {
		for (const chunk of [1, 7, 65_536]) {
			const table = await readTable(bytes, { chunk });
			expect(table.header).toEqual(['email', 'name']);
			expect(cellsOf(table.rows)).toEqual(plain);
			expect(table.rows).toHaveLength(2);
		}
	});

	it.each([
		['a Windows line end', 'sep=;\r\nemail;name\r\na@x;Doe, John\r\n', ';'],
		['a tab', 'sep=\t\nemail\tname\na@x\tDoe, John\n', '\t'],
		['a delimiter that is not detected', 'sep=:\nemail:name\na@x:Doe, John\n', ':'],
		['quotes, and padding delimiters', '"sep=;";\nemail;name\na@x;Doe, John\n', ';'],
		['UTF-16', iconv.encode('sep=;\nemail;name\na@x;Doe, John\n', 'utf-16le', { addBOM: true }), ';'],
	])('can give its delimiter in a first line with sep=: %s', async (_, text, delimiter) => {
		for (const chunk of [1, 65_536]) {
			const table = await readTable(text, { chunk });
			expect(table).toMatchObject({ delimiter, header: ['email', 'name'] });
			expect(table.rows).toEqual([{ kind: 'row', line: 3, cells: ['a@x', 'Doe, John'] }]);
		}
	});

	it('with a few broken bytes is still read as UTF-8', async () => {
		const bytes = Buffer.concat([
			Buffer.from('email,name\na@x,Zoë\nb@x,Jürgen\nc@x,Åse Ødegård\n'),
			Buffer.from('d@x,Andr\xe9\n', 'latin1'),
		]);
		const { encoding, rows } = await readTable(bytes);
		expect({ encoding, faults: faultsOf(rows) }).toEqual({ encoding: 'utf-8', faults: ['5 encoding'] });
		expect(cellsOf(rows)[1]).toEqual(['b@x', 'Jürgen']);
		const half = Buffer.from('email,name\nx@x,J\xc3\xb6rg\ny@x,J\xf6rg\n', 'latin1');
		const read = await readTable(half);
		expect({ encoding: read.encoding, faults: faultsOf(read.rows) }).toEqual({
			encoding: 'utf-8',
			faults: ['3 encoding'],
		});
	});

	describe('that begins with a UTF-8 byte order mark but is not UTF-8', () => {
		const french = iconv.encode('email;prénom\na@example.com;Zoë François\n', 'windows-1252');
		const nearly = Buffer.from('email,name\nx@example.com,J\xc3\xb6rg\ny@example.com,J\xf6rg\n', 'latin1');
		const outcome = (bytes: Buffer, options = {}) =>
			readTable(bytes, options).then(
				({ encoding, header, rows }) => ({ encoding, header, rows }),
				({ code, details, hint }: TableError) => ({ code, details, hint }),
			);

		it.each([
			['a code page', french, {}],
			['a code page with --encoding', french, { encoding: 'windows-1252' }],
			['Cyrillic', iconv.encode('email;имя\na@example.com;Анна Ёлкина\n', 'windows-1251'), {}],
			['partly invalid UTF-8 with --encoding', nearly, { encoding: 'utf-8' }],
			['NDJSON', iconv.encode('{"email":"a@x","name":"Zoë François"}\n', 'windows-1252'), {}],
		])('gives the same result as without the mark: %s', async (_, bytes, options) => {
			expect(await outcome(Buffer.concat([bom, bytes]), options)).toEqual(await outcome(bytes, options));
		});
	});

	it('is read except for a row with an invalid character', async () => {
		const bytes = Buffer.concat([
			iconv.encode('email;имя\na@x;Анна\nb@x;', 'windows-1251'),
			Buffer.from([0xc0, 0x98]),
			iconv.encode('\nc@x;Вера\n', 'windows-1251'),
		]);
		expect(faultsOf((await readTable(bytes, { encoding: 'cp1251' })).rows)).toEqual(['3 encoding']);
	});

	it('is accepted as UTF-8 if its rows are full of NULs, but its header has none', async () => {
		const table = await readTable('h,i\n\0"\0"\0"\0"\n', { delimiter: ',', encoding: 'utf8' });
		expect({ header: table.header, faults: faultsOf(table.rows) }).toEqual({
			header: ['h', 'i'],
			faults: ['2 stray_quote'],
		});
	});

	it('may have other delimiters and line ends in quotes', async () => {
		const table = await readTable(
			'email;name\na@example.com;"Doe, John, Jr.\nSecond; line"\nb@example.com;"x, y, z"\n',
		);
		expect(table.delimiter).toBe(';');
		expect(table.rows).toEqual([
			{ kind: 'row', line: 2, cells: ['a@example.com', 'Doe, John, Jr.\nSecond; line'] },
			{ kind: 'row', line: 4, cells: ['b@example.com', 'x, y, z'] },
		]);
	});

	it('may have a header and rows that end with delimiters', async () => {
		const table = await readTable('email;name;;\na@x;Ann;;\nb@x;Bob\nc@x;Cid; \nd@x\ne@x;Eve;;;\n');
		expect(table.header).toEqual(['email', 'name']);
		expect(cellsOf(table.rows)).toEqual([
			['a@x', 'Ann'],
			['b@x', 'Bob'],
			['c@x', 'Cid'],
		]);
		expect(faultsOf(table.rows)).toEqual(['5 too_few_cells', '6 too_many_cells']);
	});

	it('keeps a last column without a name only if an early row fills it', async () => {
		const table = await readTable('email,name,\na@x,Ann,\nb@x,Bob,note\n');
		expect(table.header).toEqual(['email', 'name', '']);
		const late = await readTable(`email,name,\n${'a@x,Ann,\n'.repeat(40_000)}b@x,Bob,note\n`);
		expect(late.header).toEqual(['email', 'name']);
		expect(faultsOf(late.rows)).toEqual(['40002 too_many_cells']);
	});

	it.each([
		['line ends', '\n'],
		['brackets and braces', '[\n{'],
		['blanks', ' '],
		['an unfinished object', '{"a":1} ,'],
	])('is examined quickly if it begins with 256 KiB of %s', (_, piece) => {
		const whole = Buffer.from(piece.repeat(256 * 1024).slice(0, 256 * 1024));
		for (const prefix of [whole, Buffer.concat([Buffer.from('['), whole])]) {
			const look = () => {
				const cpuMs = startCpuClock();
				sniff(prefix, { encoding: 'auto', delimiter: 'auto', format: 'auto', isWhole: true });
				return cpuMs();
			};
			expect(Math.min(look(), look(), look())).toBeLessThan(1_000);
		}
	});
});

describe('rows with errors', () => {
	const ok = 'z@example.com,Zoe\n';
	it.each([
		[
			'a quote that is never closed',
			'email,name\na@example.com,"Ann\nb@example.com,Bob\n',
			['2 unclosed_quote'],
			1,
		],
		[
			'a quote that a later row closes',
			`email,name\na@x,"Ann\nb@x,Bob\nc@x,"Carl"\n${ok}`,
			['2 unclosed_quote'],
			3,
		],
		['text after a closing quote', `email,name\na@x,"Ann" B\n${ok}`, ['2 stray_quote'], 1],
		['text after a quote with spaces before it', `email,name\na@x,  "Ann"  B\n${ok}`, ['2 stray_quote'], 1],
		['a quote inside a cell', `email,name\na@x,5" pipe\n${ok}`, ['2 stray_quote'], 1],
		['too few cells', `email,name\na@x\n${ok}`, ['2 too_few_cells'], 1],
		['too many cells', `email,name\n\na@x,Doe,John\n${ok}`, ['3 too_many_cells'], 1],
		['NUL', `email,name\na@x,A\0nn\n${ok}${ok}${ok}`, ['2 nul'], 3],
		['a cell over 1 MiB', `email,name\na@x,${'x'.repeat(1024 * 1024 + 1)}\n${ok}`, ['2 cell_too_long'], 1],
		['a cell of 10 MB', `email,name\na@x,${'x'.repeat(10_000_000)}\n${ok}`, ['2 row_too_long'], 1],
	])('are reported: %s', async (_, text, faults, good) => {
		for (const lineEnd of ['\n', '\r\n']) {
			const { rows } = await readTable(text.replaceAll('\n', lineEnd), { delimiter: ',' });
			expect(faultsOf(rows)).toEqual(faults);
			expect(cellsOf(rows)).toHaveLength(good);
		}
	});

	it('are the same, whatever the size of the chunks', async () => {
		const text =
			'email,name\r\na@x,"A\r\nB"\r\nb@x,"Bob\r\nc@x,5" x\r\n \r\nd@x\r\ne@x,é😀\r\n\ufefff@x,  """q"""  ';
		const whole = await readTable(text, { delimiter: ',' });
		expect(faultsOf(whole.rows)).toEqual(['4 unclosed_quote', '5 stray_quote', '7 too_few_cells']);
		for (let chunk = 1; chunk < 40; chunk += 1) {
			expect((await readTable(text, { delimiter: ',', chunk })).rows).toEqual(whole.rows);
		}
	});
});

describe('a file that is not a table', () => {
	const zip = (name: string) =>
		Buffer.concat([Buffer.from('PK\x03\x04'), Buffer.alloc(26), Buffer.from(name)]);
	const page =
		'<html xmlns:o="urn:schemas-microsoft-com:office:office">\n<table><tr><td>email</td></tr></table>';
	it.each([
		['a zip', zip('people.csv'), 'binary', 'zip archive'],
		['an xlsx', zip('[Content_Types].xml'), 'binary', 'Excel workbook'],
		['a gz', gzipSync('email\na@x\n'), 'binary', 'gzip-compressed'],
		['an xls', Buffer.from('d0cf11e0a1b11ae10000', 'hex'), 'binary', 'old Office file'],
		['an HTML page named .xls', Buffer.from(page), 'no_table', 'is an HTML page, which some programs write'],
		['XML', Buffer.from('<?xml version="1.0"?><people/>'), 'no_table', 'is an XML document'],
		['a PDF', Buffer.from('%PDF-1.7\n'), 'binary', 'not a text file with rows: save the table as CSV'],
		['a database', Buffer.from('SQLite format 3\0'), 'binary', 'not a text file with rows'],
		['UTF-32', iconv.encode('email\na@x\n', 'utf-32le', { addBOM: true }), 'binary', 'binary file'],
		[
			'noise',
			Buffer.from(Array.from({ length: 999 }, (_, index) => (index * 7919) % 251)),
			'binary',
			'binary file',
		],
		['nothing', Buffer.alloc(0), 'empty', 'is empty'],
		['only a BOM', Buffer.from([0xef, 0xbb, 0xbf]), 'empty', 'is empty'],
		['blank lines', Buffer.from('\n\r\n\n'), 'empty', 'is empty'],
	])('is rejected: %s', async (_, bytes, code, words) => {
		await expect(readTable(bytes)).rejects.toMatchObject({
			code,
			name: 'TableError',
			message: expect.stringContaining(words),
		});
	});

	it('is rejected if it is missing, unreadable or a directory, or if its parent is a file', async () => {
		const folder = await mkdtemp(join(tmpdir(), 'mailctl-table-'));
		const file = join(folder, 'people.csv');
		await writeFile(file, 'email\na@x\n');
		await expect(openTable(join(folder, 'no.csv'))).rejects.toMatchObject({
			code: 'no_such_file',
			name: 'TableError',
		});
		await expect(openTable(join(file, 'x.csv'))).rejects.toMatchObject({ code: 'no_such_file' });
		await expect(openTable(folder)).rejects.toMatchObject({ code: 'directory' });
		if (process.getuid?.() === 0) return;
		await chmod(file, 0o000);
		await expect(openTable(file)).rejects.toMatchObject({ code: 'unreadable' });
	});

	it('is rejected if a quote of its header is never closed', async () => {
		await expect(readTable('email,"name\na@x,A\n')).rejects.toMatchObject({
			code: 'bad_header',
			message: expect.stringContaining('line 1'),
		});
	});
});

describe('reading a table', () => {
	it('returns the cells that were written', async () => {
		const cell = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => text.replaceAll('\0', ''));
		const hostile = fc.constantFrom('"', '""', '\r\n', '\r', ',', ';', '\uFEFF', ' ', '', "'", '\\', '\\"');
		const any = fc.oneof(
			cell,
			hostile,
			fc.tuple(hostile, cell, hostile).map((parts) => parts.join('')),
		);
		await fc.assert(
			fc.asyncProperty(
				fc
					.integer({ min: 1, max: 5 })
					.chain((width) => fc.array(fc.array(any, { minLength: width, maxLength: width }))),
				fc.integer({ min: 1, max: 100 }),
				async (rows, chunk) => {
					const header = (rows[0] ?? ['a']).map((_, index) => `c${index}`);
					const text = [header, ...rows].map((row) => formatCsvRow(row)).join('');
					const table = await readTable(text, { delimiter: ',', encoding: 'utf8', chunk });
					expect(table.rows.map(({ cells }) => cells)).toEqual(rows);
					expect(faultsOf(table.rows)).toEqual([]);
				},
			),
			{ numRuns: 200 },
		);
	});

	it('gives the same rows with increasing line numbers, whatever the size of the chunks', async () => {
		const piece = fc.constantFrom('"', ',', '\n', '\r\n', 'a', '""', 'é', '\0', ' ');
		await fc.assert(
			fc.asyncProperty(
				fc.array(piece, { maxLength: 60 }),
				fc.integer({ min: 1, max: 20 }),
				async (pieces, chunk) => {
					const text = `h,i\n${pieces.join('')}`;
					const options = { delimiter: ',', encoding: 'utf8' };
					const whole = await readTable(text, options);
					expect((await readTable(text, { ...options, chunk })).rows).toEqual(whole.rows);
					const lines = whole.rows.map(({ line }) => line);
					expect(lines).toEqual([...new Set(lines)].sort((a, b) => a - b));
				},
			),
			{ numRuns: 300 },
		);
	});

	it('gives the rows that the corpus expects', async ({ skip }) => {
		const folder = join(corpora, 'csv');
		if (!existsSync(folder)) return skip(`no corpora at ${corpora}`);
		const names = readdirSync(folder).filter((name) => name.endsWith('.csv'));
		expect(names.length).toBeGreaterThan(5);
		for (const name of names) {
			const meant: Record<string, string>[] = JSON.parse(
				readFileSync(join(folder, name.replace('.csv', '.json')), 'utf8'),
			);
			const text = readFileSync(join(folder, name), 'utf8');
			const table = await readTable(name.includes('crlf') ? text.replaceAll(/\r?\n/g, '\r\n') : text);
			const read = cellsOf(table.rows).map((cells) => {
				return Object.fromEntries(table.header.map((column, index) => [column, cells[index]]));
			});
			expect({ name, rows: read }).toEqual({ name, rows: meant });
		}
	});
});

describe('a stream of rows', () => {
	it('ends with the reason of its signal, even if the source hangs', async () => {
		const aborter = new AbortController();
		async function* hangs(): AsyncGenerator<Uint8Array> {
			yield Buffer.from(`email\n${'a@example.com\n'.repeat(40_000)}`);
			await new Promise(() => {});
		}
		const table = await openTable({ name: '-', stream: hangs() }, { signal: aborter.signal });
		const reason = new Error('enough');
		const read = async () => {
			let rows = 0;
			for await (const _ of table.rows) if (++rows === 30_000) aborter.abort(reason);
		};
		await expect(read()).rejects.toBe(reason);
	});

	it('reads only as much of the source as it needs', async () => {
		let given = 0;
		async function* endless(): AsyncGenerator<Uint8Array> {
			yield Buffer.from('email,name\n');
			for (;;) {
				given += 1;
				yield Buffer.from('a@example.com,Ann\n'.repeat(1000));
			}
		}
		const table = await openTable({ name: '-', stream: endless() });
		const before = given;
		const rows = table.rows[Symbol.asyncIterator]();
		for (let row = 0; row < 10; row += 1) await rows.next();
		expect(given - before).toBeLessThan(10);
		await table.close();
	});
});
