/** `report --save`: the files it writes, and how a browser shows the page. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hasChromium, launchChromium, picture } from '../../support/chromium.js';
import { makeProject, type Project } from '../../support/project.js';
import { type SmtpSink, startSmtpSink } from '../../support/smtp-sink.js';
import { track } from '../../support/tracked.js';

const hostile = `<img src=x onerror="alert(1)">'&|`;
const words = [
	...['send', '--from', 'news@example.com', '--list', '1', '--subject', 'S', '--yes', '--expect-count', '1'],
	...['--html', '<a href="https://example.com/?q=&quot;&gt;<script>">x</a>', '--campaign', hostile],
];
const now = ['--now', '2026-11-07T12:00:00Z'];

describe('a saved report', () => {
	let sink: SmtpSink;
	let project: Project;
	const path = (name: string) => join(project.folder, name);
	const saved = async (name: string, ...more: string[]) => {
		await project.json(['campaigns', 'report', hostile, '--save', path(name), ...more, ...now]);
		return readFile(path(name), 'utf8');
	};
	beforeAll(async () => {
		sink = await startSmtpSink();
		project = await makeProject({ smtp: sink.port });
		await project.json(['lists', 'create', '--name', 'Readers', '--email-reason', 'r']);
		await project.json(['subscribers', 'create', '-l', '1', '--email', 'ann@example.com']);
		await project.json([...words, ...now]);
		const [message] = (await project.json(['messages', 'list'])) as { id: string }[];
		await track(project.db, '2026-11-07T12:00:00Z', [{ message: message?.id ?? '', type: 'OPENED' }]);
	});
	afterAll(() => sink.close());

	it('lists each day’s figures as CSV, with a byte order mark and semicolons if --excel is given', async () => {
		const header = 'date,created,sent,opened,machine_opened,clicked,machine_clicked';
		const more = 'unsubscribed,complained,softbounced,hardbounced';
		const text = `${header},${more}\n2026-11-07,1,1,1,0,0,0,0,0,0,0\n`;
		expect(await saved('r.csv')).toBe(text);
		expect(await saved('excel.csv', '--excel')).toBe(`\ufeff${text.replaceAll(',', ';')}`);
	});

	it('contains the JSON that the command prints, and escapes the campaign name in Markdown', async () => {
		const printed = await project.json(['campaigns', 'report', hostile, ...now]);
		expect(JSON.parse(await saved('r.json'))).toEqual(printed);
		const markdown = await saved('r.md');
		expect(markdown.split('\n')[2]).toMatch(/^2026-11-07, time zone UTC; made 2026-.* UTC$/);
		expect(markdown.split('\n')[0]).toBe(`# Campaign \\<img src=x onerror="alert(1)"\\>'\\&\\|`);
		expect(markdown).toContain('| 2026-11-07 | 1 | 1 | 1 |');
		expect(markdown).toContain('## Links\n\n| Link | People |');
	});

	it('states that its link counts cover the whole campaign if --last limits the days', async () => {
		expect(await saved('life.html')).toContain('>Links<');
		expect(await saved('part.html', '--last', '7d')).toContain('>Links over the whole life of the campaign<');
	});

	it('contains the chart that --chart requests, in HTML and in SVG', async () => {
		const pictures = (page: string) => page.match(/(?<=role="img" aria-label=")[^"]*/g) ?? [];
		const byDay = 'messages sent, opened and clicked, by day';
		const page = async (chart: string) => saved(`${chart}.html`, '--chart', chart);
		expect(pictures(await page('bars'))[0]).toBe(byDay);
		expect(pictures(await page('line'))[0]).toBe(byDay);
		const heated = pictures(await page('heat'));
		expect(heated[0]).toBe('opens by weekday and hour');
		expect(heated).not.toContain(byDay);
		expect(pictures(await page('none'))).toEqual([]);
		const [bars, line, heat] = await Promise.all(
			['bars', 'line', 'heat'].map((chart) => saved(`${chart}.svg`, '--chart', chart)),
		);
		expect(new Set([bars, line, heat]).size).toBe(3);
		expect(heat).toMatch(/: opens by weekday and hour<.*>Mon<.*>Sun</s);
		expect(bars).toMatch(/>2026-11-07 \(UTC\): \d+ sent, 1 opened, \d+ clicked</);
		expect(heat).toContain('>2026-11-07 (UTC); darkest: 1 open in one hour of the week<');
	});

	it.each([
		['report', '--save', 'dry.html', '--force'],
		['campaigns', 'results', hostile, '--save', 'dry.csv'],
	])('is not written by a dry run: %s %s %s', async (...command) => {
		const name = command.find((word) => word.startsWith('dry.')) ?? '';
		const words = command.map((word) => (word === name ? path(name) : word));
		if (words.includes('--force')) await writeFile(path(name), 'mine');
		const before = await readdir(project.folder);
		expect(await project.json([...words, '-n', ...now])).toMatchObject({ dry_run: true, export: path(name) });
		expect(await readdir(project.folder)).toEqual(before);
		if (words.includes('--force')) expect(await readFile(path(name), 'utf8')).toBe('mine');
	});

	it('replaces an existing file only with --force', async () => {
		await writeFile(path('mine.html'), 'mine');
		const again = ['campaigns', 'report', hostile, '--save', path('mine.html'), ...now];
		const refused = await project.run(again);
		expect({ code: refused.code, stderr: refused.stderr }).toMatchObject({
			code: 2,
			stderr: expect.stringContaining('exists already'),
		});
		expect(await readFile(path('mine.html'), 'utf8')).toBe('mine');
		await project.json([...again, '--force']);
		expect(await readFile(path('mine.html'), 'utf8')).toContain('<!doctype html>');
	});

	it.each([
		[['--save', 'r.xlsx'], 'unknown file format'],
		[['--save', 'r.svg', '--chart', 'none'], '--chart none: a .svg file can have bars, line, heat'],
		[['--save', 'r.html', '--chart', 'heat', '--human'], '--chart heat cannot be used with'],
		[['--excel'], '--excel needs --save FILE'],
		[['--chart', 'heat'], '--chart heat needs --save\nhint: --save FILE.svg draws the chart\n'],
	])('cannot be written with %j', async (more, message) => {
		const { code, stderr } = await project.run(['report', ...more, ...now]);
		expect(code).toBe(2);
		expect(stderr).toContain(message);
	});

	it('includes the growth of lists unless the report is about one campaign', async () => {
		const of = async (name: string) => {
			await project.json(['report', '--save', path(name), '--last', '30d']);
			return readFile(path(name), 'utf8');
		};
		const page = await of('growth.html');
		expect(page).toContain('<h2>Growth of the lists</h2>');
		expect(page).toContain('aria-label="subscribers who joined or left Readers, by day"');
		expect(await of('growth.md')).toContain('| Readers | 1 | 1 | 0 | 0 | 0 |');
		const { lists } = JSON.parse(await of('growth.json')).details;
		expect(lists).toMatchObject([{ name: 'Readers', active: 1, added: 1 }]);
		expect(await saved('whole.html'), 'of a campaign').not.toContain('Growth');
	});

	it.runIf(hasChromium)(
		'has no overlapping words in its pictures, and obeys its Content-Security-Policy',
		async () => {
			await project.json(['report', '--save', path('week.html'), '--last', '7d']);
			const browser = await launchChromium();
			if (browser === undefined) throw new Error('no browser');
			try {
				const tab = await browser.newPage();
				const refused: string[] = [];
				tab.on('console', (message) => refused.push(message.text()));
				await tab.goto(`file://${path('week.html')}`);
				expect(await tab.evaluate(wordsOfPictures)).toEqual({ count: expect.any(Number), overlapping: [] });
				expect(refused).toEqual([]);
			} finally {
				await browser.close();
			}
		},
	);

	it.runIf(hasChromium)('is a valid page without scripts, and fits a phone’s screen', async () => {
		const page = await saved('r.html');
		expect(page).not.toContain('<img');
		expect(page).not.toMatch(/<script/i);
		const browser = await launchChromium();
		if (browser === undefined) throw new Error('no browser');
		try {
			const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
			const tab = await browser.newPage({ bypassCSP: true });
			await tab.goto(`file://${path('r.html')}`);
			for (const colorScheme of ['light', 'dark'] as const) {
				await tab.emulateMedia({ colorScheme });
				await tab.setViewportSize({ width: 320, height: 700 });
				await tab.addScriptTag({ content: axe });
				const found = await tab.evaluate<{ violations: { id: string }[] }>('axe.run()');
				expect(found.violations.map(({ id }) => id)).toEqual([]);
				expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(320);
			}
			await project.json(['report', '--save', path('phone.html'), '--last', '90d', ...now]);
			for (const name of ['r.html', 'phone.html']) {
				await tab.setViewportSize({ width: 375, height: 700 });
				await tab.goto(`file://${path(name)}`);
				expect(await tab.evaluate(cutOff)).toEqual([]);
				expect(await tab.evaluate(brokenWords)).toEqual([]);
			}
			await tab.goto(`file://${path('r.html')}`);
			await picture(tab, 'report');
			await saved('r.svg');
			await tab.goto(`file://${path('r.svg')}`);
			expect(await tab.evaluate('document.documentElement.nodeName')).toBe('svg');
			expect(await tab.evaluate('document.querySelector("parsererror") === null')).toBe(true);
		} finally {
			await browser.close();
		}
	});
});

/** Runs in the browser: finds elements wider than their container, and text of pictures below 9 pixels. */
const cutOff = `(() => {
	const wide = [document.documentElement, ...document.querySelectorAll('body *')].filter((one) =>
		!(one instanceof SVGElement) && getComputedStyle(one).display !== 'inline' && one.scrollWidth > one.clientWidth + 1);
	const tiny = [...document.querySelectorAll('figure text')].filter((one) => {
		const { height } = one.getBoundingClientRect();
		return height > 0 && height < 9;
	});
	return [...wide, ...tiny].map((one) => one.nodeName + ' ' + one.textContent.slice(0, 40));
})()`;

/** Runs in the browser: finds words of table headers that break across lines. */
const brokenWords = `[...document.querySelectorAll('th')].flatMap((th) =>
	[...th.textContent.matchAll(/\\S+/g)].flatMap(({ 0: word, index }) => {
		const range = document.createRange();
		range.setStart(th.firstChild, index);
		range.setEnd(th.firstChild, index + word.length);
		return range.getClientRects().length > 1 ? [word] : [];
	}))`;

/** Runs in the browser: finds pairs of words of one picture that overlap. */
const wordsOfPictures = `(() => {
	const pictures = [...document.querySelectorAll('figure svg')].map((svg) =>
		[...svg.querySelectorAll('text')].map((text) => ({ word: text.textContent, box: text.getBoundingClientRect() })));
	const cover = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
	const pairs = pictures.flatMap((words) => words.flatMap((one, at) =>
		words.slice(at + 1).filter((other) => cover(one.box, other.box)).map((other) => one.word + ' ' + other.word)));
	return { count: pictures.flat().length, overlapping: pairs };
})()`;
