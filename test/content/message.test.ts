import { describe, expect, it } from 'vitest';
import type { Content, Envelope } from '../../src/api/messages.js';
import { compileContent } from '../../src/content/compile.js';
import type { Recipient } from '../../src/content/types.js';
import { readHere } from '../support/read-here.js';
import { content, envelope, longestBodyLine, recipient, wireProblems } from './support.js';

async function written(
	over: Partial<Content>,
	sender: Partial<Envelope> = {},
	person: Partial<Recipient> = {},
): Promise<string> {
	const compiled = await compileContent(content(over), readHere);
	const message = compiled.join(envelope(sender), recipient(person));
	expect(wireProblems(message)).toEqual([]);
	return message.toString('latin1');
}

function encodings(message: string): string[] {
	return [...message.matchAll(/Content-Transfer-Encoding: (\S+)/g)].map((match) => match[1] ?? '');
}

describe('a message', () => {
	it('is written to shared memory if it fits, and to new memory otherwise', async () => {
		const compiled = await compileContent(
			content({ text: 'Dear #name#,\n.é\n', html: '<p>Dear #name#</p>' }),
			readHere,
		);
		const person = recipient({ variables: { name: 'Ada'.repeat(40) } });
		const own = compiled.join(envelope(), person);
		const memory = Buffer.from(new SharedArrayBuffer(own.length + 3));
		const there = compiled.join(envelope(), person, memory.subarray(3));
		expect([there.buffer, there.byteOffset]).toEqual([memory.buffer, 3]);
		expect(there.equals(own)).toBe(true);
		for (let length = 0; length < own.length; length += 7)
			expect(compiled.join(envelope(), person, memory.subarray(0, length)).equals(own)).toBe(true);
	});

	it('with plain text has a single part, byte for byte as expected', async () => {
		expect(await written({ subject: 'Hi', text: 'one\ntwo\r\n' })).toBe(
			[
				'Date: Fri, 02 Jan 2026 03:04:05 +0000',
				'From: News <news@example.com>',
				'To: ada@example.org',
				'Subject: Hi',
				'Message-ID: <5f0c7b1e@mail.example.com>',
				'MIME-Version: 1.0',
				'Content-Type: text/plain; charset=us-ascii',
				'Content-Transfer-Encoding: 7bit',
				'',
				'one',
				'two',
				'',
			].join('\r\n'),
		);
	});

	it('with HTML gets a text alternative as its first part', async () => {
		const message = await written(
			{ html: '<h1>News</h1><p>Go <a href="#url#">there</a></p>' },
			{},
			{ variables: { url: 'https://x.y/' } },
		);
		expect([...message.matchAll(/^Content-Type: ([^;]+)/gm)].map((match) => match[1])).toEqual([
			'multipart/alternative',
			'text/plain',
			'text/html',
		]);
		expect(message).toContain('\r\nNews\r\n\r\nGo there [https://x.y/]\r\n');
	});

	it('has no text alternative if its HTML has no visible text', async () => {
		expect(await written({ html: '<img src="x.png">' })).toContain(
			'\r\nContent-Type: text/html; charset=us-ascii\r\n',
		);
	});

	it.each([
		['ASCII in short lines', 'abc', '7bit'],
		['a line over 998', 'x'.repeat(999), 'quoted-printable'],
		['a line that begins with From', 'a\nFrom me', 'quoted-printable'],
		['a line that begins with a dot', 'a\n.b', 'quoted-printable'],
		['some umlauts', 'Grüße aus Köln, und noch viel mehr Text', 'quoted-printable'],
		['a variable', 'Dear #name#', 'quoted-printable'],
		['mostly beyond ASCII', '日本語のテキスト'.repeat(20), 'base64'],
		['mostly beyond ASCII with a variable', `${'日本語のテキスト'.repeat(20)}#name#`, 'base64'],
		['a control character', 'a\u0007b', 'quoted-printable'],
	])('has a transfer encoding that suits %s', async (_kind, text, encoding) => {
		const message = await written({ text }, {}, { variables: { name: 'x' } });
		expect(encodings(message)).toEqual([encoding]);
		if (encoding !== '7bit') expect(longestBodyLine(Buffer.from(message))).toBeLessThanOrEqual(76);
	});

	it('has a boundary that depends on its content and that no part contains', async () => {
		const first = await written({ text: 'a', html: 'b' });
		const boundary = /boundary="([^"]+)"/.exec(first)?.[1] ?? '';
		expect(boundary).toMatch(/^=_[0-9a-f]{32}$/);
		expect(await written({ text: 'a', html: 'b' })).toBe(first);
		expect(await written({ text: 'a', html: 'c' })).not.toContain(boundary);
		const attacked = await written(
			{ text: 'a #v#', html: 'b #v#' },
			{},
			{ variables: { v: `\n--${boundary}--\n` } },
		);
		const own = /boundary="([^"]+)"/.exec(attacked)?.[1] ?? '';
		expect(attacked.split(`--${own}`)).toHaveLength(4);
	});
});

describe('header fields', () => {
	it('carry addresses with quoted names and punycode domains', async () => {
		const message = await written(
			{ text: 'x' },
			{ from: 'Doe, "J" <j@bücher.example>', reply_to: ['a@x.y', 'Änne <b@x.y>'], cc: ['"C, D" <c@x.y>'] },
			{ to: 'Ada King <ada@example.org>' },
		);
		expect(message).toContain('From: "Doe, \\"J\\"" <j@xn--bcher-kva.example>\r\n');
		expect(message).toContain('To: Ada King <ada@example.org>\r\n');
		expect(message).toContain('Cc: "C, D" <c@x.y>\r\n');
		expect(message).toContain('Reply-To: a@x.y, =?UTF-8?B?w4RubmU=?= <b@x.y>\r\n');
	});

	it('never contain bcc recipients', async () => {
		const message = await written({ text: 'x' }, { bcc: ['hidden@example.com'] });
		expect(message).not.toMatch(/bcc|hidden/i);
		await expect(written({ text: 'x' }, { headers: { bCc: 'a@b.c' } })).rejects.toThrow('cannot be set');
	});

	it('include the two fields of one-click unsubscribing if a link is given', async () => {
		const message = await written({ text: 'x' }, {}, { listUnsubscribeUrl: 'https://x.y/u/t' });
		expect(message).toContain(
			'\r\nList-Unsubscribe: <https://x.y/u/t>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n',
		);
	});

	it('fold at 78 characters and unfold to the same text', async () => {
		const subject = 'word  '.repeat(60).trim();
		const message = await written({ subject, text: 'x' });
		const field = /Subject:((?:.|\r\n )*?)\r\n(?! )/.exec(message)?.[1] ?? '';
		expect(field.replaceAll('\r\n', '').trim()).toBe(subject);
		expect(message.split('\r\n').every((line) => line.length <= 78)).toBe(true);
	});

	it('fold after the colon if the name and the value do not fit on one line', async () => {
		const message = await written(
			{ text: 'x' },
			{ headers: { [`X-${'n'.repeat(198)}`]: 'w'.repeat(900), 'X-Short': 'w'.repeat(75) } },
		);
		expect(message).toContain(`\r\nX-${'n'.repeat(198)}:\r\n ${'w'.repeat(900)}\r\n`);
		expect(message).toContain(`\r\nX-Short:\r\n ${'w'.repeat(75)}\r\n`);
	});

	it.each<[string, Partial<Envelope>, Partial<Recipient>]>([
		['a value', { headers: { 'X-A': 'a\r\nBcc: b@c.d' } }, {}],
		['a bare LF in a value', { headers: { 'X-A': 'a\nb' } }, {}],
		['NUL in a value', { headers: { 'X-A': 'a\0b' } }, {}],
		['a field name', { headers: { 'X-A: b\r\nBcc': 'x' } }, {}],
		['From', { from: 'a\r\nBcc: x <a@b.c>' }, {}],
		['a name in To', {}, { to: 'a\nb <a@b.c>' }],
		['an address', {}, { to: 'a@b.c>\r\nRCPT TO:<evil@x' }],
		['two addresses', {}, { to: 'a@b.c, d@e.f' }],
		['Reply-To', { reply_to: ['a@b.c\r\nX: y'] }, {}],
		['a Message-ID', {}, { messageId: 'a\r\nb' }],
		['a link', {}, { listUnsubscribeUrl: 'https://x/\r\nBcc: a@b.c' }],
		['a reserved field', { headers: { 'Content-Type': 'text/html' } }, {}],
	])('reject an injection through %s', async (_where, sender, person) => {
		await expect(written({ text: 'x' }, sender, person)).rejects.toThrow();
	});
});
