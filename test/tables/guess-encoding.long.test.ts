/** Tables in old code pages are read correctly and reported, or rejected with candidates, but never misread. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import iconv from 'iconv-lite';
import { describe, expect, it } from 'vitest';
import type { TableError } from '../../src/tables/finding.js';
import { openTable } from '../../src/tables/read-table.js';
import { samples, tableOf } from './legacy-samples.js';
import { readTable } from './tables.js';

const folder = await mkdtemp(join(tmpdir(), 'mailctl-encoding-'));

/** Returns `right`, `wrong`, or `unsure` if the command ends with 2. */
async function readingOf(text: string, encoding: string): Promise<string> {
	const path = join(folder, 'people.csv');
	await writeFile(path, iconv.encode(text, encoding));
	try {
		const table = await openTable(path);
		const rows = [table.header];
		for await (const { cells } of table.rows) rows.push(cells);
		const told = table.isGuessed ? 'right' : 'silent';
		const delimiter = text.includes(';') ? ';' : ',';
		return rows.map((cells) => cells.join(delimiter)).join('\r\n') === text.trimEnd() ? told : 'wrong';
	} catch (error) {
		return (error as TableError).code === 'unsure_encoding' ? 'unsure' : String(error);
	}
}

const pairs = samples.flatMap((sample) => sample.encodings.map((encoding) => ({ ...sample, encoding })));

describe.each(pairs)('$language in $encoding', (pair) => {
	const { encoding } = pair;

	it('is read correctly, whether all or few rows have non-ASCII text', async () => {
		for (const [rows, share] of [
			[1_000, 1],
			[2_000, 100],
			[10_000, 2000],
		] as const)
			expect([share, await readingOf(tableOf(pair, rows, share), encoding)]).toEqual([share, 'right']);
	});

	it('is read correctly with five rows, or rejected', async () => {
		expect(['right', 'unsure']).toContain(await readingOf(tableOf(pair, 5), encoding));
	});
});

it('most files with a single non-ASCII word are read, and less than 2 % of these readings are wrong', async () => {
	const count = { right: 0, wrong: 0, unsure: 0 };
	for (const pair of pairs) {
		const words = [...pair.names, ...pair.cities].filter((word) => /[^\x00-\x7f]/.test(word));
		for (const word of words) {
			const text = `email;name\r\na@example.com;${word}\r\n`;
			const reading = await readingOf(text, pair.encoding);
			expect(['right', 'wrong', 'unsure']).toContain(reading);
			count[reading as 'right' | 'wrong' | 'unsure'] += 1;
		}
	}
	expect(count.wrong).toBeLessThan((count.right + count.wrong) * 0.02);
	expect(count.right).toBeGreaterThan(count.unsure);
});

describe('half-width katakana', () => {
	const names = ['ﾔﾏﾀﾞ ﾀﾛｳ', 'ｻﾄｳ ﾊﾅｺ', 'ｽｽﾞｷ ｲﾁﾛｳ', 'ﾜﾀﾅﾍﾞ ｼﾞｭﾝ', 'ｺﾊﾞﾔｼ ﾕｳｺ', 'ﾆｼﾑﾗ ｹﾝｼﾞ', 'ﾀｶﾊｼ ﾅｵﾐ', 'ｲﾄｳ ﾋﾛｼ'];

	it.each(names)('%s alone is read correctly, or Shift-JIS is proposed', async (name) => {
		const bytes = iconv.encode(`email,name\nx@example.com,${name}\n`, 'shift_jis');
		const told = await readTable(bytes).then(
			({ rows }) => rows[0]?.cells[1],
			({ details }: TableError) => details?.find((one) => String(one).startsWith('shift_jis: ')),
		);
		expect(told).toContain(name);
	});

	it('in a table is read correctly', async () => {
		const text = `email,name\n${names.map((name, row) => `p${row}@example.com,${name}`).join('\n')}\n`;
		const { encoding, rows } = await readTable(iconv.encode(text, 'shift_jis'));
		expect({ encoding, names: rows.map(({ cells }) => cells[1]) }).toEqual({ encoding: 'shift_jis', names });
	});
});

it('a proposed encoding can decode the whole file', async () => {
	for (const { encodings, names } of samples)
		for (const encoding of encodings)
			for (const name of names) {
				const bytes = iconv.encode(`email;name\na@example.com;${name}\n`, encoding);
				const refusal = await readTable(bytes).then(
					() => null,
					(error: TableError) => error,
				);
				expect(refusal?.details?.join('\n') ?? '').not.toMatch(/[\ufffd\x80-\x9f]/);
			}
});

it('an ambiguous file is rejected with a sample of each encoding', async () => {
	const bytes = iconv.encode('email;name\na@example.com;Szűrte\n', 'windows-1250');
	const refusal: TableError = await readTable(bytes).then(
		() => expect.unreachable(),
		(error) => error,
	);
	expect(refusal).toMatchObject({ code: 'unsure_encoding', name: 'TableError' });
	expect(refusal.details?.join('\n')).toContain('windows-1250: a@example.com;Szűrte');
	expect(refusal.details?.join('\n')).toContain('windows-1252: a@example.com;Szûrte');
	expect(refusal.hint).toContain('--encoding');
});

describe('an encoding given to --encoding', () => {
	it('is accepted if iconv-lite knows it', async () => {
		const names = [
			'latin1',
			'win1250',
			'CP1250',
			'ISO-8859-2',
			'gbk',
			'GB2312',
			'big5-hkscs',
			'sjis',
			'eucjp',
			'cp949',
			'koi8-u',
			'ibm866',
			'mac',
			'macroman',
			'cp437',
			'utf16',
			'UTF-16BE',
			'ucs2',
			'utf-7',
			'ascii',
			'tis620',
			'armscii8',
			'viscii',
		];
		for (const encoding of names) {
			const text = 'email;name\na@example.com;Ann\nb@example.com;Bob\n';
			const { header, rows } = await readTable(iconv.encode(text, encoding), { encoding });
			expect([encoding, header, rows.map(({ cells }) => cells[1])]).toEqual([
				encoding,
				['email', 'name'],
				['Ann', 'Bob'],
			]);
		}
	});

	it('is rejected as unknown if it does not encode text', async () => {
		for (const encoding of ['base64', 'hex', 'klingon'])
			await expect(readTable('email\n', { encoding })).rejects.toMatchObject({ code: 'unknown_encoding' });
	});
});
