import fc from 'fast-check';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findLinks } from '../../src/content/links.js';
import { hasCorpora, templates } from '../content/support.js';
import { hasChromium, launchChromium } from '../support/chromium.js';

let browser: Browser;
let page: Page;

beforeAll(async () => {
	const launched = await launchChromium();
	if (launched === undefined) return;
	browser = launched;
	page = await browser.newPage();
});
afterAll(() => browser?.close());

/** Returns the absolute http(s) targets of a document's links, in order, as the browser reads them. */
async function targetsInBrowser(documents: readonly string[]): Promise<string[][]> {
	return await page.evaluate(`(${JSON.stringify(documents)}).map((html) => {
		const document = new DOMParser().parseFromString(html, 'text/html');
		return [...document.querySelectorAll('a[href], area[href]')]
			.map((link) => URL.canParse(link.getAttribute('href')) ? new URL(link.getAttribute('href')) : null)
			.filter((url) => url !== null && /^https?:$/.test(url.protocol))
			.map((url) => url.href);
	})`);
}

/** Returns the document with the address of each link replaced, as the browser serializes it, including <template>. */
async function shapesInBrowser(documents: readonly string[]): Promise<string[]> {
	return await page.evaluate(`(${JSON.stringify(documents)}).map((html) => {
		const document = new DOMParser().parseFromString(html, 'text/html');
		for (const link of document.querySelectorAll('a[href], area[href]'))
			if (URL.canParse(link.getAttribute('href')) && /^https?:/.test(new URL(link.getAttribute('href')).protocol))
				link.setAttribute('href', 'x');
		return document.documentElement.outerHTML;
	})`);
}

function targetsOf(html: string): string[] {
	return findLinks(html).flatMap(({ target }) =>
		target.every((piece) => typeof piece === 'string') ? [new URL(target.join('')).href] : [],
	);
}

function rewritten(html: string): string {
	let text = '';
	let from = 0;
	for (const [position, { start, end }] of findLinks(html).entries()) {
		text += `${html.slice(from, start)}https://m.example/c/T${position}`;
		from = end;
	}
	return text + html.slice(from);
}

async function expectReadAlike(documents: readonly string[]): Promise<void> {
	const theirs = await targetsInBrowser(documents);
	for (const [index, html] of documents.entries())
		expect([html, targetsOf(html)]).toEqual([html, theirs[index]]);
	const before = await shapesInBrowser(documents);
	const after = await shapesInBrowser(documents.map(rewritten));
	for (const [index, html] of documents.entries())
		expect([html, after[index]]).toEqual([html, before[index]]);
}

const url = 'https://x.example/a';

describe.skipIf(!hasChromium)('a link (needs Chromium)', () => {
	it.each([
		`<a href="${url}?a=1&amp;b=2&copy=3&lt;">x</a>`,
		`<A HREF=${url} CLASS=b>x</A>`,
		`<a href=${url}?a=b&amp;c=/>x</a>`,
		`<a\nhref\n=\n'${url}'\n>x</a>`,
		`<a title=">" href="${url}">x</a>`,
		`<a href="mailto:a@b.c">x</a><a href="tel:1">x</a><a href="#x">x</a><a href="${url}">x</a>`,
		`<base href="https://base.example/"><a href="rel">x</a><a href="${url}">x</a>`,
		`<!--[if mso]><a href="${url}">x</a><![endif]--><!--[if !mso]><!--><a href="${url}2">x</a><!--<![endif]-->`,
		`<![if !mso]><a href="${url}">x</a><![endif]>`,
		`<!--><a href="${url}">x</a>-->`,
		`<!---><a href="${url}">x</a>-->`,
		`<!-- a --!><a href="${url}">x</a>-->`,
		`<!-- -- ><a href="${url}">x</a>-->`,
		`<?xml <a href="${url}">x</a>?>`,
		`<!doctype html><a href="${url}">x</a>`,
		`</ a><a href="${url}">x</a>`,
		`<style><a href="${url}">x</a></style><script>'<a href="${url}">'</script><a href="${url}">x</a>`,
		`<script><!-- <script> </script> --> </script><a href="${url}">x</a>`,
		`<title><a href="${url}"></title><textarea><a href="${url}"></textarea><a href="${url}">x</a>`,
		`<xmp><a href="${url}"></xmp><iframe><a href="${url}"></iframe><noembed><a href="${url}"></noembed><a href="${url}2">`,
		`<noframes><a href="${url}"></noframes><a href="${url}2">x</a>`,
		`<plaintext><a href="${url}">x</a>`,
		`<svg><![CDATA[<a href="${url}">]]></svg><![CDATA[<a href="${url}2">]]>`,
		`<a href="${url}"<b>x</b></a>`,
		`<a href="${url}"title="t">x</a>`,
		`<a/href="${url}"/>x</a>`,
		`<a ="b" href="${url}">x</a>`,
		`<a href="${url}" HREF="${url}2">x</a>`,
		`<a href="${url}`,
		`<a href="ht&#10;tps://x.example/&#x2F;b">x</a>`,
		`<a href="&NewLine;https&colon;//x.example/&notit;">x</a>`,
		`<a href="https://x.example/?a&copy;=1&amp=2&para=3&not;">x</a>`,
		`<table><a href="${url}">x</a><tr><td><a href="${url}2">y</a></table>`,
		`<select><a href="${url}">x</a></select>`,
	])('is found exactly where a browser finds it: %j', async (html) => {
		await expectReadAlike([`<!doctype html>${html}`]);
	});

	it.skipIf(!hasCorpora)(
		'is found exactly where a browser finds it in real templates (needs the corpora)',
		async () => {
			// The # is removed, because variables in links are not filled in here.
			await expectReadAlike(templates().map(({ html }) => html.replaceAll('#', '')));
		},
	);

	it('is found exactly where a browser finds it, whatever text surrounds it', async () => {
		// The pieces exclude elements after which a browser repeats an open link, because the copy is not in the source.
		const piece = fc.oneof(
			fc.constantFrom(
				...[`<a href="${url}">`, `<a href='${url}?a&amp;b'>`, `<A HREF=${url}>`, `<area href=${url}/>`],
				...['</a>', '<x-y title="', '<x-y ', "'", '"', '>', '<', '=', '/', '<!--', '-->', '--!>', '<!', '<?'],
				...[
					'<b>',
					'</b>',
					'<style>',
					'</style>',
					'<title>',
					'</title>',
					'</body>',
					'&amp;',
					'&lt',
					' ',
					'\n',
					'é',
				],
			),
			fc.string({ maxLength: 6 }).map((text) => text.replace(/[\0#]/g, '')),
		);
		const sample = fc.sample(
			fc.array(piece, { maxLength: 20 }).map((pieces) => `<!doctype html><x-y>${pieces.join('')}`),
			{ numRuns: 1000, seed: 11 },
		);
		// These closing marks keep an open tag, comment or element from swallowing the next document.
		await expectReadAlike(sample.map((html) => `${html} "> '> --></title></style>`));
	});

	it('is found in a mail of 5,000 links', async () => {
		const links = Array.from({ length: 5000 }, (_, index) => `<p><a href="${url}?n=${index}&amp;x">link</a>`);
		await expectReadAlike([`<!doctype html>${links.join('\n')}`]);
	});
});
