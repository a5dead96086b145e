import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
	emailKey,
	formatMailbox,
	isEmailAddress,
	parseAddress,
	parseMailbox,
} from '../../src/api/address.js';

const strings = join(process.env['MAILCTL_CORPORA'] ?? '../shared/corpora', 'strings/blns.json');

describe('the parser of addresses', () => {
	test.each([
		'a@b.no',
		'first.last+tag@sub.example.com',
		"o'hara!#$%&*/=?^_`{|}~@b.no",
		'a@localhost',
		'a@[127.0.0.1]',
		'a@[::1]',
		'"a\\ b"@b.no',
		'"a@b"@c.no',
		'a@bücher.example',
		'a@xn--bcher-kva.example',
		'a@10.0.0.10',
	])('accepts %s', (text) => expect(isEmailAddress(text)).toBe(true));

	test.each([
		'',
		'a',
		'@b.no',
		'a@',
		'a@b',
		'a@b..no',
		'.a@b.no',
		'a.@b.no',
		'a..b@b.no',
		'a b@b.no',
		'a@b.no,c@d.no',
		'a@b.no;c@d.no',
		'g: a@b.no;',
		'a(comment)@b.no',
		'a@b.no\r\nRCPT TO:<c@d.no>',
		'a@b.no>\r\nRCPT TO:<c@d.no',
		'"a>b"@c.no',
		'"a\rb"@c.no',
		'a@b.no\0',
		'a@-b.no',
		'a@b-.no',
		'a@[300.0.0.1]',
		'a@[::zz]',
		'å@b.no',
		'\u212a@b.no',
		'a@ex%61mple.com',
		'a@bü\u202echer.example',
		`a@${'b'.repeat(64)}.no`,
	])('rejects %j', (text) => expect(isEmailAddress(text)).toBe(false));

	test('accepts an address of 254 characters and rejects a longer one', () => {
		expect(parseAddress(`${'a'.repeat(249)}@b.no`)).not.toBeNull();
		expect(parseAddress(`${'a'.repeat(250)}@b.no`)).toBeNull();
	});

	test.each([
		['Foo.Bar+Tag@EXAMPLE.Com', 'foo.bar+tag@example.com'],
		['a@BÜCHER.example', 'a@xn--bcher-kva.example'],
		['a@bücher.example', 'a@xn--bcher-kva.example'],
		['a@0x7f.com', 'a@0x7f.com'],
		['not an address', 'not an address'],
		['"Ann.Lee"@b.no', 'ann.lee@b.no'],
		['"a\\nn"@b.no', 'ann@b.no'],
		['"Ann Lee"@b.no', '"ann lee"@b.no'],
		['"\\Ann\\ \\"Lee"@b.no', '"ann \\"lee"@b.no'],
		['"a..b"@b.no', '"a..b"@b.no'],
		['""@b.no', '""@b.no'],
		['"@b.no', '"@b.no'],
	])('gives %s the comparison key %s', (text, key) => expect(emailKey(text)).toBe(key));
});

describe('the parser of mailboxes', () => {
	test.each([
		['a@b.no', '', 'a@b.no'],
		[' <a@b.no> ', '', 'a@b.no'],
		['Ann Lee <a@b.no>', 'Ann Lee', 'a@b.no'],
		['Åse Ødegård <a@b.no>', 'Åse Ødegård', 'a@b.no'],
		['"Lee, Ann" <a@b.no>', 'Lee, Ann', 'a@b.no'],
		['"a \\"b\\" \\\\c" <a@b.no>', 'a "b" \\c', 'a@b.no'],
		['"x <y@z.no>" <a@b.no>', 'x <y@z.no>', 'a@b.no'],
	])('reads a name and an address from %s', (text, name, address) => {
		expect(parseMailbox(text)).toEqual({ name, address, key: address });
	});

	test.each([
		'Ann <a@b.no>, Bob <c@d.no>',
		'Ann <a@b.no> <c@d.no>',
		'Lee, Ann <a@b.no>',
		'Friends: a@b.no;',
		'Ann (boss) <a@b.no>',
		'Ann <a@b.no',
		'Ann a@b.no>',
		'Ann < a@b.no>',
		'Ann <<a@b.no>>',
		'Ann\r\nBcc: x@y.no <a@b.no>',
		'"Ann\u2028" <a@b.no>',
		'Ann\0 <a@b.no>',
		'"Ann <a@b.no>',
		'<>',
	])('rejects %j', (text) => expect(parseMailbox(text)).toBeNull());

	test('reads the name and address that the formatter wrote', () => {
		fc.assert(
			fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (name) => {
				const written = formatMailbox({ name, address: 'a@b.no' });
				const read = parseMailbox(written);
				const isClean = !/[\0-\x1f\x7f-\x9f\u2028\u2029]/.test(name);
				expect(read?.name ?? null).toBe(isClean ? name : null);
			}),
			{ numRuns: 500 },
		);
	});
});

test.each([
	'a',
	'a.',
	'"',
	'"\\',
	'@',
	'<',
	'a@a.',
	' ',
	'(',
	'å',
	'\\"',
	'"a" ',
])('the parser of mailboxes accepts or rejects a million characters of %j within the time limit', (part) => {
	const text = part.repeat(1_000_000 / part.length);
	for (const hostile of [text, `${text}@b.no`, `a@${text}`, `${text}<a@b.no>`, `"${text}" <a@b.no>`])
		expect(parseMailbox(hostile)?.address ?? 'a@b.no').toBe('a@b.no');
});

test.skipIf(!existsSync(strings))('a parsed address never contains a control character', () => {
	const naughty: unknown = JSON.parse(readFileSync(strings, 'utf8'));
	const texts = Array.isArray(naughty) ? naughty.filter((text) => typeof text === 'string') : [];
	expect(texts.length).toBeGreaterThan(400);
	for (const text of texts) {
		for (const candidate of [text, `${text}@b.no`, `a@${text}`, `${text} <a@b.no>`, `"${text}" <a@b.no>`]) {
			const read = parseMailbox(candidate);
			if (read) expect(`${read.name}${read.address}${read.key}`).not.toMatch(/[\0-\x1f\x7f-\x9f]/);
		}
	}
});
