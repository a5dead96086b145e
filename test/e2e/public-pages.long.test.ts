// The public pages in a real browser: each language, light and dark, wide and narrow, with accessibility checks.
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { unbranded } from '../../src/delivery/tracking/lookup.js';
import {
	chooseLanguage,
	failedPage,
	notFoundPage,
	type Presentation,
	textMessagePage,
	unsubscribedPage,
	unsubscribePage,
} from '../../src/http/public/pages.js';
import { languages } from '../../src/http/public/texts.js';
import type { HttpResponse } from '../../src/http/wire.js';
import { hasChromium, launchChromium, picture } from '../support/chromium.js';
import { eventually } from '../support/eventually.js';
import { listenOn } from '../support/listen.js';

const logo = 'https://cdn.example/birds,bees;1/logo.svg?v=2';
const svg =
	'<svg xmlns="http://www.w3.org/2000/svg" width="240" height="60"><rect width="240" height="60" rx="8" fill="#0b6e4f"/>' +
	'<text x="120" y="40" font-family="sans-serif" font-size="28" fill="#fff" text-anchor="middle">Birds &amp; Bees</text></svg>';
const embedded = `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`;

const brandings = {
	plain: unbranded,
	named: { name: 'Birds & Bees', logo: null, color: '#ffd400' },
	branded: { name: 'Birds & Bees', logo, color: '#0b6e4f' },
	embedded: { name: null, logo: embedded, color: '#7a0019' },
};

const sender = 'News (news@example.com)';
const reader = { address: 'a…\u2060@example.org', sender, list: 'Monthly news' };
const long = 'Donaudampfschifffahrtsgesellschaftskapitaenswitwenverein';
const kinds: Readonly<Record<string, (presentation: Presentation) => HttpResponse>> = {
	choice: (presentation) => unsubscribePage(presentation, reader),
	question: (presentation) => unsubscribePage(presentation, { ...reader, list: null }),
	long: (presentation) =>
		unsubscribePage(presentation, { address: `a…\u2060@${long}.example`, sender: long, list: long }),
	done: (presentation) => unsubscribedPage(presentation, reader),
	all: (presentation) => unsubscribedPage(presentation, { ...reader, list: null }),
	broken: notFoundPage,
	failed: (presentation) => failedPage(presentation, null),
	again: (presentation) => failedPage(presentation, 'list'),
	text: (presentation) =>
		textMessagePage(presentation, { subject: 'Hello', text: `Dear all,\n\nread https://x.example/${long}.` }),
};

const judged = ['choice', 'done', 'text'];

let server: Server;
let url: string;
let browser: Browser | undefined;
let context: BrowserContext;
let page: Page;
let asked: string[];
let problems: string[];

beforeAll(async () => {
	browser = await launchChromium();
	server = createServer(({ url = '', headers }, response) => {
		const [, branding = '', kind = ''] = url.split('/');
		const look = Object.entries(brandings).find(([name]) => name === branding)?.[1] ?? unbranded;
		const make = kinds[kind] ?? notFoundPage;
		const made = make({ language: chooseLanguage(headers['accept-language']), branding: look });
		// The status is always 200, because the browser reports an error status as a problem.
		response.writeHead(200, made.headers).end(made.body);
	});
	url = `http://127.0.0.1:${await listenOn(server)}`;
});
afterAll(async () => {
	await browser?.close();
	server.close();
});

const open = async (locale: string) => {
	if (browser === undefined) return;
	context = await browser.newContext({ locale });
	await context.route('https://cdn.example/**', (route) =>
		route.fulfill({ contentType: 'image/svg+xml', body: svg }),
	);
	page = await context.newPage();
	asked = [];
	problems = [];
	page.on('request', (request) => asked.push(request.url()));
	page.on('console', (message) => problems.push(message.text()));
};
beforeEach(() => open('en'));
afterEach(() => context?.close());

const inBrowser = it.skipIf(!hasChromium);

interface Judgement {
	violations: { id: string; nodes: { html: string }[] }[];
}

async function flaws(): Promise<string[]> {
	const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
	await page.evaluate(source);
	const { violations } = await page.evaluate<Judgement>('axe.run()');
	return violations.map(({ id, nodes }) => `${page.url()}: ${id} ${nodes.map(({ html }) => html).join(' ')}`);
}

const width = () => page.evaluate<number>('document.documentElement.scrollWidth');

inBrowser.each(languages.map((language) => [language]))(
	'pages have no accessibility violations in %s (needs Chromium)',
	async (language) => {
		await context.close();
		await open(language);
		for (const kind of Object.keys(kinds)) {
			await page.goto(`${url}/plain/${kind}`);
			expect(await page.getAttribute('html', 'lang')).toBe(language);
			// The test below checks the accessibility of each kind of page, and a language changes only words.
			if (judged.includes(kind)) expect(await flaws()).toEqual([]);
			await picture(page, `${kind}-${language}`);
			for (const size of [320, 1280]) {
				await page.setViewportSize({ width: size, height: 700 });
				expect(await width()).toBeLessThanOrEqual(size);
			}
		}
		expect(problems).toEqual([]);
	},
);

inBrowser.each(Object.keys(brandings).map((name) => [name]))(
	'pages have no accessibility violations %s, light and dark (needs Chromium)',
	async (branding) => {
		for (const kind of Object.keys(kinds)) {
			for (const colorScheme of ['light', 'dark'] as const) {
				await page.emulateMedia({ colorScheme });
				await page.goto(`${url}/${branding}/${kind}`);
				expect(await flaws()).toEqual([]);
			}
			await picture(page, `${kind}-${branding}`);
		}
		expect(problems).toEqual([]);
	},
);

inBrowser('pages load only themselves and the logo (needs Chromium)', async () => {
	const shown = async (branding: string) => {
		asked.length = 0;
		await page.goto(`${url}/${branding}/choice`, { waitUntil: 'networkidle' });
		const pictures = await page.$$eval('img', (images) => images.map(({ naturalWidth }) => naturalWidth));
		return { pictures, asked: asked.filter((one) => !one.endsWith('/favicon.ico')) };
	};
	expect(await shown('named')).toEqual({ pictures: [], asked: [`${url}/named/choice`] });
	expect(await shown('branded')).toEqual({ pictures: [240], asked: [`${url}/branded/choice`, logo] });
	expect(await shown('embedded')).toEqual({ pictures: [240], asked: [`${url}/embedded/choice`] });
	expect(problems).toEqual([]);
	// The page may not load another image from the site of its logo.
	await page.goto(`${url}/branded/choice`);
	await page.evaluate("document.querySelector('img').src = 'https://cdn.example/other.svg'");
	await eventually(() =>
		expect(problems.join()).toContain('violates the following Content Security Policy directive'),
	);
});

inBrowser('pages show the name of the sender if the logo cannot be loaded (needs Chromium)', async () => {
	await context.unroute('https://cdn.example/**');
	await context.route('https://cdn.example/**', (route) => route.abort());
	await page.goto(`${url}/branded/choice`);
	expect(await page.getByRole('img', { name: 'Birds & Bees' }).count()).toBe(1);
	await picture(page, 'choice-no-logo');
});
