import { describe, expect, it } from 'vitest';
import { compileContent } from '../../src/content/compile.js';
import { textAlternative } from '../../src/content/text-alternative.js';
import { readHere } from '../support/read-here.js';
import { content, hasCorpora, templates } from './support.js';

describe('the text alternative', () => {
	it.each([
		['<h1>Big News</h1><p>a</p>', 'Big News\n\na'],
		['<a href="https://x.y/">here</a>', 'here [https://x.y/]'],
		['<a href="https://x.y/">https://x.y/</a>', 'https://x.y/'],
		['<a href="#link#">here</a>', 'here [#link#]'],
		['<a href="#top">up</a>', 'up'],
		['<a href="#top#/x?a=1&amp;b=#b#">up</a> &lt;#name#&gt;', 'up [#top#/x?a=1&b=#b#] <#name#>'],
		['<img src="x.png" alt="A cat"><img src="y.png">', 'A cat'],
		[
			'<a href="https://x.y/a"><img src="a.png"></a><a href="https://x.y/b"><img alt="B"></a>',
			'https://x.y/a B [https://x.y/b]',
		],
		['a<img alt="picture">b', 'a picture b'],
		['<div style="DISPLAY: none">hidden</div>seen', 'seen'],
		['<style>p{}</style><script>x</script><title>t</title><body>b</body>', 'b'],
		['<ul><li>a</li><li>b</li></ul>', '* a\n * b'],
		['<!--[if mso]>old<![endif]-->new', 'new'],
		['<table><tr><th>A</th><th>B</th></tr><tr><td>2</td><td>19.90</td></tr></table>', 'A B\n2 19.90'],
		['<dl><dt>Price</dt><dd>19.90</dd><dt>Tax</dt><dd>2</dd></dl>', 'Price\n19.90\nTax\n2'],
		['<a href="mailto:a@e.example?subject=Hi%20there&amp;body=x">write</a>', 'write [a@e.example]'],
		['<a href="MailTo:a%2Bb@e.example">a+b@e.example</a>', 'a+b@e.example'],
		['<a href="mailto:?subject=Hi%20there">tell a friend</a>', 'tell a friend [mailto:?subject=Hi%20there]'],
		['<a href="mailto:#email#?subject=x">you</a>', 'you [#email#]'],
		['<a href="tel:+123">+123</a>, <a href="tel:+47%2022">+47 22</a>', '+123, +47 22'],
		['<a href="tel:+123">call</a>', 'call [+123]'],
		['<a href=" https://e.example/\t">b</a>', 'b [https://e.example/]'],
		['<a href="https://e.example/a b c">c</a>', 'c [https://e.example/a%20b%20c]'],
		['<a href="mailto:100%@e.example">c</a>', 'c [100%@e.example]'],
		['', ''],
	])('of %j is %j', (html, text) => {
		expect(textAlternative(html)).toBe(text);
	});

	it.each([
		['<a href="//host/?a=#q#">x</a>', 'x [//host/?a=a%20b]'],
		['<a href="/page?n=1&amp;a=#q#">x</a> see: #q#', 'x [/page?n=1&a=a%20b] see: a b'],
	])('of %j with its values is %j', async (html, text) => {
		const compiled = await compileContent(content({ html }), readHere);
		expect(compiled.preview({ variables: { q: 'a b' } }).text).toBe(text);
	});

	it.each([
		['pictures', '<img src="x.png" alt="abcdefghijklmnop">', 'abcdefghijklmnop'],
		['linked images', '<a href="https://x.example/a"><img src=x></a>', 'https://x.example/a'],
		['fragments of one word', '<i>abcdefgh</i>', 'abcdefgh'],
		['single letters', '<b>x</b>', 'x'],
		['no-break spaces', '<sup>1</sup>&nbsp;', '1'],
	])('loses none of the %s in 1 MiB of HTML', (_, piece, shown) => {
		const count = Math.floor((1024 * 1024) / piece.length);
		expect(textAlternative(piece.repeat(count)).split(shown).length - 1).toBe(count);
	});

	it('wraps lines at 78 characters, but wraps nothing if one word has 90,000 characters', () => {
		const words = 'abc '.repeat(30_000);
		const lines = textAlternative(`<p>${words}</p>`).split('\n');
		expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78);
		const endless = '<i>abc</i>'.repeat(30_000);
		expect(textAlternative(`<p>${words}</p><p>${endless}</p>`)).toBe(
			`${words.trim()}\n\n${'abc'.repeat(30_000)}`,
		);
	});

	it('survives 20,000 nested elements', () => {
		expect(textAlternative(`${'<div>'.repeat(20_000)}x`).length).toBeLessThan(100);
	});

	it.skipIf(!hasCorpora)(
		'of real templates has text and variables, but no markup (needs the corpora)',
		() => {
			for (const { html } of templates()) {
				const text = textAlternative(html);
				expect(text.length).toBeGreaterThan(200);
				expect(text).toContain('#name#');
				expect(text).not.toMatch(/<\/?(td|table|p|div|style)\b|[\ue000\ue001]|\n{3}|&nbsp;/);
			}
		},
	);
});

it.each([
	['<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">', 'text/html; charset=utf-8'],
	[
		'<META CONTENT=text/html;charset=windows-1252 http-equiv=content-type>',
		'CONTENT=text/html;charset=utf-8 ',
	],
	["<meta charset='latin1'>", "<meta charset='utf-8'>"],
	['<meta charset="UTF-8"><meta content="charset">', '<meta charset="UTF-8"><meta content="charset">'],
])('the charset that %s declares becomes UTF-8', async (meta, declared) => {
	const html = `<head>${meta}</head><body>é</body>`;
	const shown = (await compileContent(content({ html }), readHere)).preview({ variables: {} }).html ?? '';
	expect(shown).toContain(declared);
	expect(shown).not.toMatch(/iso-8859|windows|latin/);
});
