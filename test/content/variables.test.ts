import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { usedVariables } from '../../src/api/variables.js';
import { compileContent } from '../../src/content/compile.js';
import { readHere } from '../support/read-here.js';
import { content, envelope, hostileValue, recipient } from './support.js';

async function shown(html: string, variables: Record<string, string>): Promise<string | null> {
	const compiled = await compileContent(content({ html }), readHere);
	return compiled.preview({ variables }).html;
}

async function shownText(text: string, variables: Record<string, string>): Promise<string> {
	const compiled = await compileContent(content({ text }), readHere);
	return compiled.preview({ variables }).text;
}

describe('variables', () => {
	it.each([
		['#a##b#', 'AB'],
		['#a#b#', 'Ab#'],
		['##a#', '#A'],
		['#a', '#a'],
		['#1a#', '#1a#'],
		['# a#', '# a#'],
		['#unknown# #a#', '#unknown# A'],
		['color:#fff;background:#a0b0c0;', 'color:#fff;background:#a0b0c0;'],
		['see #top and #a#', 'see #top and A'],
		[`#${'a'.repeat(65)}#`, `#${'a'.repeat(65)}#`],
		['#é#', '#é#'],
		['', ''],
	])('in %j are found from left to right', async (written, expected) => {
		expect(await shownText(written, { a: 'A', b: 'B' })).toBe(expected);
	});

	it('are filled in once: a value that looks like a variable is not replaced', async () => {
		expect(await shownText('#a##b#', { a: '#b#', b: '#a#' })).toBe('#b##a#');
		expect(await shownText('#a#x#b#', { a: '#', b: '$&' })).toBe('#x$&');
	});

	it('are listed once each, in order of appearance', () => {
		expect(usedVariables({ subject: '#s# #a#', text: '#b# #a#', html: '<a href="#c#">#b#</a>' })).toEqual([
			's',
			'a',
			'b',
			'c',
		]);
	});

	it.each([
		['#a|friend#', { a: 'Ann' }, 'Ann'],
		['#a|friend#', {}, 'friend'],
		['#a|friend#', { a: '' }, 'friend'],
		['#a|friend#', { a: ' \t' }, 'friend'],
		['#a|it’s you, dear friend!#', {}, 'it’s you, dear friend!'],
		["#a|it's#", {}, "it's"],
		['#a|#', {}, ''],
		['#a|x##b|y#', { b: 'B' }, 'xB'],
		['#a|b#c#', {}, 'bc#'],
		['#a|#b##', { b: 'B' }, 'b##'],
		['#a|x|y#', {}, '#a|x|y#'],
		['#a|x\ny#', {}, '#a|x\ny#'],
		['#a|<b>#', {}, '#a|<b>#'],
		['#|x# #1|x# # a|x#', {}, '#|x# #1|x# # a|x#'],
		[`#a|${'d'.repeat(100)}#`, {}, 'd'.repeat(100)],
		[`#a|${'d'.repeat(101)}#`, {}, `#a|${'d'.repeat(101)}#`],
		['#constructor|own#', {}, 'own'],
	])('in %j with the values %j give %j', async (written, variables, expected) => {
		expect(await shownText(written, variables)).toBe(expected);
	});

	it('cannot have a default that would end the surrounding attribute', async () => {
		const link = 'javascript:alert(1)';
		for (const html of [
			`<a href='#u|it's#'>x</a>`,
			'<a href="x" title=\'#u|a\' b#>x</a>',
			"<a href='#u|a b' c#>x</a>",
		])
			expect(await shown(html, { u: link })).toBe(html);
		expect(await shown('<a href=#u|my friend#>x</a>', { u: link })).toBe('<a href="#u|my" friend#>x</a>');
		expect(await shown('<a href=#u|https://x.example#>x</a>', { u: link })).toBe('<a href="#">x</a>');
		expect(await shown('<a href="#u|javascript:alert(1)#">x</a>', {})).toBe('<a href="#">x</a>');
	});

	it('are escaped in html, attributes and style, and raw in text', async () => {
		const v = `<b>&"'`;
		expect(await shown(`<p title='#v#' style="x:#v#">#v#</p>`, { v })).toBe(
			`<p title='&lt;b&gt;&amp;&quot;&#39;' style="x:&lt;b&gt;&amp;&quot;&#39;">&lt;b&gt;&amp;&quot;&#39;</p>`,
		);
		expect(await shownText('#v#', { v })).toBe(v);
	});

	it('put neither a line break nor a control character into a subject', async () => {
		const compiled = await compileContent(content({ subject: 'Hi #v#!', text: 'x' }), readHere);
		expect(compiled.preview({ variables: { v: 'a\r\nBcc: x@y.z\u0000\u001b[1m\u2028c' } }).subject).toBe(
			'Hi a Bcc: x@y.z[1m c!',
		);
	});

	it('in an unquoted attribute add quotes around the attribute’s value', async () => {
		expect(await shown('<a href=#u# class=x>', { u: 'https://x.y/ onclick=alert(1)' })).toBe(
			'<a href="https://x.y/ onclick=alert(1)" class=x>',
		);
		expect(await shown('<a href=#u# class=x>', { u: '' })).toBe('<a href="" class=x>');
		expect(await shown('<a href=&amp;#u# class=x>', { u: 'a b' })).toBe('<a href="&amp;a b" class=x>');
		expect(await shown('<a href=x href=#u#>', { u: 'a b' })).toBe('<a href=x href="a b">');
	});
});

describe('a variable at the start of a link', () => {
	it.each([
		'https://example.com/?a=b',
		'HTTP://example.com',
		'mailto:a@b.c',
		'tel:+49123',
		'/path:with/colon',
		'path?x=javascript:',
		'#javascript:',
		'//example.com/x',
		'',
	])('can have the value %j', async (u) => {
		const escaped = u.replaceAll('&', '&amp;');
		expect(await shown('<a href="#u#">x</a>', { u })).toBe(`<a href="${escaped}">x</a>`);
	});

	it.each([
		'javascript:alert(1)',
		' JavaScript:alert(1)',
		'\u0001javascript:alert(1)',
		'java\nscript:alert(1)',
		'java\tscript:x',
		'data:text/html,x',
		'vbscript:x',
		'file:///etc/passwd',
		'cid:x',
		'sms:1',
		'example.com:80/x',
		'\u200bjavascript:x',
	])('is replaced with # if its value is %j', async (u) => {
		expect(await shown('<a href="#u#">x</a>', { u })).toBe('<a href="#">x</a>');
		expect(await shown("<img src=' #u#'>", { u })).toBe("<img src=' #'>");
		expect(await shown('<a href=#u#>x</a>', { u })).toBe('<a href="#">x</a>');
	});

	it('is checked together with the text beside it', async () => {
		expect(await shown('<a href="#a##b#">', { a: 'java', b: 'script:x' })).toBe('<a href="#script:x">');
		expect(await shown('<a href="#a#://x">', { a: 'https' })).toBe('<a href="https://x">');
		expect(await shown('<a href="#a#:x">', { a: 'javascript' })).toBe('<a href="#:x">');
		expect(await shown('<a href="#a#&colon;x">', { a: 'javascript' })).toBe('<a href="#&colon;x">');
		expect(await shown('<a href="java#a#">', { a: 'script:x' })).toBe('<a href="java#">');
		expect(await shown('<a href="https://x/#a#">', { a: 'javascript:x' })).toBe(
			'<a href="https://x/javascript:x">',
		);
		expect(await shown('<a title="#a#">', { a: 'javascript:x' })).toBe('<a title="javascript:x">');
	});

	it('never adds a tag, an attribute or an unsafe scheme, whatever its value is', async () => {
		const forms = [
			'<a href="#a##b#">t</a>',
			"<a href='#a#:#b#'>t</a>",
			'<a href=#a#/#b# x=#b#>t</a>',
			'<img src=" &#x20;#a#">',
			'<a href="#a|x##b|y:z#">t</a>',
			"<a href='#a|it##b|s#'>t</a>",
			'<a href=#a|x#/#b|y# x=#b|y#>t</a>',
		];
		await fc.assert(
			fc.asyncProperty(fc.constantFrom(...forms), hostileValue, hostileValue, async (form, a, b) => {
				const tags: [string, string[]][] = [];
				const links: string[] = [];
				const parser = new Parser({
					onopentag: (name, attributes) => {
						tags.push([name, Object.keys(attributes)]);
						links.push(attributes['href'] ?? attributes['src'] ?? '');
					},
				});
				parser.end((await shown(form, { a, b })) ?? undefined);
				expect(tags).toEqual([
					form.startsWith('<img') ? ['img', ['src']] : ['a', form.includes('x=') ? ['href', 'x'] : ['href']],
				]);
				for (const link of links) {
					if (!URL.canParse(link, 'https://base.example/')) continue;
					expect(['http:', 'https:', 'mailto:', 'tel:']).toContain(
						new URL(link, 'https://base.example/').protocol,
					);
				}
			}),
			{ numRuns: 200 },
		);
	});
});

describe('a value in a URL', () => {
	const url = 'https://y.example/?a=b+c&d';
	const variables = { name: 'Ann & Bob #1', email: 'a+b@example.org', url, note: "l\n(it's)" };
	const name = 'Ann%20%26%20Bob%20%231';

	it.each([
		['https://x.example/?e=#email#&n=#name#', `https://x.example/?e=a%2Bb%40example.org&n=${name}`],
		['https://x.example/#name#', 'https://x.example/Ann & Bob #1'],
		['https://x.example/?n=x&m=#note#', 'https://x.example/?n=x&m=l%0D%0A%28it%27s%29'],
		['https://x.example/?n=#missing|a b#', 'https://x.example/?n=a%20b'],
		['https://x.example/?to=#url#', 'https://x.example/?to=https%3A%2F%2Fy.example%2F%3Fa%3Db%2Bc%26d'],
		['https://x.example/?n=#gone#', 'https://x.example/?n=#gone#'],
		['mailto:x@example.com?subject=#name#&body=b', `mailto:x@example.com?subject=${name}&body=b`],
		['MAILTO:#email#', 'MAILTO:a%2Bb%40example.org'],
		['#url#', url],
		['#url#&n=#name#', `${url}&n=${name}`],
		['tel:#name#', 'tel:Ann & Bob #1'],
	])('is percent-encoded only in a query string or a mailto link: %s', async (written, filled) => {
		const amp = (text: string) => text.replaceAll('&', '&amp;');
		for (const tag of ['a href', 'img src', 'form action'])
			expect(await shown(`<${tag}="${amp(written)}">`, variables)).toBe(`<${tag}="${amp(filled)}">`);
		const text = `Really? #name#: <${written}>, #name#`;
		const compiled = await compileContent(content({ text }), readHere);
		const mail = await PostalMime.parse(compiled.join(envelope(), recipient({ variables })));
		expect(mail.text?.trim()).toBe(`Really? Ann & Bob #1: <${filled}>, Ann & Bob #1`);
	});
});
