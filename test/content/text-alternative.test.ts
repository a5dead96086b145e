// The text made from HTML reads like a text.
import { describe, expect, it } from 'vitest';
import { textAlternative } from '../../src/content/text-alternative.js';
import { hasCorpora, templates } from './support.js';

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
		['', ''],
	])('of %j is %j', (html, text) => {
		expect(textAlternative(html)).toBe(text);
	});

	it('breaks no word, whatever it says', () => {
		const link = `https://shop.example/undefined/${'a'.repeat(100)}`;
		expect(textAlternative(`<p>See <a href="${link}">this</a></p>`)).toBe(`See this\n[${link}]`);
	});

	it.each([
		['pictures', '<img src="x.png" alt="abcdefghijklmnop">', 'abcdefghijklmnop'],
		['linked pictures', '<a href="https://x.example/a"><img src=x></a>', 'https://x.example/a'],
		['pieces of one word', '<i>abcdefgh</i>', 'abcdefgh'],
		['single letters', '<b>x</b>', 'x'],
		['blanks that are none', '<sup>1</sup>&nbsp;', '1'],
	])('says all of two mebibytes of %s', (_, piece, shown) => {
		const count = Math.floor((2 * 1024 * 1024) / piece.length);
		expect(textAlternative(piece.repeat(count)).split(shown).length - 1).toBe(count);
	});

	it('wraps what is long, and leaves alone what holds an endless word', () => {
		const words = 'abc '.repeat(30_000);
		const lines = textAlternative(`<p>${words}</p>`).split('\n');
		expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(78);
		const endless = '<i>abc</i>'.repeat(30_000);
		expect(textAlternative(`<p>${words}</p><p>${endless}</p>`)).toBe(
			`${words.trim()}\n\n${'abc'.repeat(30_000)}`,
		);
	});

	it('survives 50,000 nested elements', () => {
		expect(textAlternative(`${'<div>'.repeat(50_000)}x`).length).toBeLessThan(100);
	});

	it.skipIf(!hasCorpora)(
		'of real templates has words, links and variables, and no markup (needs the corpora)',
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
