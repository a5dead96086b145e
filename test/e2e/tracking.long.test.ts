import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { hasChromium, launchChromium, picture } from '../support/chromium.js';
import { eventually } from '../support/eventually.js';
import { listenOn } from '../support/listen.js';
import { type Delivered, type Served, startServed, unsubscribeUrl } from '../support/served.js';

const userAgent =
	'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36';
let browser: Browser | undefined;
let context: BrowserContext;
let served: Served;

beforeAll(async () => {
	browser = await launchChromium();
});
afterAll(() => browser?.close());
beforeEach(async () => {
	served = await startServed();
	if (browser !== undefined) context = await browser.newContext({ userAgent });
});
afterEach(async () => {
	await context?.close();
	await served.close();
});

const inBrowser = it.skipIf(!hasChromium);

const html = (target: string) => `<!doctype html><html><head><title>News</title>
<style>p { font-family: sans-serif; color: #223 }</style></head>
<body><h1>Hello #name#</h1><p>Have a <a href="${target}/offer?who=#email#">look</a>, or read this
<a href="#view_url#">in the browser</a>. Enough? <a href="#unsubscribe_url#">Unsubscribe</a>.</p></body></html>`;

/** Opens the delivered HTML, as a mail program would. */
async function read(mail: Delivered): Promise<Page> {
	const file = join(mkdtempSync(join(tmpdir(), 'mailctl-mail-')), 'mail.html');
	writeFileSync(file, mail.email.html ?? '');
	const page = await context.newPage();
	await page.goto(`file://${file}`, { waitUntil: 'load' });
	return page;
}

const total = async (human = false) => (await served.engine.ext.reports.report({ human })).total;

inBrowser('a mail is opened once, a click arrives, and the report shows both (needs Chromium)', async () => {
	const asked: string[] = [];
	const target = createServer((request, response) => {
		asked.push(`${request.url} ${request.headers.referer ?? 'no referrer'}`);
		response.end('<title>Offer</title>here');
	});
	const port = await listenOn(target);
	try {
		const mail = await served.deliver({
			html_body: html(`http://127.0.0.1:${port}`),
			context: { name: 'Ada' },
		});
		served.later(60);
		const page = await read(mail);
		expect(await page.textContent('h1')).toBe('Hello Ada');
		await eventually(async () => expect((await total()).opened).toBe(1));
		const sizes = await page.$$eval('img', (images) =>
			images.map((image) => [image.naturalWidth, image.complete]),
		);
		expect(sizes).toEqual([[1, true]]);
		await page.click('text=look');
		await page.waitForURL(`http://127.0.0.1:${port}/offer?who=ada%40example.org`);
		expect(asked.filter((line) => line.startsWith('/offer'))).toEqual([
			'/offer?who=ada%40example.org no referrer',
		]);
		await eventually(async () => expect((await total(true)).redirected_percent).toBe(100));
		expect(await total(true)).toMatchObject({
			sent: 1,
			opened: 1,
			opened_percent: '100',
			unsubscribed_percent: 0,
		});
		expect(served.failures).toEqual([]);
	} finally {
		target.close();
	}
});

inBrowser('a person unsubscribes with the button, not by opening the page (needs Chromium)', async () => {
	const mail = await served.deliver({ html_body: html('https://x.example'), context: { name: 'Ada' } });
	served.later(60);
	const page = await read(mail);
	const problems: string[] = [];
	page.on('console', (message) => problems.push(message.text()));
	await page.click('text=Unsubscribe');
	await page.waitForURL(unsubscribeUrl(mail));
	await page.reload();
	expect(await page.textContent('h1')).toBe('Unsubscribe');
	expect((await total()).unsubscribed_percent).toBe(0);
	await picture(page, 'unsubscribe');
	// Uses only the keyboard.
	await page.keyboard.press('Tab');
	expect(await page.evaluate('document.activeElement.textContent')).toBe('Unsubscribe');
	await page.keyboard.press('Enter');
	await page.waitForSelector('text=You are unsubscribed');
	await picture(page, 'unsubscribed');
	expect((await total()).unsubscribed_percent).toBe(100);
	expect(await context.cookies()).toEqual([]);
	expect(problems).toEqual([]);
});

inBrowser(
	'a mail is shown in the browser, where its scripts and forms do not work (needs Chromium)',
	async () => {
		const hostile =
			`${html('https://x.example')}<script>document.title = 'stolen'</script><img src=x onerror="document.title='stolen'">` +
			'<meta http-equiv="refresh" content="0;url=https://evil.example/"><iframe src="https://evil.example/"></iframe>';
		const mail = await served.deliver({ html_body: hostile, context: { name: 'Ada' } });
		served.later(60);
		const page = await context.newPage();
		await page.goto(/"(http:[^"]*\/v\/[^"]*)"/.exec(mail.email.html ?? '')?.[1] ?? '');
		expect(await page.textContent('h1')).toBe('Hello Ada');
		expect(await page.title()).toBe('News');
		expect(await page.getAttribute('text=look', 'href')).toBe(
			'https://x.example/offer?who=ada%40example.org',
		);
		await picture(page, 'view');
		await page.click('text=Unsubscribe');
		await page.waitForURL(unsubscribeUrl(mail));
		const text = await served.deliver({
			to: ['bob@example.org'],
			text_body: 'Dear all,\n\nread https://x.example/.\n\n#view_url#',
		});
		await page.goto(/http:\S+\/v\/\S+/.exec(text.email.text ?? '')?.[0] ?? '');
		await picture(page, 'view-text');
		await page.goto(`${served.url}/c/nothing`);
		expect(await page.textContent('h1')).toBe('This link does not work');
		await picture(page, 'not-found');
	},
);
