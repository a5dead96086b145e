import { describe, expect, it } from 'vitest';
import { markdownBodies } from '../../src/content/markdown.js';

function bodyOf(markdown: string): string {
	const { html } = markdownBodies(markdown);
	return html.slice(html.indexOf('align="left">\n') + 14, html.indexOf('\n</td></tr></table>\n<!--'));
}

describe('markdown', () => {
	it('becomes the text and the HTML body', () => {
		const { html, text, heading } = markdownBodies(
			'# News\n\nHi **Ann**, see [us](https://example.com/a).\n',
		);
		expect(heading).toBe('News');
		expect(text).toBe('News\n\nHi Ann, see us [https://example.com/a].');
		expect(html).toContain(
			'<h1>News</h1>\n<p>Hi <strong>Ann</strong>, see <a href="https://example.com/a">us</a>.</p>',
		);
		expect(html).toContain('<title>News</title>');
	});

	it.each([
		['#name# at the beginning', '<p>#name# at the beginning</p>'],
		['# Hello #name#', '<h1>Hello #name#</h1>'],
		['_#first_name#_ **#a##b#**', '<p><em>#first_name#</em> <strong>#a##b#</strong></p>'],
		['[leave](#unsubscribe_url#)', '<p><a href="#unsubscribe_url#">leave</a></p>'],
		['[x](https://example.com/#city#?a=#b#)', '<p><a href="https://example.com/#city#?a=#b#">x</a></p>'],
		['`#name|dear friend#`', '<p><code>#name|dear friend#</code></p>'],
		['![#alt#](#picture#)', '<p><img src="#picture#" alt="#alt#"></p>'],
		['qvar0z #name#', '<p>qvar0z #name#</p>'],
		['    #name#', '<pre><code>#name#\n</code></pre>'],
	])('keeps the variables of %j', (markdown, html) => {
		expect(bodyOf(markdown)).toBe(html);
	});

	it('keeps the rows of a table in the text body', () => {
		const { text } = markdownBodies('| Plan | Price |\n|---|---:|\n| Small | 5 € |\n| Large | 50 € |');
		expect(text.split('\n').map((line) => line.split(/ +/))).toEqual([
			['Plan', 'Price'],
			['Small', '5', '€'],
			['Large', '50', '€'],
		]);
	});

	it('takes the first heading of level 1 as the subject, without markup', () => {
		expect(
			markdownBodies('Hi\n\n## Two\n\n# A *fine* [day](https://x.example) & #name#\n\n# B').heading,
		).toBe('A fine day [https://x.example] & #name#');
		expect(markdownBodies('## Two').heading).toBeNull();
	});

	it('keeps raw HTML', () => {
		expect(bodyOf('a<br>b\n\n<div class="x">c</div>')).toBe('<p>a<br>b</p>\n<div class="x">c</div>');
	});
});
