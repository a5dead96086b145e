import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { folderNames, sameFolder, templateName } from '../../../../src/cli/commands/templates/folders.js';

const folderOf = (name: string) => folderNames([name]).get(name);

describe('the folder name of a template', () => {
	it.each([
		['Welcome to #name|friend#!', 'Welcome to #name%7Cfriend#!'],
		['Grüße 🎉', 'Grüße 🎉'],
		['50% off / today', '50%25 off %2F today'],
		['..', '%2E.'],
		['.hidden', '%2Ehidden'],
		['a\x1b\u0085b', 'a%1B%C2%85b'],
		['a\nb', 'a%0Ab'],
		['C:\\x?*"<>|', 'C%3A%5Cx%3F%2A%22%3C%3E%7C'],
		['~', '%7E'],
	])('encodes %j as %j, and can be decoded', (name, folder) => {
		expect(folderOf(name)).toBe(folder);
		expect(templateName(folder)).toBe(name);
	});

	it('may contain a % that is not part of an encoded character', () => {
		expect(['50% off', '%', '%zz', '%FF', '%C3'].map(templateName)).toEqual([
			'50% off',
			'%',
			'%zz',
			'%FF',
			'%C3',
		]);
	});

	it('has a suffix if the template’s name is empty or long, or differs from another only in case or Unicode form', () => {
		const long = `${'x'.repeat(130)}ü/${'y'.repeat(200)}`;
		const folders = folderNames(['Welcome', 'welcome', 'Other', 'caf\u00e9', 'cafe\u0301', long, '']);
		expect([...folders.values()]).toEqual([
			expect.stringMatching(/^Welcome~[0-9a-f]{8}$/),
			expect.stringMatching(/^welcome~[0-9a-f]{8}$/),
			'Other',
			expect.stringMatching(/^caf\u00e9~[0-9a-f]{8}$/),
			expect.stringMatching(/^cafe\u0301~[0-9a-f]{8}$/),
			expect.stringMatching(/^x{130}ü~[0-9a-f]{8}$/),
			expect.stringMatching(/^~[0-9a-f]{8}$/),
		]);
	});

	it('is unique on every file system', () => {
		const name = fc.oneof(
			fc.string({ unit: 'grapheme', minLength: 1, maxLength: 255 }),
			fc.string({ unit: fc.constantFrom(...'aA.~%/ \u0000\n2F'), minLength: 1, maxLength: 8 }),
		);
		fc.assert(
			fc.property(fc.uniqueArray(name, { minLength: 1, maxLength: 20 }), (names) => {
				const folders = folderNames(names);
				expect(new Set([...folders.values()].map(sameFolder)).size).toBe(names.length);
				for (const [given, folder] of folders) {
					expect(folder).toMatch(/^[^.\u0000-\u001f/][^\u0000-\u001f/]*$/);
					expect(Buffer.byteLength(folder)).toBeLessThanOrEqual(143);
					if (!folder.includes('~')) expect(templateName(folder)).toBe(given);
				}
			}),
		);
	});
});
