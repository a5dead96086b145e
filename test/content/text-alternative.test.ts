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
		['<div style="DISPLAY: none">hidden</div>seen', 'seen'],
		['<style>p{}</style><script>x</script><title>t</title><body>b</body>', 'b'],
		['<ul><li>a</li><li>b</li></ul>', '* a\n * b'],
		['<!--[if mso]>old<![endif]-->new', 'new'],
		['', ''],
	])('of %j is %j', (html, text) => {
		expect(textAlternative(html)).toBe(text);
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
