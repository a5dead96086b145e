import fc from 'fast-check';
import PostalMime from 'postal-mime';
import { describe, expect, it } from 'vitest';
import { type CompiledContent, compileContent } from '../../src/content/compile.js';
import { findLinks } from '../../src/content/links.js';
import { readHtml } from '../../src/content/read-html.js';
import type { Tracking } from '../../src/content/types.js';
import { createInliner } from '../../src/threads/readers.js';
import { readHere } from '../support/read-here.js';
import { content, envelope, hasCorpora, recipient, templates, valuesFor, wireProblems } from './support.js';

const compile = (html: string) => compileContent(content({ html }), readHere);

const pixel =
	'<img src="https://m.test/o/T.gif" width="1" height="1" alt="" style="position:absolute!important;float:left!important;' +
	'display:block!important;width:1px!important;height:1px!important;margin:-1px -1px 0 0!important;padding:0!important;' +
	'border:0!important">';

function trackingFor({ links }: Pick<CompiledContent, 'links'>): Tracking {
	return {
		openUrl: 'https://m.test/o/T.gif',
		clickUrl: 'https://m.test/c/T',
		clickEnds: Array.from({ length: links }, (_, position) => String(position)),
	};
}

async function tracked(html: string, variables: Record<string, string> = {}): Promise<string> {
	const compiled = await compile(html);
	return arrived(compiled, variables, trackingFor(compiled));
}

async function arrived(
	compiled: CompiledContent,
	variables: Record<string, string>,
	tracking: Tracking | null,
): Promise<string> {
	const bytes = compiled.join(envelope(), recipient({ variables, tracking }));
	expect(wireProblems(bytes)).toEqual([]);
	const { html } = await PostalMime.parse(bytes);
	return (html ?? '').replace(/\n$/, '');
}

describe('a tracked link', () => {
	it.each([
		['<a href="https://x.y/">a</a>', '<a href="https://m.test/c/T0">a</a>'],
		["<A HREF='http://x.y/?a=1&amp;b'>a</A>", "<A HREF='https://m.test/c/T0'>a</A>"],
		['<a class=x href=https://x.y/ id=z>a</a>', '<a class=x href=https://m.test/c/T0 id=z>a</a>'],
		[
			'<map><area shape="rect" href = "HTTPS://x.y"></map>',
			'<map><area shape="rect" href = "https://m.test/c/T0"></map>',
		],
		['<a href="  https://x.y/a\n  b ">a</a>', '<a href="https://m.test/c/T0">a</a>'],
		['<a href="&#104;ttps://x.y/">a</a>', '<a href="https://m.test/c/T0">a</a>'],
		[
			'<a href="https://x.y/1">a</a><a href="https://x.y/1">b</a>',
			'<a href="https://m.test/c/T0">a</a><a href="https://m.test/c/T1">b</a>',
		],
		[
			'<a href="https://x.y/" href="https://second.example/">a</a>',
			'<a href="https://m.test/c/T0" href="https://second.example/">a</a>',
		],
	])('is found in %j, which becomes %j', async (html, expected) => {
		expect(await tracked(html)).toBe(expected + pixel);
	});

	it.each([
		'<a href="mailto:a@b.c">a</a>',
		'<a href="tel:+49123">a</a>',
		'<a href="#top">a</a>',
		'<a href="/path">a</a>',
		'<a href="//x.y/">a</a>',
		'<a href="x.html?u=https://x.y/">a</a>',
		'<a href="">a</a>',
		'<a href>a</a>',
		'<a href="javascript:x">a</a>',
		'<a href="https://">a</a>',
		'<a href="https://x y/">a</a>',
		'<link href="https://x.y/"><base href="https://x.y/"><img src="https://x.y/">',
		'<!-- <a href="https://x.y/">a</a> -->',
		'<!--[if mso]><a href="https://x.y/">a</a><![endif]-->',
		'<style>a[href="https://x.y/"] { color: red } /* <a href="https://x.y/"> */</style>',
		'<script>"<a href=\'https://x.y/\'>"</script>',
		'<title><a href="https://x.y/"></title>',
		'</a href="https://x.y/">',
		'<p title=\'<a href="https://x.y/">\'>x</p>',
		'<a href="/first" href="https://x.y/">a</a>',
	])('is not found in %j', async (html) => {
		expect((await compile(html)).links).toBe(0);
		expect(await tracked(html)).toBe(html + pixel);
	});

	it('does not replace a link that consists only of #unsubscribe_url# or #view_url#', async () => {
		const html = '<a href="#unsubscribe_url#">a</a><a href=" #view_url# ">b</a>';
		const variables = { unsubscribe_url: 'https://m.test/u/T', view_url: 'https://m.test/v/T' };
		expect((await compile(html)).links).toBe(0);
		expect(await tracked(html, variables)).toBe(
			`<a href="https://m.test/u/T">a</a><a href=" https://m.test/v/T ">b</a>${pixel}`,
		);
	});

	it.each<[string, string, string | null]>([
		['#u#', 'https://x.y/', 'https://x.y/'],
		['#u#', ' HTTP://X.Y', 'http://x.y/'],
		['#u#', 'mailto:a@b.c', null],
		['#u#', 'x.y/', null],
		['#u#', '//x.y/', null],
		['#u#', '', null],
		['#u#', 'https://x.y/\r\nSet-Cookie: a=b', null],
		['#u#', 'https://x.y/\u0085', null],
		['#u#/path', 'https://x.y', 'https://x.y/path'],
		['https://#u#/', 'x.y', 'https://x.y/'],
		['https://#u#/', 'x y', null],
		['https://#u#/', '', null],
		['http#u#://x.y/', 's', 'https://x.y/'],
		['https://x.y/?q=#u#&amp;z', 'a b&c=é"<', 'https://x.y/?q=a%20b%26c%3D%C3%A9%22%3C&z'],
		['https://x.y/?q=#u#', 'a\nb', 'https://x.y/?q=a%0D%0Ab'],
		['https://x.y/#u#', 'a\nb', null],
		['https://x.y/#u#', 'javascript:alert(1)', 'https://x.y/javascript:alert(1)'],
		['https://x.y/#unknown#', '', 'https://x.y/#unknown#'],
		['https://x.y/?e=&#35;u&#35;', 'v', 'https://x.y/?e=#u#'],
		['&#35;u&#35;', 'https://x.y/', null],
		['https://bücher.example/ä', '', 'https://xn--bcher-kva.example/%C3%A4'],
	])('with the href %j and the value %j leads to %j', async (href, u, target) => {
		const compiled = await compile(`<a href="${href}">a</a>`);
		expect(compiled.link(0, { u })).toBe(target);
		const html = await arrived(compiled, { u }, trackingFor(compiled));
		expect(html.includes('https://m.test/c/T0')).toBe(target !== null);
		if (target === null) expect(html).toBe(`${await arrived(compiled, { u }, null)}${pixel}`);
	});

	it('keeps its number if links before it are invalid for this recipient', async () => {
		const html = '<a href="#u#">a</a><a href="https://x.y/">b</a>';
		expect(await tracked(html, { u: 'mailto:a@b.c' })).toBe(
			`<a href="mailto:a@b.c">a</a><a href="https://m.test/c/T1">b</a>${pixel}`,
		);
	});

	it('keeps its original URL in the text part and in a preview', async () => {
		const compiled = await compile('<p><a href="https://x.y/">words</a></p>');
		const { text } = await PostalMime.parse(
			compiled.join(envelope(), recipient({ tracking: trackingFor(compiled) })),
		);
		expect(text?.trim()).toBe('words [https://x.y/]');
		expect(compiled.preview({ variables: {} }).html).toBe('<p><a href="https://x.y/">words</a></p>');
	});
});

describe('the pixel', () => {
	it.each([
		['<body><p>x</p></body></html>', `<body><p>x</p>${pixel}</body></html>`],
		['<p>x</p>', `<p>x</p>${pixel}`],
		['', pixel],
		['<p>a</BODY ><p>b</body><!-- </body> -->', `<p>a</BODY ><p>b${pixel}</body><!-- </body> -->`],
		[
			'<body>a</body><a href="https://x.y/">b</a>',
			`<body>a${pixel}</body><a href="https://m.test/c/T0">b</a>`,
		],
	])('in %j is inserted before the last </body>, or at the end if there is none', async (html, expected) => {
		expect(await tracked(html)).toBe(expected);
	});
});

describe('rewriting links', () => {
	function undone(html: string, written: string): string {
		const links = findLinks(written);
		return html.replace(pixel, '').replace(/https:\/\/m\.test\/c\/T(\d+)/g, (_url, position) => {
			const link = links[Number(position)];
			return link === undefined ? '' : written.slice(link.start, link.end);
		});
	}

	it('leaves all other markup unchanged', async () => {
		const piece = fc.oneof(
			fc.constantFrom(
				'<a href="https://x.y/?q=#a#">',
				"<a href='#u#'>",
				'<a href=#u#>',
				'<area href=https://x.y/>',
				'</a>',
				'<!--',
				'-->',
				'<style>',
				'</style>',
				'</body>',
				'<a ',
				'href="https://x.y/"',
				'"',
				"'",
				'>',
				'&amp;',
				'#a#',
				'\n',
				'é',
			),
			fc.string({ maxLength: 10 }),
		);
		const html = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join('').replaceAll('\0', ''));
		await fc.assert(
			fc.asyncProperty(html, async (written) => {
				const compiled = await compile(written);
				const plain = compiled.preview({ variables: {} }).html ?? '';
				expect(undone(await arrived(compiled, {}, trackingFor(compiled)), plain).trimEnd()).toBe(
					plain.trimEnd(),
				);
			}),
			{ numRuns: 200 },
		);
	});

	it('replaces exactly the links that have a valid target, whatever values the variables have', async () => {
		const compiled = await compile(
			'<a href="#a##b#">1</a><a href="https://#a#/#b#">2</a><a href="http://x.y/#a#?#b#">3</a><a href="h#a#">4</a>',
		);
		await fc.assert(
			fc.asyncProperty(valuesFor(['a', 'b']), async (variables) => {
				const html = await arrived(compiled, variables, trackingFor(compiled));
				const counted = [0, 1, 2, 3].map((position) => html.includes(`/c/T${position}"`));
				const targets = [0, 1, 2, 3].map((position) => compiled.link(position, variables));
				expect(targets.map((target) => target !== null)).toEqual(counted);
				for (const target of targets) if (target !== null) expect(target).toMatch(/^https?:\/\/[!-~]+$/);
			}),
			{ numRuns: 150 },
		);
	});

	it.skipIf(!hasCorpora)(
		'finds the same links with and without CSS inlined (needs the corpora)',
		async () => {
			const inliner = createInliner({ deadlineMs: 20_000 });
			try {
				for (const { html } of templates()) {
					const inlined = await compileContent(content({ html, disable_inline: false }), inliner.read);
					expect(inlined.warnings).toEqual([]);
					expect(inlined.links).toBe((await compile(html)).links);
				}
			} finally {
				await inliner.close();
			}
		},
	);

	it('leaves HTML as written if inlining CSS would change its links', async () => {
		const html =
			'<style>p{color:red}</style><p><a href="https://x.y/1">1</a><a href="https://x.y/2">2</a></p>';
		const styled = content({ html, disable_inline: false });
		const dropped = await compileContent(styled, async (question) =>
			readHtml(question, () => '<p><a href="https://x.y/2">2</a></p>'),
		);
		expect(dropped.warnings).toEqual([
			'CSS was not inlined: it would have changed the links. The HTML goes out as written.',
		]);
		expect(dropped.link(0, {})).toBe('https://x.y/1');
	});

	it('handles hostile HTML quickly', async () => {
		for (const part of [
			'<a href="https://x.y/">',
			'<a href="',
			'</body',
			'<a href=https://x.y/',
			' href=" ',
			'#a#',
		]) {
			await tracked(part.repeat(300_000 / part.length));
		}
		await tracked(`<a href="https://x.y/${' '.repeat(1_000_000)}z">`);
	});
});
