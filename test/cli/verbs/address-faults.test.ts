import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAddress, parseMailbox } from '../../../src/api/address.js';
import { addressFault, rowError } from '../../../src/cli/verbs/address-faults.js';

const faults: [text: string, fault: string][] = [
	['  ', 'it is blank'],
	['nobody', 'it has no @'],
	['@example.com', 'its form is invalid'],
	['käthe@example.com', 'the part before @ has a character outside ASCII'],
	['a\u200bnn@example.com', 'it has an invisible character, U+200B'],
	['ann@example.com\r\nBcc: x@example.com', 'it has an invisible character, U+000D'],
	['ann@example.com, bo@example.com', 'it contains several addresses'],
	['Ann <ann@example.com>', 'give only the address itself: ann@example.com'],
	[`${'a'.repeat(250)}@example.com`, 'it has 262 characters, but at most 254 are allowed'],
];

describe('the explanation of an invalid address', () => {
	it.each(faults)('for %j is: %s', (text, fault) => {
		expect(addressFault(text)).toBe(fault);
	});

	it('is null for a valid address, even with spaces around it or an international domain', () => {
		for (const text of ['ann@example.com', ' ann@example.com ', 'ann@münchen.de', '"a@b"@example.com'])
			expect(addressFault(text)).toBeNull();
	});

	it('is null for an address with a name if names are allowed', () => {
		expect(addressFault('Ann <ann@example.com>', 'mailbox')).toBeNull();
	});

	it('exists for exactly the texts that the parser rejects', () => {
		const signs = ['a', '@', '.', '-', '"', '<', '>', ',', ';', ' ', 'ä', '\u200b', '[', ']'];
		const texts = fc.oneof(
			fc.string({ unit: 'binary' }),
			fc.emailAddress(),
			fc.array(fc.constantFrom(...signs)).map((some) => some.join('')),
		);
		fc.assert(
			fc.property(texts, (text) => {
				expect(addressFault(text) === null).toBe(parseAddress(text) !== null);
				expect(addressFault(text, 'mailbox') === null).toBe(parseMailbox(text) !== null);
			}),
			{ numRuns: 2_000 },
		);
	});
});

it('the error of a rejected row explains the address only if the service calls the address invalid', () => {
	const refused = { code: 'invalid', error: 'email: Enter a valid email address.' };
	expect(rowError(refused, 'nobody')).toBe('email: Enter a valid email address: it has no @');
	expect(rowError({ code: 'invalid', error: 'meta: Not valid.' }, 'nobody')).toBe('meta: Not valid.');
	expect(rowError({ code: 'blank', error: 'email: This field may not be blank.' }, '')).toBe(
		'email: This field may not be blank.',
	);
});
