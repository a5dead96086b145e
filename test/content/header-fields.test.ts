// Header fields are folded only where RFC 5322 allows it.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sendFields } from '../../src/api/messages.js';
import { isReservedHeader, maxHeaderName } from '../../src/api/schema/headers.js';
import { addressField, customField, unstructuredField } from '../../src/content/header-fields.js';

const piece = fc.oneof(
	fc.string({ unit: 'grapheme', maxLength: 30 }),
	fc.string({ maxLength: 90 }),
	fc.constantFrom('  ', '\t', 'x'.repeat(77), 'x'.repeat(900), 'y'.repeat(901), '=?x', '😀'.repeat(30)),
	fc.constantFrom(' '.repeat(80), ' '.repeat(950)),
);
const text = fc
	.array(piece, { maxLength: 8 })
	.map((pieces) => pieces.join(' ').replace(/[\0-\x08\x0a-\x1f\x7f-\x9f]/g, ''));
const fieldName = fc.constantFrom(
	'Subject',
	'X-A',
	...[40, 74, 198].map((length) => `X-${'n'.repeat(length)}`),
);

function problemsOf(field: string, name: string): string[] {
	const lines = field.slice(0, -2).split('\r\n');
	const words = field.match(/=\?UTF-8\?[QB]\?[^?]*\?=/g) ?? [];
	return [
		...(field.endsWith('\r\n') ? [] : ['no line end']),
		...(lines.some((line) => line.length > 998) ? ['a line over 998'] : []),
		...(lines.slice(1).some((line) => !/^[ \t]/.test(line)) ? ['a line that is not folded'] : []),
		...(lines.some((line) => /^[ \t]*$/.test(line)) ? ['a line of blanks'] : []),
		...(words.some((word) => word.length > 75) ? ['an encoded word over 75'] : []),
		...lines
			.map((line, index) => (index === 0 ? line.slice(name.length + 1) : line))
			.filter((line, index) => line.length + (index === 0 ? name.length + 1 : 0) > 78)
			.filter((line) => /\S[ \t]+\S/.test(line.replace(/"(?:[^"\\]|\\.)*"/g, '""').trim()))
			.map(() => 'a line over 78 that could be folded'),
	];
}

const anyName = fc.oneof(
	fc.string({ minLength: 1, maxLength: 30 }),
	fc.integer({ min: 1, max: 990 }).map((length) => 'N'.repeat(length)),
	fc
		.tuple(
			fc.constantFrom(
				'Mime',
				'content',
				'RESENT',
				'Arc',
				'dkim',
				'list-unsubscribe',
				'Bcc',
				'Delivered-To',
				'x-received',
				'Errors-To',
				'DOWNGRADED',
			),
			fc.constantFrom('', '-', '-x', 's', '_'),
		)
		.map((parts) => parts.join('')),
);

describe('a header field', () => {
	it('is written correctly if a send call accepts it; a reserved or overlong name is rejected', () => {
		fc.assert(
			fc.property(anyName, text, (name, value) => {
				const send = {
					from: 'a@b.no',
					to: ['c@d.no'],
					subject: 's',
					text_body: 't',
					headers: { [name]: value },
				};
				const isTaken = sendFields.parse(send).kind === 'valid';
				if (isTaken) expect(problemsOf(customField(name, value), name)).toEqual([]);
				else if (name.length > maxHeaderName || isReservedHeader(name))
					expect(() => customField(name, value)).toThrow();
			}),
			{ numRuns: 3000 },
		);
	});

	it('stays within the line limits, and unfolds to its original text unless the text is encoded', () => {
		fc.assert(
			fc.property(fieldName, text, (name, value) => {
				const field = unstructuredField(name, value);
				expect(problemsOf(field, name)).toEqual([]);
				if (!field.includes('=?UTF-8?')) {
					expect(
						field
							.replaceAll('\r\n', '')
							.slice(name.length + 1)
							.trim(),
					).toBe(value.trim());
				}
			}),
			{ numRuns: 2000 },
		);
	});

	it('with any mailbox names keeps the line limits', () => {
		const person = text.map((name) =>
			name
				.replace(/[\t<>]/g, '')
				.replace(/ +/g, ' ')
				.trim(),
		);
		fc.assert(
			fc.property(fc.array(person, { minLength: 1, maxLength: 5 }), fc.nat(60), (names, length) => {
				const address = `${'a'.repeat(length + 1)}@${'b'.repeat(length + 1)}.example`;
				const mailboxes = names.map((name) =>
					name === '' ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`,
				);
				expect(problemsOf(addressField('Reply-To', mailboxes), 'Reply-To')).toEqual([]);
			}),
			{ numRuns: 1000 },
		);
	});
});
