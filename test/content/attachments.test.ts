import { createHash } from 'node:crypto';
import fc from 'fast-check';
import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import type { Attachment } from '../../src/api/attachments.js';
import type { Content } from '../../src/api/messages.js';
import { cidFaults, encodeFile } from '../../src/content/attachments.js';
import { compileContent } from '../../src/content/compile.js';
import { contentSha256 } from '../../src/content/hash.js';
import { decodeKey, generateKey } from '../../src/delivery/dkim/keys.js';
import { signMessage } from '../../src/delivery/dkim/sign.js';
import { readHere } from '../support/read-here.js';
import { hasPython, type MimeNode, pythonReads } from './python-reader.js';
import { content, envelope, recipient } from './support.js';

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface File extends Attachment {
	bytes: Buffer;
}

const file = (name: string, type = 'application/pdf', bytes = Buffer.from(`bytes of ${name}`)): File => ({
	name,
	type,
	sha256: hashOf(bytes),
	bytes,
});

async function pieces(over: Partial<Content>, files: readonly File[], tracking = null) {
	const attachments = files.map(({ bytes: _, ...named }) => named);
	const compiled = await compileContent(content({ ...over, attachments }), readHere);
	const to = recipient({ tracking });
	const encoded = new Map(files.map(({ sha256, bytes }) => [sha256, encodeFile(bytes)]));
	return { head: compiled.join(envelope(), to), rest: compiled.rest(encoded, to) };
}

async function join(over: Partial<Content>, files: readonly File[]): Promise<Buffer> {
	const { head, rest } = await pieces(over, files);
	return Buffer.concat([head, ...rest]);
}

const leaf = (type: string, one?: File, how = 'attachment', id: string | null = null): MimeNode => ({
	type,
	name: one?.name ?? null,
	id,
	how: one === undefined ? null : how,
	sha256: one === undefined ? expect.any(String) : one.sha256,
});
const node = (type: string, ...parts: MimeNode[]): MimeNode => ({
	type,
	name: null,
	id: null,
	how: null,
	parts,
});
const [text, html] = [leaf('text/plain'), leaf('text/html')];
const logo = file('logo.png', 'image/png');
const report = file('report.pdf');
const image = '<p>x<img src="cid:logo.png" alt=""></p>';
const inline = leaf('image/png', logo, 'inline', '<logo.png>');

describe.skipIf(!hasPython)('the MIME structure of a message with files', () => {
	it.each<[what: string, over: Partial<Content>, files: File[], tree: MimeNode]>([
		['a text', { text: 'T' }, [report], node('multipart/mixed', text, leaf('application/pdf', report))],
		[
			'a text and HTML',
			{ text: 'T', html: '<p>x</p>' },
			[report, logo],
			node(
				'multipart/mixed',
				node('multipart/alternative', text, html),
				leaf('application/pdf', report),
				leaf('image/png', logo),
			),
		],
		[
			'an image in the HTML',
			{ text: 'T', html: image },
			[logo],
			node('multipart/alternative', text, node('multipart/related', html, inline)),
		],
		[
			'an image in the HTML and another file',
			{ text: 'T', html: image },
			[logo, report],
			node(
				'multipart/mixed',
				node('multipart/alternative', text, node('multipart/related', html, inline)),
				leaf('application/pdf', report),
			),
		],
	])('is parsed by Python as expected for %s', async (_, over, files, tree) => {
		const [read] = pythonReads([await join(over, files)]);
		expect(read).toMatchObject({ defects: [], tree });
	});

	it('keeps the name of a file, whatever characters the name has', async () => {
		const names = [
			'plain.pdf',
			'with "quotes" and \\.pdf',
			'Übersicht 2026.pdf',
			`${'日本語のとても長い名前'.repeat(12)}.pdf`,
			'Отчёт за ноябрь.xlsx',
			`${'a'.repeat(250)}.txt`,
			"it's 100% *done*; really.pdf",
			'😀😀.png',
			'=?utf-8?Q?x?=.pdf',
		];
		const messages = await Promise.all(names.map((name) => join({ text: 'T' }, [file(name)])));
		const read = pythonReads(messages).map(({ defects, tree }) => ({
			defects,
			name: tree?.parts?.[1]?.name,
		}));
		expect(read).toEqual(names.map((name) => ({ defects: [], name })));
	});
});

it('a message preserves a file’s name and bytes, and consists of ASCII lines of at most 998 characters', async () => {
	const name = fc
		.string({ unit: 'binary', minLength: 1, maxLength: 60 })
		.map((given) => given.replace(/[\p{C}\p{Z}/\\]/gu, ''))
		.filter((given) => given !== '');
	await fc.assert(
		fc.asyncProperty(name, fc.uint8Array({ maxLength: 500 }), async (given, bytes) => {
			const one = file(given, 'application/octet-stream', Buffer.from(bytes));
			const raw = await join({ text: 'T', html: '<p>é</p>' }, [one]);
			const lines = raw.toString('latin1').split('\r\n');
			expect(lines.every((line) => line.length <= 998 && /^[\t -~]*$/.test(line))).toBe(true);
			const [parsed] = (await PostalMime.parse(raw)).attachments;
			expect(parsed?.filename).toBe(given);
			expect(Buffer.from(parsed?.content as ArrayBuffer).equals(one.bytes)).toBe(true);
		}),
		{ numRuns: 60 },
	);
});

it('a DKIM signature over the pieces of a message equals one over the whole message', async () => {
	const { secret } = await generateKey('ed25519');
	const key = { domain: 'example.com', selector: 's', type: 'ed25519' as const, key: decodeKey(secret) };
	for (const over of [{ text: 'T  \n\n' }, { text: '', html: image }]) {
		const { head, rest } = await pieces(over, [
			file('two  blanks .pdf'),
			logo,
			file('é  é.txt'),
			file('0', 'a/b', Buffer.alloc(0)),
		]);
		const whole = await signMessage(Buffer.concat([head, ...rest]), [key]);
		expect(Buffer.concat([await signMessage(head, [key], rest), ...rest]).equals(whole)).toBe(true);
	}
});

it('messages share the encoded bytes of files', async () => {
	const compiled = await compileContent(content({ text: '#name#', attachments: [report] }), readHere);
	const encoded = new Map([[report.sha256, encodeFile(report.bytes)]]);
	const of = () => compiled.rest(encoded, recipient()).find((piece) => piece === encoded.get(report.sha256));
	expect(of()).toBe(of());
	expect(of()).toBeDefined();
});

describe('the content hash', () => {
	const plain = { subject: 'S', text: 'T', html: null, disable_inline: false };
	const { bytes: _, ...named } = report;
	it.each([
		{ name: 'other.pdf' },
		{ type: 'text/plain' },
		{ sha256: hashOf(Buffer.from('x')) },
		{ content_id: 'x' },
	])('changes if an attachment gets %j', (change) => {
		const one = contentSha256({ ...plain, attachments: [named] });
		expect(contentSha256({ ...plain, attachments: [{ ...named, ...change }] })).not.toBe(one);
	});
});

describe('cid: links', () => {
	const names = (...given: string[]) => given.map((name) => ({ name }));
	it.each([
		['<img src="cid:a.png">', ['a.png'], { unknown: [], unclear: [] }],
		["<img src='cid:a%20b.png'>", ['a b.png'], { unknown: [], unclear: [] }],
		['<img src="cid:a&amp;b.png">', ['a&b.png'], { unknown: [], unclear: [] }],
		['<td style="background:url(cid:a.png)">', ['a.png'], { unknown: [], unclear: [] }],
		['<img src="CID:b.png"><img src=cid:b.png>', ['a.png'], { unknown: ['b.png'], unclear: [] }],
		['<img src="cid:a.png">', ['a.png', 'a.png'], { unknown: [], unclear: ['a.png'] }],
		['<p>acid:rain is no link</p>', [], { unknown: [], unclear: [] }],
	])('in %s are checked against the file names %j', (written, given, faults) => {
		expect(cidFaults(written, names(...given))).toEqual(faults);
	});
});
