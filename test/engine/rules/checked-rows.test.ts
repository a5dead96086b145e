import fc from 'fast-check';
import { expect, it } from 'vitest';
import { newTexts, TextReader, TextWriter } from '../../../src/api/row-texts.js';
import {
	decodeRow,
	encodeRow,
	type ParsedRow,
	parseImportRows,
} from '../../../src/engine/rules/import-rows.js';

const columns = ['meta.city', 'email', 'name', 'is_active', 'disable_reason', 'meta.__proto__'];
const email = fc.constantFrom(
	'a@x.org',
	' B@X.org ',
	'ß@x.org',
	'i@münchen.de',
	'I@İ.org',
	'"a b"@x.org',
	'no address',
	'',
	'a\0@x.org',
);
const text = fc.oneof(fc.constant(null), fc.constantFrom('', ' ', 'a\0b', '\n', 'é', '漢字'), fc.string());
const activity = fc.constantFrom(null, 'true', 'NO', '1', 'maybe', '');
const row = fc.tuple(text, fc.oneof(email, fc.constant(null)), text, activity, text, text);

function crossed(parsed: readonly ParsedRow[]): ParsedRow[] {
	const texts = newTexts();
	const writer = new TextWriter(texts);
	for (const one of parsed) writer.add(encodeRow(one));
	const reader = new TextReader(texts);
	return parsed.map((_, index) => decodeRow(reader.at(index)));
}

it('checked rows are the same after encoding and decoding', () => {
	fc.assert(
		fc.property(fc.array(row, { maxLength: 20 }), (rows) => {
			const parsed = parseImportRows({ columns, cells: rows.flat() });
			expect(crossed(parsed)).toEqual(parsed);
		}),
	);
});
