import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/api/datetime.js';
import { clean } from '../../src/cli/render/clean.js';
import { csvCell, linesOf, markdownCell, tsvCell } from '../../src/cli/render/out.js';
import { card, table } from '../../src/cli/render/table.js';
import { hasColor } from '../../src/cli/render/terminal.js';
import { createTimes } from '../../src/cli/render/times.js';
import { pad, shorten, widthOf, wrap } from '../../src/cli/render/width.js';

const times = createTimes({ zone: () => 'UTC', clock: systemClock, isRead: false });

const drawn = async <T>(...given: Parameters<typeof table<T>>) => (await table(...given)).text;

describe('cleaned text', () => {
	it.each([
		['\x1b[31mred', '\\x1b[31mred'],
		['a\tb\r\nc', 'a\\tb\\r\\nc'],
		['\x00\x7f\x9b', '\\x00\\x7f\\x9b'],
		['a\u202eb\u2066c', 'a\\u202eb\\u2066c'],
		['a\u200bb\ufeffc\u2028', 'a\\u200bb\\ufeffc\\u2028'],
		['a\u200db', 'a\\u200db'],
		['\u{e0041}', '\\u{e0041}'],
		['\ud800', '\\ud800'],
		['\ufdd0', '\ufdd0'],
		['Ärger 日本 👩‍👩‍👧 e\u0301', 'Ärger 日本 👩‍👩‍👧 e\u0301'],
	])('of %j is %j', (text, expected) => expect(clean(text)).toBe(expected));

	it('has no control characters, and stays the same if it is cleaned again', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'binary' }), (text) => {
				expect(clean(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u200b]/);
				expect(clean(clean(text))).toBe(clean(text));
			}),
		);
	});

	it('is computed quickly from a megabyte of hostile text', () => {
		// Quadratic work on a megabyte would exceed the time limit of the test.
		expect(clean('👩\u200d'.repeat(300_000)).length).toBeGreaterThan(900_000);
		expect(clean('\x1b'.repeat(1_000_000))).toHaveLength(4_000_000);
	});
});

describe('text measured in cells', () => {
	it.each([
		['abc', 3],
		['日本', 4],
		['👩‍👩‍👧', 2],
		['e\u0301', 1],
		['🇩🇪', 2],
	])('%s has %i cells', (text, cells) => expect(widthOf(text)).toBe(cells));

	it('is cut between graphemes and ends in an ellipsis', () => {
		expect(shorten('日本語', 5)).toBe('日本…');
		expect(shorten('日本語', 4)).toBe('日…');
		expect(shorten('a👩‍👩‍👧b', 3)).toBe('a…');
		expect(shorten('abc', 3)).toBe('abc');
	});

	it('never exceeds the given number of cells when it is cut, padded or wrapped', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 2, max: 40 }), (raw, cells) => {
				const text = clean(raw);
				expect(widthOf(shorten(text, cells))).toBeLessThanOrEqual(cells);
				expect(widthOf(pad(shorten(text, cells), cells))).toBe(cells);
				for (const line of wrap(text, cells)) expect(widthOf(line)).toBeLessThanOrEqual(cells);
			}),
		);
	});
});

describe('a cell', () => {
	it('is quoted in CSV so that a parser restores its value', () => {
		fc.assert(
			fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 2, maxLength: 5 }), (values) => {
				expect(parse(`${values.map(csvCell).join(',')}\r\n`, { record_delimiter: '\r\n' })).toEqual([values]);
			}),
		);
	});

	it('of TSV contains neither tabs nor line breaks', () => {
		expect(tsvCell('a\tb\nc')).toBe('a\\tb\\nc');
		expect([null, undefined, true, { a: 1 }].map(tsvCell)).toEqual(['', '', 'true', '{"a":1}']);
	});

	it('of TSV is valid JSON on one line if its value is an object', () => {
		expect(tsvCell({ a: 'x\ty\x7f\u202e\u{e0001}' })).toBe('{"a":"x\\ty\\u007f\\u202e\\udb40\\udc01"}');
		fc.assert(
			fc.property(fc.dictionary(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })), (value) => {
				const cell = tsvCell([value]);
				expect(cell).not.toMatch(/[\p{Cc}\u2028\u2029]/u);
				expect(JSON.parse(cell)).toEqual([value]);
			}),
		);
	});

	it('of Markdown escapes markup', () => {
		expect(markdownCell('a|b <img> [x](y) `c`\n')).toBe('a\\|b \\<img\\> \\[x\\](y) \\`c\\`\\\\n');
		expect(markdownCell('R&amp;D ~~old~~ C #')).toBe('R\\&amp;D \\~\\~old\\~\\~ C \\#');
		expect(markdownCell('https://example.com/a_b?c=d&e=f|g')).toBe('<https://example.com/a_b?c=d&e=f\\|g>');
		expect(markdownCell('https://example.com/ <b>')).toBe('https://example.com/ \\<b\\>');
	});
});

describe('a multi-line value', () => {
	const columns = [
		{
			key: 'tries',
			header: 'TRIES',
			value: (row: { tries: { at: number }[] }) => row.tries,
			lines: (row: { tries: { at: number }[] }) => row.tries.map(({ at }) => `at ${at}`),
		},
	];
	const layout = { width: 40, header: true, truncate: true, strong: (text: string) => text, times };
	const row = { tries: [{ at: 1 }, { at: 2 }] };

	it('takes one line per item on a card, and a single line in a table', async () => {
		expect(card(row, columns, layout)).toBe('TRIES  at 1\n       at 2\n');
		expect(await drawn([row], columns, layout)).toBe('TRIES\nat 1; at 2\n');
	});

	it('is JSON in TSV and CSV, and a single line of text in Markdown', async () => {
		const printed = async (format: 'tsv' | 'csv' | 'markdown') => {
			async function* rows() {
				yield row;
			}
			const pieces: string[] = [];
			for await (const piece of linesOf(rows(), columns, { format, fields: null, header: false, times }))
				pieces.push(piece);
			return pieces.join('');
		};
		expect(await printed('tsv')).toBe('[{"at":1},{"at":2}]\n');
		expect(await printed('csv')).toBe('"[{""at"":1},{""at"":2}]"\r\n');
		expect(await printed('markdown')).toBe('| at 1; at 2 |\n');
	});
});

describe('a table', () => {
	const columns = [
		{ key: 'a', header: 'A', value: (row: { a: string; b: string }) => row.a },
		{ key: 'b', header: 'B', value: (row: { a: string; b: string }) => row.b, align: 'right' as const },
	];
	const layout = { width: 20, header: true, truncate: true, strong: (text: string) => text, times };

	it('aligns columns that contain wide graphemes', async () => {
		const rows = [
			{ a: '日本', b: '1' },
			{ a: 'x', b: '20' },
		];
		expect(await drawn(rows, columns, layout)).toBe('A      B\n日本   1\nx     20\n');
	});

	it('keeps a column aligned if a cell is empty', async () => {
		expect(await drawn([{ a: '', b: 'z' }], columns, layout)).toBe('A  B\n   z\n');
	});
});

describe('colour', () => {
	const terminal = { isTTY: true };
	it.each([
		['auto', {}, true],
		['auto', { NO_COLOR: '1' }, false],
		['auto', { NO_COLOR: '' }, true],
		['auto', { TERM: 'dumb' }, false],
		['always', { NO_COLOR: '1' }, true],
		['never', { FORCE_COLOR: '1' }, false],
	] as const)('on a terminal depends on --color and the environment: %s, %j, enabled %s', (mode, env, expected) => {
		expect(hasColor(terminal, mode, env)).toBe(expected);
	});

	it('is disabled in a pipe unless the environment forces it', () => {
		expect(hasColor({ isTTY: false }, 'auto', {})).toBe(false);
		expect(hasColor({ isTTY: false }, 'auto', { CLICOLOR_FORCE: '1' })).toBe(true);
		expect(hasColor({ isTTY: false }, 'auto', { FORCE_COLOR: '0', CLICOLOR_FORCE: '1' })).toBe(false);
	});
});
