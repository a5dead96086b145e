// What the pages say and show, whatever names and texts they are given.
import { createHash } from 'node:crypto';
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import {
	failedPage,
	notFoundPage,
	textMessagePage,
	unsubscribedPage,
	unsubscribePage,
} from '../../../src/http/public/pages.js';
import { maskedAddress, senderName } from '../../../src/http/public/reader.js';

const hostile = `"><script>alert(1)</script>' onload=x \u0000\u001b`;
const pages = [
	unsubscribePage({ address: hostile, sender: hostile, list: hostile }),
	unsubscribedPage({ address: hostile, sender: hostile, list: null }),
	notFoundPage(),
	failedPage('look'),
	failedPage('unsubscribe'),
	textMessagePage({ subject: hostile, text: `${hostile} https://x.y/"onclick=x ${hostile}` }),
];

describe('every page', () => {
	it('is made of its own elements only, says its language, and has one heading like its title', () => {
		for (const { body } of pages) {
			const html = String(body);
			const names: string[] = [];
			let language = '';
			const parser = new Parser({
				onopentag: (name, attributes) => {
					names.push(name);
					language = attributes['lang'] ?? language;
					expect(Object.keys(attributes).filter((attribute) => attribute.startsWith('on'))).toEqual([]);
				},
			});
			parser.end(html);
			expect(
				names.filter((name) => !/^(html|head|meta|title|style|body|main|h1|p|div|a|form|button)$/.test(name)),
			).toEqual([]);
			expect(names.filter((name) => name === 'h1')).toHaveLength(1);
			expect(language).toBe('en');
			expect(/<title>(.*)<\/title>/.exec(html)?.[1]).toBe(/<h1>(.*)<\/h1>/.exec(html)?.[1]);
			expect(html).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
			expect(html).not.toMatch(/[\0\u001b]/);
		}
	});

	it('allows its own style and its own form, and nothing else', () => {
		for (const { headers, body } of pages) {
			const style = /<style>([\s\S]*)<\/style>/.exec(String(body))?.[1] ?? '';
			const hash = createHash('sha256').update(style).digest('base64');
			expect(headers).toMatchObject({
				'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
				'Cache-Control': 'no-store',
				'Referrer-Policy': 'no-referrer',
				'X-Frame-Options': 'DENY',
				'X-Content-Type-Options': 'nosniff',
				'X-Robots-Tag': 'noindex, nofollow',
			});
		}
	});

	it('can be read by weak eyes, in the light and in the dark (WCAG AA)', () => {
		const style = /<style>([\s\S]*)<\/style>/.exec(String(notFoundPage().body))?.[1] ?? '';
		const themes = [...style.matchAll(/--paper: ([^}]*)}/g)].map((match) => colors(`--paper: ${match[1]}`));
		expect(themes).toHaveLength(2);
		for (const theme of themes) {
			for (const [ink, paper] of [
				['ink', 'paper'],
				['faint', 'paper'],
				['accent', 'paper'],
				['on-accent', 'accent'],
			] as const) {
				expect(contrast(theme[ink] ?? '', theme[paper] ?? '')).toBeGreaterThanOrEqual(4.5);
			}
		}
	});

	it('is written in no time for hostile text', () => {
		for (const part of ['http://', 'https://!', 'http://x.', '<', 'https://x.y/ ']) {
			textMessagePage({ subject: 'x', text: part.repeat(1_000_000 / part.length) });
		}
	});
});

describe('a reader', () => {
	it.each([
		['Ada King <ada@example.org>', 'a…@example.org'],
		['ada@example.org', 'a…@example.org'],
		['a@example.org', '…@example.org'],
		['😀ada@example.org', '😀…@example.org'],
		['nonsense', '…'],
	])('%j is shown as %j', (mailbox, shown) => {
		expect(maskedAddress(mailbox)).toBe(shown);
	});

	it.each([
		['News <news@example.com>', 'News (news@example.com)'],
		['"Birds, bees" <b@example.com>', 'Birds, bees (b@example.com)'],
		['news@example.com', 'news@example.com'],
	])('of %j is told that it is from %j', (mailbox, shown) => {
		expect(senderName(mailbox)).toBe(shown);
	});
});

function colors(declarations: string): Record<string, string> {
	return Object.fromEntries(
		[...declarations.matchAll(/--([\w-]+): (#[0-9a-f]+);/g)].map((match) => [match[1] ?? '', match[2] ?? '']),
	);
}

/** WCAG 2.1, "contrast ratio". */
function contrast(a: string, b: string): number {
	const [dark = 0, light = 0] = [luminance(a), luminance(b)].sort((x, y) => x - y);
	return (light + 0.05) / (dark + 0.05);
}

function luminance(color: string): number {
	const hex = color.length === 4 ? color.replace(/[0-9a-f]/g, '$&$&') : color;
	const channel = (at: number) => {
		const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
		return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
	};
	return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}
