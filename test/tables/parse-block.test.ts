/** Rows without quotes are split at their delimiters, and csv-parse reads the others; both ways must agree. */
import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseBlock } from '../../src/tables/parse-block.js';

const delimiters = [',', ';', '\t', '|', '::'] as const;
const lineEnds = ['\n', '\r\n', '\r'] as const;

const cell = fc
	.string({ unit: 'grapheme', maxLength: 8 })
	.map((text) => text.replaceAll(/[",;:\t|\r\n\ufeff]/g, ' '));

it('rows with and without quotes are parsed like csv-parse, with any delimiter and line end', () => {
	const row = fc.record({
		cells: fc.array(cell, { minLength: 1, maxLength: 5 }),
		isQuoted: fc.boolean(),
		lineEnd: fc.constantFrom(...lineEnds),
	});
	fc.assert(
		fc.property(fc.array(row, { maxLength: 12 }), fc.constantFrom(...delimiters), (rows, delimiter) => {
			const text = rows
				.map(({ cells, isQuoted, lineEnd }) => {
					const written = isQuoted ? cells.map((one) => `"${one}${delimiter}""x"""`) : cells;
					return `${written.join(delimiter)}${lineEnd}`;
				})
				.join('');
			const read = parseBlock({ bytes: Buffer.from(text), delimiter, line: 1, isLast: true });
			const cells = read.rows.map((one) => (one.kind === 'record' ? one.cells : one));
			const options = { delimiter, record_delimiter: ['\r\n', '\n', '\r'], skip_empty_lines: true };
			const meant = parse(text, { ...options, relax_column_count: true });
			expect(cells).toEqual(meant.filter((row) => row.length > 1 || !/^ *$/.test(row[0] ?? '')));
			expect(read.used).toBe(Buffer.byteLength(text));
		}),
	);
});

it.each([
	[',', '"a" ,"b"', ['a', 'b']],
	[',', '  "a",\t"b"  ', ['a', 'b']],
	[',', ' a , "b, c"  , d ', [' a ', 'b, c', ' d ']],
	[',', 'a, "he said ""no"" " , b', ['a', 'he said "no" ', ' b']],
	[',', 'a,\t" b\n c "\t', ['a', ' b\n c ']],
	[';', '"a" ; "" ;  ', ['a', '', '  ']],
	['\t', '"a" \t "b"\t\t"c"', ['a', 'b', '', 'c']],
	[' ', '"a"  "b"', ['a', '', 'b']],
	['|', ' "a" | "b"', ['a', 'b']],
])('spaces around the quotes of a cell are skipped (%j): %j', (delimiter, text, cells) => {
	const bytes = Buffer.from(`${text}\r\n`);
	const { rows } = parseBlock({ bytes, delimiter, line: 1, isLast: true });
	expect(rows).toEqual([{ kind: 'record', line: 1, cells, isText: true }]);
});

it('bytes that are not UTF-8 become U+FFFD and are reported, in cells with or without quotes', () => {
	const bytes = Buffer.from('a,\xe9,b\n"a",\xe9,b\na,b,c\n', 'latin1');
	const { rows } = parseBlock({ bytes, delimiter: ',', line: 1, isLast: true });
	expect(rows).toEqual([
		{ kind: 'record', line: 1, cells: ['a', '\ufffd', 'b'], isText: false },
		{ kind: 'record', line: 2, cells: ['a', '\ufffd', 'b'], isText: false },
		{ kind: 'record', line: 3, cells: ['a', 'b', 'c'], isText: true },
	]);
});
