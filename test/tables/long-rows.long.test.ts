/** Rows of any size with quotes and line ends: one error each, in linear time, with bounded memory. */
import { CsvError, parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TableRow } from '../../src/tables/finding.js';
import { scanRows } from '../../src/tables/parse-block.js';
import { openTable } from '../../src/tables/read-table.js';
import { cellsOf, faultsOf } from './tables.js';

const mib = 1024 * 1024;

/** Yields `before`, then `piece` repeated up to `bytes`, then `after`, in chunks like those of a file. */
async function* pumped(
	{ before, piece, after }: { before: string; piece: string; after: string },
	bytes: number,
): AsyncGenerator<Uint8Array> {
	const chunk = Buffer.from(piece.repeat(Math.ceil((256 * 1024) / piece.length)));
	yield Buffer.from(before);
	for (let given = 0; given < bytes; given += chunk.length) yield chunk;
	yield Buffer.from(after);
}

async function rowsOf(stream: AsyncIterable<Uint8Array>): Promise<TableRow[]> {
	const table = await openTable({ name: 'people.csv', stream }, { delimiter: ',', encoding: 'utf-8' });
	const rows: TableRow[] = [];
	for await (const row of table.rows) rows.push(row);
	return rows;
}

describe('a quoted cell of many megabytes', () => {
	it.each([
		['letters', 'x', '2 row_too_long'],
		['letters of several bytes', 'é', '2 row_too_long'],
		['lines', 'some text\r\n', '2 unclosed_quote'],
		['lines with addresses', 'From: Ann <ann@example.com>\n', '2 unclosed_quote'],
	])('of %s is rejected, and the row after the cell is read', async (_, piece, first) => {
		for (const size of [5, 12]) {
			const around = { before: 'email,name\na@x.org,"', piece, after: '"\nb@x.org,Bob\n' };
			const before = process.memoryUsage().arrayBuffers;
			const rows = await rowsOf(pumped(around, size * mib));
			expect(faultsOf(rows)[0]).toBe(first);
			expect(cellsOf(rows)).toEqual([['b@x.org', 'Bob']]);
			expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40 * mib);
		}
	});

	it('that is never closed causes one error, and its later lines are read as rows', async () => {
		const around = { before: 'email,name\na@x.org,"Ann\n', piece: 'b@x.org,Bob\n', after: '' };
		const rows = await rowsOf(pumped(around, 6 * mib));
		expect(faultsOf(rows)).toEqual(['2 unclosed_quote']);
		expect(rows.length).toBeGreaterThan(500_000);
	});
});

describe('the speed of parsing', () => {
	async function speedOf(
		around: { before: string; piece: string; after: string },
		bytes: number,
	): Promise<number> {
		const start = process.cpuUsage();
		await rowsOf(pumped(around, bytes));
		const { user, system } = process.cpuUsage(start);
		return (bytes / (user + system)) * 1_000_000;
	}

	it('is at least a tenth of the usual speed with any quotes and line ends', async () => {
		const usual = { before: 'email,name\n', piece: 'ann.smith@example.com,"Smith, Ann"\n', after: '' };
		await speedOf(usual, 4 * mib);
		const least = (await speedOf(usual, 8 * mib)) / 10;
		const token = fc.constantFrom(
			'"',
			'""',
			'"""',
			'\n',
			'\r\n',
			'\r',
			',',
			',"',
			'",',
			'"\n',
			'some words',
			'é',
		);
		await fc.assert(
			fc.asyncProperty(
				fc.array(token, { minLength: 1, maxLength: 12 }),
				fc.constantFrom('', '"'),
				fc.constantFrom(1, 5),
				async (tokens, quote, size) => {
					const piece = `${tokens.join('')}${'words, and more of them. '.repeat(8).replaceAll(',', '')}`;
					const around = { before: `email,name\na@x.org,${quote}`, piece, after: '"\nb@x.org,Bob\n' };
					const first = await speedOf(around, size * mib);
					const speed = first > least ? first : await speedOf(around, size * mib);
					expect(speed).toBeGreaterThan(least);
				},
			),
			{ numRuns: 20 },
		);
	});
});

describe('the end of a row', () => {
	it('is where csv-parse finds it, for any valid text', () => {
		// The pieces have no spaces: csv-parse keeps spaces around quotes and in empty lines, and mailctl skips them.
		const piece = fc.constantFrom('"', '""', ',', '\n', '\r\n', '\r', 'a', 'é', '-', ',"', '",', '"\n');
		fc.assert(
			fc.property(fc.array(piece, { maxLength: 30 }), fc.constantFrom(',', '§', 'é'), (pieces, delimiter) => {
				const bytes = Buffer.from(pieces.join('').replaceAll(',', delimiter));
				const { spans } = scanRows({ bytes, delimiter, line: 1, isLast: true });
				const options = {
					delimiter,
					record_delimiter: ['\r\n', '\n', '\r'],
					relax_column_count: true,
					skip_empty_lines: true,
				};
				let expected: string[][] | CsvError;
				try {
					expected = parse(bytes, options);
				} catch (error) {
					expected = error as CsvError;
				}
				const hasFault = spans.some(({ fault }) => fault !== null);
				expect({ hasFault, text: bytes.toString() }).toEqual({
					hasFault: expected instanceof CsvError,
					text: bytes.toString(),
				});
				const whole = spans.filter(({ fault }) => fault === null);
				for (const { begin, end } of whole)
					expect(parse(bytes.subarray(begin, end), options)).toHaveLength(1);
				if (!(expected instanceof CsvError)) expect(whole).toHaveLength(expected.length);
			}),
			{ numRuns: 1000 },
		);
	});
});
