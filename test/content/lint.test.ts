import { describe, expect, it } from 'vitest';
import { clippedBytes, contentFindings } from '../../src/content/lint.js';

const findings = (html: string | null, more: { subject?: string; text?: string; bulk?: boolean } = {}) =>
	contentFindings(
		{ subject: more.subject ?? 'News', text: more.text ?? null, html },
		{ bulk: more.bulk ?? false },
	);
const kinds = (html: string | null, more?: Parameters<typeof findings>[1]) =>
	findings(html, more).map(({ kind }) => kind);

describe('the warning about missing files', () => {
	const image = '<p>\n<img src="cid:a.png" alt="">';
	it('names cid: links that no attachment provides', () => {
		const attachments = [{ name: 'b.png', type: 'image/png', sha256: 'x' }];
		const written = { subject: 'News', text: null, html: image, attachments };
		expect(contentFindings(written, { bulk: false })).toEqual([
			{ kind: 'no_file', count: 1, first: { text: 'cid:a.png', line: 2 } },
		]);
	});
});

describe('links that lead nowhere', () => {
	it.each([
		...['', '#', ' # ', 'http:/x', 'http://', 'https:', 'http:x.example', 'example.com', 'www.example.com/a'],
		...[
			'/path',
			'page.html',
			'//example.com',
			'javascript:alert(1)',
			'file:///etc/passwd',
			'localhost:8080/x',
		],
		...['https://exa mple.com/', 'http://[::1', '&#35;', 'h ttp://example.com'],
	])('include %j', (href) => {
		expect(findings(`<p>\n<a href="${href}">x</a>`)).toEqual([
			{ kind: 'no_link', count: 1, first: { text: expect.stringMatching(/^href="/), line: 2 } },
		]);
	});

	it.each([
		...['https://example.com', 'HTTP://example.com/a?b#c', ' https://example.com\n', 'mailto:a@example.com'],
		...[
			'tel:+123',
			'sms:+1',
			'#top',
			'#unsubscribe_url#',
			'#link#/more',
			'https://#host#/x',
			'https://x/#a#',
		],
		...['myapp://open', 'http&#58;//example.com'],
	])('do not include %j', (href) => {
		expect(findings(`<a href="${href}">x</a>`)).toEqual([]);
	});

	it('include an empty href, but neither a missing href nor links in comments and scripts', () => {
		expect(kinds('<a href>x</a>')).toEqual(['no_link']);
		expect(kinds('<a name="x">x</a href="#"><!-- <a href="#"> --><script>"<a href=\'#\'>"</script>')).toEqual(
			[],
		);
	});
});

describe('images', () => {
	it('need an alternative text, which may be empty', () => {
		expect(kinds('<img src="a" alt=""><img alt src="b"><IMG ALT="c">')).toEqual([]);
		expect(findings('<img\nsrc="https://example.com/a.png">\n<img>')).toEqual([
			{ kind: 'no_alt', count: 2, first: { text: 'src="https://example.com/a.png"', line: 1 } },
		]);
	});
});

describe('content', () => {
	it('is reported as clipped if its HTML exceeds 102 KiB', () => {
		expect(kinds('é'.repeat(clippedBytes / 2))).toEqual([]);
		expect(findings(`${'é'.repeat(clippedBytes / 2)}x`)).toEqual([
			{ kind: 'clipped', count: clippedBytes + 1, first: null },
		]);
		expect(kinds(null, { text: 'x'.repeat(200_000) })).toEqual([]);
	});

	it('of bulk mail causes a warning unless one of its bodies has an unsubscribe variable', () => {
		expect(kinds(null, { text: 'Hi', bulk: true })).toEqual(['no_unsubscribe']);
		expect(kinds('<a href="#unsubscribe_url#">x</a>', { text: 'Hi', bulk: true })).toEqual([]);
		expect(kinds(null, { text: '#unsubscribe_url|x#', bulk: true })).toEqual([]);
	});

	it('is checked in linear time', () => {
		for (const piece of ['<a href="', '<img ', '<a href=#x ', "<a href='&#x", '<a href="http:', '<!--'])
			expect(Array.isArray(findings(piece.repeat(200_000)))).toBe(true);
	});
});
