import { describe, expect, it } from 'vitest';
import {
	ClickWindow,
	type MachineReason,
	machineRequest,
	type Visit,
} from '../../../src/delivery/tracking/machines.js';

const chrome =
	'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36';

function reasonOf(userAgent: string | undefined, over: Partial<Visit> = {}): MachineReason | null {
	return machineRequest({ kind: 'open', method: 'GET', headers: { 'user-agent': userAgent }, ...over });
}

describe('a request', () => {
	it.each<[string]>([
		[chrome],
		[
			'Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
		],
		[
			'Mozilla/5.0 (Linux; Android 9; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/119.0.0.0 Mobile Safari/537.36',
		],
		['Outlook-iOS/709.2226530.prod.iphone (3.24.1)'],
		['Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17126; Pro)'],
		['Mozilla/4.0 (compatible; ms-office; MSOffice 16)'],
		['NodeMail/2 (Javanese edition)'],
	])('may come from a person if its user agent is %s', (userAgent) => {
		expect(reasonOf(userAgent)).toBeNull();
	});

	it.each<[MachineReason, string]>([
		[
			'image_proxy',
			'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)',
		],
		['image_proxy', 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
		['image_proxy', 'Mozilla/5.0'],
		[
			'image_proxy',
			'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0',
		],
		['scanner', 'BarracudaCentral'],
		[
			'headless',
			'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/120.0.0.0 Safari/537.36',
		],
		['program', ''],
		['program', 'curl/8.4.0'],
		['program', 'python-requests/2.31.0'],
		['program', 'node'],
		['robot', 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'],
		['robot', 'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5'],
	])('comes from a bot (%s) if its user agent is %j', (reason, userAgent) => {
		expect(reasonOf(userAgent)).toBe(reason);
	});

	it('comes from a bot if it is a click by Microsoft Office', () => {
		const office = 'Mozilla/4.0 (compatible; ms-office; MSOffice 16)';
		expect(reasonOf(office, { kind: 'click' })).toBe('scanner');
		expect(reasonOf('Microsoft Office Existence Discovery', { kind: 'click' })).toBe('scanner');
	});

	it('comes from a bot if its method is HEAD or it has a prefetch header', () => {
		expect(reasonOf(chrome, { method: 'HEAD' })).toBe('head');
		for (const headers of [
			{ purpose: 'prefetch' },
			{ 'sec-purpose': 'prefetch;prerender' },
			{ 'x-purpose': 'preview' },
			{ 'x-moz': 'prefetch' },
		]) {
			expect(reasonOf(chrome, { headers: { 'user-agent': chrome, ...headers } })).toBe('prefetch');
		}
	});

	it('is classified quickly with any user agent', () => {
		for (const part of ['bot', 'a', ' ', 'Mozilla/5.0', 'cubot ', '\u0000']) {
			const userAgent = part.repeat(100_000 / part.length);
			expect(['robot', 'program', null]).toContain(reasonOf(userAgent));
		}
	});
});

describe('clicks on several links', () => {
	const second = 1_000_000;

	it('come from a bot once three links of one message are clicked within ten seconds', () => {
		const window = new ClickWindow();
		const clicks = [0, 0, 1, 1, 2, 0, 3].map((link, at) =>
			window.isBurst({ message: 'm', link, at: at * second }),
		);
		expect(clicks).toEqual([false, false, false, false, true, true, true]);
	});

	it('come from a person if they are slow or belong to different messages', () => {
		const window = new ClickWindow();
		expect([0, 1, 2, 3].map((link) => window.isBurst({ message: 'm', link, at: link * 6 * second }))).toEqual(
			[false, false, false, false],
		);
		expect(['a', 'b', 'c'].map((message, link) => window.isBurst({ message, link, at: 0 }))).toEqual([
			false,
			false,
			false,
		]);
	});
});
