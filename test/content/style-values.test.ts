// The value of a variable must not make a mail load anything from the network.
import { expect, it } from 'vitest';
import { compileContent } from '../../src/content/compile.js';
import { isTooDeep, maxNesting } from '../../src/content/nesting.js';
import { startCpuClock } from '../support/cpu-clock.js';
import { readHere } from '../support/read-here.js';
import { content } from './support.js';

async function shown(html: string, value: string): Promise<string> {
	const compiled = await compileContent(content({ html }), readHere);
	return compiled.preview({ variables: { v: value, w: value } }).html ?? '';
}

it.each([
	['<p style="background: url(#v#)">'],
	['<p style="background: url(\'https://x.example/#v#\')">'],
	['<p style="background: URL ( &quot;#v#&quot; )">'.replace('URL (', 'URL(')],
	['<p style="background: &#117;rl(#v#)">'],
	['<p style="background: image-set(url(a.png) 1x, \'#v#\' 2x)">'],
	['<p style=\'background: url(")#v#")\'>'],
	['<style>p { background: url(#v#) }</style>'],
	['<style>@import "#v#";</style>'],
	['<style>p { background: url(#v#'],
	['<rect fill="url(#v#)">'],
	['<iframe srcdoc="#v#"></iframe>'],
	['<iframe srcdoc="<p>#v##w#</p>"></iframe>'],
])('a value is never inserted into %s', async (html) => {
	expect(await shown(html, 'https://evil.example/')).toBe(html);
});

it.each([
	['<p style="color: #v#">', 'red', '<p style="color: red">'],
	['<p style="color: #v#">', 'rgb(1, 2, 3)', '<p style="color: rgb(1, 2, 3)">'],
	['<p style="color: #v#; background: url(a.png)">', 'red', '<p style="color: red; background: url(a.png)">'],
	['<p style="background: url(a.png); color: #v#">', 'red', '<p style="background: url(a.png); color: red">'],
	['<style>p { color: #v# }</style>', 'red', '<style>p { color: red }</style>'],
	['<p style="background: #v#">', 'url(https://evil.example/)', '<p style="background: #">'],
	['<p style="background: ur#v#">', 'l(https://evil.example/)', '<p style="background: ur#">'],
	['<p style="background: #v#">', '\\75rl(x)', '<p style="background: #">'],
	['<style>#v#</style>', '@import "x"', '<style>#</style>'],
	['<p title="url(#v# #w#">', 'x', '<p title="url(#v# #w#">'],
])('%s with the value %s becomes %s', async (html, value, expected) => {
	expect(await shown(html, value)).toBe(expected);
});

it.each([
	['divisions', '<div>'.repeat(maxNesting), false],
	['more divisions', '<div>'.repeat(maxNesting + 1), true],
	['items', '<li>x'.repeat(5_000), false],
	['rows', `<table>${'<tr><td>x'.repeat(5_000)}`, false],
	['lists in lists', '<ul><li>'.repeat(201), true],
	['line breaks and images', '<br><img src="x"/>'.repeat(5_000), false],
	['comments', `<!--${'<div>'.repeat(5_000)}-->`, false],
	['a script', `<script>${'<div>'.repeat(5_000)}</script>`, false],
	['an attribute value', `<p title="${'<div>'.repeat(5_000)}">`, false],
	['misplaced end tags', '<b></i>'.repeat(500), true],
	['closed elements', '<b>x</b>'.repeat(5_000), false],
])('only elements that stay open count towards the nesting limit: %s', (_what, html, expected) => {
	expect(isTooDeep(html)).toBe(expected);
});

it.each([
	'<',
	'<a',
	'<!--',
	'<a b="',
	"<a b='",
	'</',
	'<title>',
	'"',
	'<a/>',
	'<svg ',
	'<b></i>',
	'#a#',
	'url(',
	'"\\',
])('%j repeated a hundred thousand times is scanned and filled in quickly', async (piece) => {
	const text = piece.repeat(Math.ceil(100_000 / piece.length));
	const cpuMs = startCpuClock();
	isTooDeep(text);
	expect(cpuMs()).toBeLessThan(500);
	await shown(`<p style="#v#">x</p><style>${text.replaceAll('<', '')}</style>`, 'red');
	expect(cpuMs()).toBeLessThan(3_000);
});
