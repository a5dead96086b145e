import { describe, expect, it } from 'vitest';
import { cssStatements, formatStatement, planInlining } from '../../src/content/inline-plan.js';

function divided(css: string, body = ''): [stays: string, moves: string] {
	const plan = planInlining(`<style>${css}</style>${body}`);
	if (plan === null) return [css, ''];
	const stays = /<style>([\s\S]*?)<\/style>/.exec(plan.html)?.[1] ?? '';
	const line = (text: string) => text.replace(/\s+/g, ' ').trim();
	return [line(stays), line(plan.css)];
}

describe('a style sheet', () => {
	it.each<[css: string, statements: string[]]>([
		['a{b:c}', ['a {b:c}']],
		['a , b>c{d:e;}', ['a, b>c {d:e;}']],
		['/* a{} */ b{c:d/* } */}', ['b {c:d }']],
		['a::before{content:"}{;/*"} b{}', ['a::before {content:"}{;/*"}', 'b {}']],
		[`a{content:'\\'}'} b{}`, [`a {content:'\\'}'}`, 'b {}']],
		['a:is(b,c){} d{}', ['a:is(b,c) {}', 'd {}']],
		['@import "x.css"; a{}', ['@import "x.css";', 'a {}']],
		['@media a{b{c:d} e{f:g}} h{}', ['@media a {b{c:d} e{f:g}}', 'h {}']],
		['<!-- a{b:c} -->', ['a {b:c}']],
		['a{b:url(x;y/*z*/)}', ['a {b:url(x;y/*z*/)}']],
		['} a{}', ['} a {}']],
		['a{b:c', ['a {b:c}']],
		['', []],
	])('%j parses into the statements %j', (css, statements) => {
		expect(cssStatements(css).map(formatStatement)).toEqual(statements);
	});

	it.each<[css: string, stays: string, moves: string]>([
		[
			'p {a: b} p:hover {c: d} p::before {a: b} @font-face {a: b} p:first-child {a: b}',
			'p:hover { c: d !important } p::before { a: b !important } @font-face {a: b}',
			'p {a: b} p:first-child {a: b}',
		],
		['@media x { p {a: b} }', '@media x { p {a: b} }', ''],
		['@import "x"; p {a: b}', '@import "x";', 'p {a: b}'],
		['.a\\:b {a: b} p {c: d}', '.a\\:b { a: b !important }', 'p {c: d}'],
		['p {a: b; & i {c: d}} i {e: f}', 'p {a: b; & i {c: d}}', 'i {e: f}'],
		['p[title="a, b"] {a: b} i {e: f}', 'p[title="a, b"] { a: b !important }', 'i {e: f}'],
	])('%j keeps the rules %j; the rules %j move into style attributes', (css, stays, moves) => {
		expect(divided(css)).toEqual([stays, moves]);
	});

	it.each<[css: string, stays: string]>([
		['p {a: b} @media x { p {a: c} }', '@media x { p { a: c !important } }'],
		['a, a:hover, b::after {a: b}', 'a:hover, b::after { a: b !important }'],
		[
			'p {a: b} @supports (x: y) { @media z { p {a: c; d: e !important} } }',
			'@supports (x: y) { @media z { p { a: c !important; d: e !important } } }',
		],
		['p {a: b} @layer l { p {a: c} }', '@layer l { p {a: c} }'],
	])('%j keeps rules that override inlined ones: %j', (css, stays) => {
		expect(divided(css)[0]).toBe(stays);
	});

	it('keeps rules for the rows of a table whose tbody is implied', () => {
		const css = 'table > tbody td {a: b} table > tr {c: d} p {e: f}';
		expect(divided(css, '<table><tr><td>x</table>')[1]).toBe('p {e: f}');
		expect(divided(css, '<table><tbody><tr><td>x</table>')[0]).toBe('');
	});

	it('is inlined only if it applies to screens and is outside comments', () => {
		const html =
			'<style media="print">p{a:b}</style><style type="text/x">p{a:b}</style><!--<style>p{a:b}</style>-->' +
			'<STYLE TYPE="text/css" id=x>p{a:b}</STYLE><p title="<style>">é<b></p>';
		expect(planInlining(html)).toEqual({
			html: html.replace('<STYLE TYPE="text/css" id=x>p{a:b}</STYLE>', ''),
			css: 'p {a:b}',
		});
		expect(planInlining('<style media="print">p{a:b}</style>')).toBe(null);
	});
});
