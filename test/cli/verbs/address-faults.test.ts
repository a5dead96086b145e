import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseAddress, parseMailbox } from '../../../src/api/address.js';
import { addressFault, rowError, withAddressFault } from '../../../src/cli/verbs/address-faults.js';
import { makeProject } from '../../support/project.js';

const localAscii = (character: string) =>
	`the part before @ has a character outside ASCII (${character}), where this service takes ASCII only`;

const faults: [text: string, fault: string][] = [
	['', 'it is blank'],
	['  ', 'it is blank'],
	['nobody', 'it has no @'],
	['a@b@c.de', 'it has more than one @'],
	['@example.com', 'nothing stands before @'],
	['ann@', 'nothing stands after @'],
	['käthe@example.com', localAscii('ä')],
	['ka\u0308the@example.com', localAscii('U+0308')],
	['Käthe <käthe@example.com>', localAscii('ä')],
	['.ann@example.com', 'the part before @ begins with a dot'],
	['ann.@example.com', 'the part before @ ends with a dot'],
	['a..n@example.com', 'the part before @ has two dots in a row'],
	['ann(x)@example.com', 'the part before @ has a character that may not stand there (()'],
	['"ann@example.com', 'the part before @ is not quoted as it has to be'],
	['ann@example.com.', 'the domain ends with a dot'],
	['ann@example..com', 'the domain has two dots in a row'],
	['ann@example', 'the domain has no ending, such as example.com'],
	['ann@exa_mple.com', 'the domain has a character that may not stand there (_)'],
	['ann@example,com', 'the domain has a character that may not stand there (,)'],
	['ann@-example.com', 'a part of the domain begins or ends with a hyphen'],
	['ann@[300.1.1.1]', '[300.1.1.1] is no IP address in brackets'],
	['ann@example.c', 'there can be no domain example.c'],
	['ann @example.com', 'it has a space'],
	['ann＠example.com', 'its ＠ is another character than @'],
	['a\u200bnn@example.com', 'it has a character that is not seen, U+200B'],
	['\ufeffann@example.com', 'it has a character that is not seen, U+FEFF'],
	['ann@example.com\r\nBcc: x@example.com', 'it has a line break'],
	['mailto:ann@example.com', 'mailto: is part of a link, not of the address'],
	['ann@example.com, bo@example.com', 'it is several addresses, with a comma between them'],
	['ann@example.com;bo@example.com', 'it is several addresses, with a semicolon between them'],
	[
		'Ann <ann@example.com>',
		'only the address itself is taken, ann@example.com, no name and no angle brackets',
	],
	['<ann@example.com>', 'only the address itself is taken, ann@example.com, no name and no angle brackets'],
	['dörte@example,com', `${localAscii('ö')}, and the domain has a character that may not stand there (,)`],
	[`${'a'.repeat(250)}@example.com`, 'it has 262 characters, and 254 are the most'],
];

describe('the fault of an address', () => {
	it.each(faults)('%j: %s', (text, fault) => {
		expect(addressFault(text)).toBe(fault);
	});

	it('is none for an address, an international domain and blanks around it', () => {
		for (const text of ['ann@example.com', ' ann@example.com ', 'ann@münchen.de', '"a@b"@example.com'])
			expect(addressFault(text)).toBeNull();
	});

	it('is none of a name before it where a name may stand', () => {
		expect(addressFault('Ann <ann@example.com>', 'mailbox')).toBeNull();
		expect(addressFault('Doe, Ann <ann@example.com>', 'mailbox')).toBe(
			'the name before < has a character that needs quotes around the name',
		);
	});

	it('is there for every text that is refused, and for no other', () => {
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

it('follows what a service says of an address', () => {
	expect(withAddressFault('Enter a valid email address.', 'ann@')).toBe(
		'Enter a valid email address: nothing stands after @',
	);
	expect(withAddressFault('It is taken.', 'ann@example.com')).toBe('It is taken.');
});

it('stands in the error of a row where its address was refused, and in no other', () => {
	const refused = { code: 'invalid', error: 'email: Enter a valid email address.' };
	expect(rowError(refused, 'nobody')).toBe('email: Enter a valid email address: it has no @');
	expect(rowError({ code: 'invalid', error: 'meta: Not valid.' }, 'nobody')).toBe('meta: Not valid.');
	expect(rowError({ code: 'blank', error: 'email: This field may not be blank.' }, '')).toBe(
		'email: This field may not be blank.',
	);
});

describe('a very long address', () => {
	const longest = `${'a'.repeat(60)}@${['b', 'c', 'd'].map((sign) => sign.repeat(57)).join('.')}.example.com`;

	it('is whole in the error and in the command that is hinted', async () => {
		const { run, json } = await makeProject({ smtp: 9 });
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const sent = await run([
			'send',
			'--from',
			longest,
			'--to',
			'a@example.com',
			'--subject',
			'S',
			'--text',
			'T',
		]);
		expect(sent).toMatchObject({ code: 5, stderr: expect.stringContaining(`not verified. (${longest})\n`) });
		expect(sent.stderr).toMatch(new RegExp(`senders add ${longest}\n$`));
		const got = await run(['subscribers', 'get', longest, '-l', '1']);
		expect(got).toMatchObject({ code: 3, stderr: expect.stringContaining(`subscriber ${longest} of list`) });
		expect(got.stderr).toMatch(new RegExp(`subscribers find ${longest}\n$`));
	});

	it('has a gap where it is longer than any, and no command repeats it', async () => {
		const { run, json } = await makeProject();
		await json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		const { stderr } = await run(['subscribers', 'get', `${'x'.repeat(900)}@example.com`, '-l', '1']);
		expect(stderr).toMatch(/^error: subscriber x{120}…x+@example\.com of list 1 "Readers" not found\n/);
		expect(stderr).toContain('\nhint: it has 912 characters, and 254 are the most\n');
	});
});
