import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeRows, encodeRows } from '../../../src/engine/rules/checked-rows.js';
import { parseImportRows } from '../../../src/engine/rules/import-rows.js';

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

it('reads rows back as they were checked, all of them or a part', () => {
	fc.assert(
		fc.property(fc.array(row, { maxLength: 20 }), fc.nat(20), fc.nat(20), (rows, from, limit) => {
			const parsed = parseImportRows({ columns, cells: rows.flat() });
			const checked = encodeRows(parsed);
			expect(decodeRows(checked, 0, rows.length)).toEqual(parsed);
			expect(decodeRows(checked, from, limit)).toEqual(parsed.slice(from, from + limit));
		}),
	);
});

it('tells a name that is empty from one that is not given', () => {
	const parsed = parseImportRows({ columns: ['email', 'name'], cells: ['a@x.org', '', 'b@x.org', null] });
	expect(decodeRows(encodeRows(parsed), 0, 2).map((one) => one.kind === 'row' && one.name)).toEqual([
		'',
		null,
	]);
});
