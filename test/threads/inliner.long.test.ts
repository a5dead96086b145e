import { afterAll, describe, expect, it } from 'vitest';
import { compileContent } from '../../src/content/compile.js';
import { readHtml } from '../../src/content/read-html.js';
import { createInliner } from '../../src/threads/readers.js';
import { content } from '../content/support.js';

const inliner = createInliner({ deadlineMs: 5000 });
afterAll(() => inliner.close());

async function compiled(html: string, read = inliner.read) {
	return await compileContent(content({ html, disable_inline: false }), read);
}

async function shown(html: string): Promise<string> {
	const one = await compiled(html);
	expect(one.warnings).toEqual([]);
	return one.preview({ variables: {} }).html ?? '';
}

describe('inlining CSS', () => {
	it('moves rules into style attributes, and keeps rules that cannot be moved', async () => {
		const html = [
			'<!DOCTYPE html><html><head><style>',
			'p { color: red !important } a:hover { color: blue } @media print { p { color: black } }',
			'</style><!--[if mso]><style>p{x:y}</style><![endif]--></head>',
			'<body><p>&nbsp;&copy; #name# &amp; #city#</p><!--[if mso]><b>o</b><![endif]--><br></body></html>',
		].join('');
		const result = await shown(html);
		expect(result).toContain('<!DOCTYPE html>');
		expect(result).toContain('<p style="color: red !important;">&nbsp;&copy; #name# &amp; #city#</p>');
		expect(result).toContain('@media print');
		expect(result).toContain('a:hover');
		expect(result).toContain('<!--[if mso]><style>p{x:y}</style><![endif]-->');
		expect(result).toContain('<!--[if mso]><b>o</b><![endif]-->');
	});

	it('keeps entities in style attributes, and leaves HTML unchanged if a declaration has no name', async () => {
		const html =
			'<style>p{color:red}</style><p style="font-family: &quot;A B&quot;, &#39;C&#39;; margin: 0">x</p>';
		expect(await shown(html)).toBe(`<p style="color: red; font-family: 'A B', 'C'; margin: 0;">x</p>`);
		const broken = '<style>p{color:red}</style><p style="margin: 0; x;">x</p>';
		const one = await compiled(broken);
		expect(one.preview({ variables: {} }).html).toBe(broken);
		expect(one.warnings[0]).toMatch(/^CSS was not inlined: the CSS or the HTML could not be read/);
	});

	it.each([
		['img height="170"', 'height: auto', '<img height="170">'],
		['img width="170"', 'width: calc(100px - 2em)', '<img width="170">'],
		['img', 'width: auto', '<img>'],
		['img width="170"', 'width: 200px', '<img width="200">'],
		['td bgcolor="#fff"', 'background-color: rgba(0,0,0,.5)', '<td bgcolor="#fff">'],
		['td align="left"', 'text-align: start', '<td align="left">'],
		['td valign="top"', 'vertical-align: 3px', '<td valign="top">'],
		['td width="90"', 'width: 50%', '<td width="50%">'],
	])('sets an attribute of <%s> only if the attribute can express %s', async (tag, css, kept) => {
		const [name = ''] = tag.split(' ');
		for (const [sheet, own] of [
			[css, ''],
			['color: red', ` style="${css}"`],
		]) {
			const html = await shown(`<style>${name} { ${sheet} }</style><${tag}${own}>`);
			expect(html.replace(/ ?style="[^"]*"/, '').replace('</td>', '')).toBe(kept);
		}
	});

	it('allows variables in a style sheet', async () => {
		expect(await shown('<style>p { color: #brand# }</style><p>a</p><p>b</p>')).toBe(
			'<p style="color: #brand#;">a</p><p style="color: #brand#;">b</p>',
		);
	});

	it('stops at its deadline, and works again afterwards', async () => {
		const hasty = createInliner({ deadlineMs: 2000 });
		const rules = Array.from(
			{ length: 4000 },
			(_, index) => `.a${index} p, div > p.b${index} { color: red }`,
		);
		const slow = `<style>${rules.join('')}</style>${'<div class="a1"><p class="b2">x</p></div>'.repeat(8000)}`;
		const [late, next] = await Promise.all([
			compiled(slow, hasty.read),
			compiled('<style>p{color:red}</style><p>x</p>', hasty.read),
		]);
		expect(late.warnings).toEqual([
			'CSS was not inlined: it took longer than 2000 ms. The HTML goes out as written.',
		]);
		expect(late.preview({ variables: {} }).html).toBe(slow);
		expect(next.preview({ variables: {} }).html).toBe('<p style="color: red;">x</p>');
		await hasty.close();
	});

	it('survives documents that are too deep or too large', async () => {
		const deep = `<style>p{color:red}</style>${'<div>'.repeat(60_000)}<p>x`;
		expect((await compiled(deep)).warnings).toEqual([
			'CSS was not inlined: the HTML is nested deeper than 400 elements. The HTML goes out as written.',
			'No text alternative could be made from the HTML: the HTML is nested deeper than 400 elements.',
		]);
		const large = `<style>p{}</style>${'x'.repeat(2 * 1024 * 1024)}`;
		expect((await compiled(large)).warnings).toEqual([
			'CSS was not inlined: the HTML is larger than 2 MiB. The HTML goes out as written.',
		]);
		expect(await shown('<style>p{color:red}</style><p>x</p>')).toBe('<p style="color: red;">x</p>');
	});

	it('stops if the result would grow too large', async () => {
		const html = `<style>p{font-family: ${'a, '.repeat(10_000)}b}</style>${'<p>x</p>'.repeat(200)}`;
		const one = await compiled(html);
		expect(one.warnings).toEqual([
			'CSS was not inlined: the HTML would become larger than 4 MiB. The HTML goes out as written.',
		]);
		expect(one.preview({ variables: {} }).html).toBe(html);
	});

	it.each([
		['braces', '{'.repeat(50_000)],
		['parentheses', `p:not(${'('.repeat(50_000)}`],
		['nested media rules', '@media x {'.repeat(5000)],
		['selectors', `${'a,'.repeat(50_000)}a{b:c}`],
		['comments', '/*'.repeat(50_000)],
		['quotes', `"'`.repeat(50_000)],
		['attributes', '[a='.repeat(20_000)],
		['states', `${':hover'.repeat(20_000)}{a:b} p{a:b}`],
		['positions', `p${':nth-child('.repeat(5000)}{a:b}`],
		['declarations', `p{${'a:b;'.repeat(20_000)}} @media x { p{${'a:b;'.repeat(2000)}} }`],
	])('recovers from hostile %s, and serves the next document', async (_what, css) => {
		const html = `<style>p{color:red}${css}</style><p>x</p>`;
		const [one, next] = await Promise.all([compiled(html), shown('<style>p{color:red}</style><p>x</p>')]);
		expect(one.preview({ variables: {} }).html).toContain('x</p>');
		expect(next).toBe('<p style="color: red;">x</p>');
	});

	it('leaves the HTML unchanged if inlining would change its variables', async () => {
		const html = '<style>p{}</style><p>#a# #a#</p>';
		for (const result of ['<p>#a#</p>', '<p>#a# #a# #a#</p>', '<p>#a# #a# #b#</p>', '']) {
			const one = await compiled(html, async (question) => readHtml(question, () => result));
			expect(one.preview({ variables: {} }).html).toBe(html);
			expect(one.warnings).toEqual([
				'CSS was not inlined: it would have changed the variables. The HTML goes out as written.',
			]);
		}
	});
});
