import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isMbox, splitMbox } from '../../../src/delivery/bounces/mailbox.js';

async function mailsOf(text: string, pieceSize = 10_000): Promise<string[]> {
	async function* pieces() {
		for (let at = 0; at < text.length; at += pieceSize)
			yield Buffer.from(text.slice(at, at + pieceSize), 'latin1');
	}
	const mails: string[] = [];
	for await (const mail of splitMbox(pieces())) mails.push(mail.toString('latin1'));
	return mails;
}

const line = 'From MAILER-DAEMON Fri Jul  8 12:08:34 2011\n';

describe('an mbox', () => {
	it('is recognized by its first line', () => {
		expect(isMbox(Buffer.from(line))).toBe(true);
		expect(isMbox(Buffer.from('From: a@example.com\n'))).toBe(false);
		expect(isMbox(Buffer.alloc(0))).toBe(false);
	});

	it('is split at its From lines, which belong to no mail', async () => {
		expect(await mailsOf(`${line}A: 1\n\none\n\n${line}B: 2\n\ntwo\n`)).toEqual([
			'A: 1\n\none\n',
			'B: 2\n\ntwo\n',
		]);
		const crlf = `${line}A: 1\n\none\n\n${line}B: 2\n\ntwo\n`.replaceAll('\n', '\r\n');
		expect(await mailsOf(crlf)).toEqual(['A: 1\r\n\r\none\r\n', 'B: 2\r\n\r\ntwo\r\n']);
	});

	it('can end without an empty line', async () => {
		expect(await mailsOf(`${line}A: 1\n\none\n`)).toEqual(['A: 1\n\none\n']);
	});

	it('is read with one > removed from each quoted From line', async () => {
		expect(await mailsOf(`${line}A: 1\n\n>From here\n>>From there\n> From\n`)).toEqual([
			'A: 1\n\nFrom here\n>From there\n> From\n',
		]);
	});

	it('is not split at a line of text that begins with From', async () => {
		const text = 'A: 1\n\nFrom now on all is well.\nFrom me at 10:15\n\nFrom you\n';
		expect(await mailsOf(`${line}${text}`)).toEqual([text]);
	});

	it('is split at a complete From line before a header, even without an empty line', async () => {
		const lines = [
			line,
			'From ann@example.org Fri Jul  8 12:08:34 2011\n',
			'From "ann lee"@example.org  Fri Jul 08 12:08 +0200 2011\r\n',
			'From ann@example.org Fri, 8 Jul 2011 12:08:34 +0200\n',
			'From - Fri Jul  8 12:08:34 CEST 2011\n',
			'From uucp!ann Fri Jul  8 12:08:34 2011 remote from uucp\n',
		];
		for (const each of lines)
			expect(await mailsOf(`${line}A: 1\n\none\n${each}B: 2\n\ntwo\n`)).toEqual([
				'A: 1\n\none\n',
				'B: 2\n\ntwo\n',
			]);
	});

	it('is split after the closing boundary of a multipart, even without an empty line', async () => {
		expect(await mailsOf(`${line}A: 1\n\n--b--\n${line}B: 2\n`)).toEqual(['A: 1\n\n--b--\n', 'B: 2\n']);
	});

	it.each([
		['no header follows', 'From ann@example.org Fri Jul  8 12:08:34 2011\nand so on\n'],
		['the line above is dashes', '-----\r\nFrom ann@example.org Fri Jul  8 12:08:34 2011\r\nB: 2\r\n'],
		['nothing follows', 'From ann@example.org Fri Jul  8 12:08:34 2011\n'],
		['the day is invalid', 'From ann@example.org Foo Jul  8 12:08:34 2011\nB: 2\n'],
		['the time is missing', 'From ann@example.org Fri Jul  8 2011\nB: 2\n'],
		['the From line is a sentence', 'From me to you, on Fri Jul  8 12:08:34 2011\nB: 2\n'],
		['the From line is quoted', '> From ann@example.org Fri Jul  8 12:08:34 2011\nB: 2\n'],
	])('is not split at a From line directly below text if %s', async (_, text) => {
		expect(await mailsOf(`${line}A: 1\n\none\n${text}`)).toEqual([`A: 1\n\none\n${text}`]);
	});

	it('is split into the same mails, whatever the size of the chunks', async () => {
		const text = `${line}A: 1\n\none\n\n${line}B: 2\n\n${'x'.repeat(3_000)}\n\n${line}C: 3\n\nthree\n${line}D: 4\n`;
		const whole = await mailsOf(text);
		expect(whole).toHaveLength(4);
		await fc.assert(
			fc.asyncProperty(fc.integer({ min: 1, max: text.length }), async (size) => {
				expect(await mailsOf(text, size)).toEqual(whole);
			}),
		);
	});

	it('yields only the first 4 MiB of a longer mail, and then the next mail', async () => {
		const mails = await mailsOf(`${line}${'y'.repeat(5 * 1024 * 1024)}\n\n${line}B: 2\n`, 65_536);
		expect(mails.map(({ length }) => length)).toEqual([4 * 1024 * 1024, 5]);
	});

	it('has no mails if it has no bytes or only empty lines', async () => {
		expect(await mailsOf('')).toEqual([]);
		expect(await mailsOf('\n\n')).toEqual([]);
	});
});
