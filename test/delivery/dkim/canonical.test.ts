import { describe, expect, it } from 'vitest';
import { relaxedBody, relaxedField, signedFields, splitMessage } from '../../../src/delivery/dkim/sign.js';

const latin1 = (text: string) => Buffer.from(text, 'latin1');
const relaxed = (text: string) => relaxedBody(latin1(text)).toString('latin1');

describe('relaxed canonicalization', () => {
	it('reproduces the example of RFC 6376 s.3.4.5', () => {
		const { fields, body } = splitMessage(
			latin1('A: X\r\nB : Y\t\r\n\tZ  \r\n\r\n C \r\nD \t E\r\n\r\n\r\n'),
		);
		expect(fields.map(({ text }) => relaxedField(text))).toEqual(['a:X', 'b:Y Z']);
		expect(relaxedBody(body).toString('latin1')).toBe(' C\r\nD E\r\n');
	});

	it.each([
		['', ''],
		['\r\n', ''],
		['\r\n\r\n\r\n', ''],
		[' \t\r\n \r\n', ''],
		['x', 'x\r\n'],
		['x\r\n', 'x\r\n'],
		['x \r\n\r\n \r\n', 'x\r\n'],
		['\r\n\r\nx\r\n', '\r\n\r\nx\r\n'],
		['a\t \tb  \r\n', 'a b\r\n'],
		['  a', ' a\r\n'],
		['a\rb\nc\r\n', 'a\rb\nc\r\n'],
		['x\r\n ', 'x\r\n'],
	])('turns the body %j into %j', (body, expected) => {
		expect(relaxed(body)).toBe(expected);
	});

	it.each([
		['A:x', 'a:x'],
		['A: x', 'a:x'],
		['A:  x', 'a:x'],
		['A:\tx', 'a:x'],
		['A: x ', 'a:x'],
		['A: x\t', 'a:x'],
		['A: x  y', 'a:x y'],
		['A: x\ty', 'a:x y'],
		['A:\r\n x', 'a:x'],
		['A: x\r\n y', 'a:x y'],
		['A :', 'a:'],
		['A: ', 'a:'],
		['A: \t ', 'a:'],
	])('turns the field %j into %j', (field, expected) => {
		expect(relaxedField(field)).toBe(expected);
	});

	it('does not depend on folding or case', () => {
		expect(relaxedField('SUBJECT  :  a\r\n\tb \t c ')).toBe('subject:a b c');
	});
});

describe('the fields that a signature covers', () => {
	const of = (header: string) => signedFields(splitMessage(latin1(`${header}\r\n\r\n`)).fields);

	it('include From once more than it occurs, and Reply-To even if it is absent', () => {
		const { names } = of('From: a@example.com\r\nSubject: x');
		expect(names.filter((name) => name === 'From')).toHaveLength(2);
		expect(names.filter((name) => name === 'Reply-To')).toHaveLength(1);
	});

	it('include List-Unsubscribe and List-Unsubscribe-Post if they are present', () => {
		const oneClick = of(
			'From: a@example.com\r\nList-Unsubscribe: <https://x.test/u>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click',
		);
		expect(oneClick.names).toEqual(
			expect.arrayContaining(['List-Unsubscribe', 'List-Unsubscribe-Post', 'List-Unsubscribe-Post']),
		);
		expect(of('From: a@example.com').names).not.toContain('List-Unsubscribe');
	});

	it('omit fields that relays change', () => {
		const { names } = of('Received: by x\r\nReturn-Path: <a@b>\r\nX-Mailer: y\r\nFrom: a@example.com');
		expect(names.join(' ')).not.toMatch(/received|return-path|x-mailer/i);
	});

	it('are in reverse order if they have the same name', () => {
		const { texts } = of('From: a@example.com\r\nTo: first@x.test\r\nTo: second@x.test');
		expect(texts).toEqual(['From: a@example.com', 'To: second@x.test', 'To: first@x.test']);
	});
});
