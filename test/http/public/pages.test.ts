import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import { describe, expect, it } from 'vitest';
import { type Branding, unbranded } from '../../../src/delivery/tracking/lookup.js';
import type { Presentation } from '../../../src/http/public/pages.js';
import {
	failedPage,
	maskedAddress,
	notFoundPage,
	senderName,
	textMessagePage,
	unsubscribedPage,
	unsubscribePage,
} from '../../../src/http/public/pages.js';
import { styleSheet } from '../../../src/http/public/style.js';
import { type Language, languages } from '../../../src/http/public/texts.js';

const plain: Presentation = { language: 'en', branding: unbranded };
const hostile = `"><script>alert(1)</script>' onload=x \u0000\u001b`;
const everyPage = (presentation: Presentation) => [
	unsubscribePage(presentation, { address: hostile, sender: hostile, list: hostile }),
	unsubscribePage(presentation, { address: hostile, sender: hostile, list: null }),
	unsubscribedPage(presentation, { address: hostile, sender: hostile, list: null }),
	unsubscribedPage(presentation, { address: hostile, sender: hostile, list: hostile }),
	notFoundPage(presentation),
	failedPage(presentation, null),
	failedPage(presentation, 'list'),
	textMessagePage(presentation, { subject: hostile, text: `${hostile} https://x.y/"onclick=x ${hostile}` }),
];

const logo = 'https://cdn.example/logo.png?v=1&w="';
const presentations: Presentation[] = [
	...languages.map((language) => ({ language, branding: unbranded })),
	{ language: 'en', branding: { name: hostile, logo: null, color: '#ffee00' } },
	{ language: 'en', branding: { name: hostile, logo, color: '#000000' } },
	{ language: 'en', branding: { name: null, logo, color: '#ffffff' } },
];

const allowed =
	/^(html|head|meta|title|style|body|header|img|main|h1|p|div|a|form|fieldset|legend|label|input|span|button)$/;

describe('every page', () => {
	it('has only known elements, declares its language, and has one heading equal to its title', () => {
		for (const presentation of presentations) {
			for (const { headers, body } of everyPage(presentation)) {
				const html = String(body);
				const names: string[] = [];
				let language = '';
				const parser = new Parser({
					onopentag: (name, attributes) => {
						names.push(name);
						if (name === 'html') language = attributes['lang'] ?? '';
						expect(Object.keys(attributes).filter((attribute) => attribute.startsWith('on'))).toEqual([]);
					},
				});
				parser.end(html);
				expect(names.filter((name) => !allowed.test(name))).toEqual([]);
				expect(names.filter((name) => name === 'h1')).toHaveLength(1);
				expect(names.filter((name) => name === 'img')).toHaveLength(
					presentation.branding.logo === null ? 0 : 1,
				);
				expect(language).toBe(presentation.language);
				expect(headers).toMatchObject({
					'Content-Language': presentation.language,
					Vary: 'Accept-Language',
				});
				expect(/<title>(.*)<\/title>/.exec(html)?.[1]).toBe(/<h1>(.*)<\/h1>/.exec(html)?.[1]);
				expect(html).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">');
				expect(html).not.toMatch(/[\0\u001b]/);
			}
		}
	});

	it('has no English text if its language is not English', () => {
		const words = (language: Language) => {
			const { body } = unsubscribePage(
				{ language, branding: unbranded },
				{ address: 'a…\u2060@b.example', sender: 'News', list: 'Birds' },
			);
			return new Set([...String(body).matchAll(/>([^<>]*\p{L}[^<>]*)</gu)].map(([, text]) => text));
		};
		const english = words('en');
		for (const language of languages.slice(1)) {
			const shared = [...words(language)].filter((text) => english.has(text) && !text?.includes('{'));
			expect({ language, shared }).toEqual({ language, shared: [] });
		}
	});

	it('marks the language of a mail’s text as unknown', () => {
		const { body } = textMessagePage(plain, { subject: 'Hei', text: 'Hei' });
		expect(String(body)).toContain('<main lang="">');
		expect(String(notFoundPage(plain).body)).toContain('<main>');
	});

	it.each([
		[null, ''],
		['https://cdn.example/a/logo.png', ' img-src https://cdn.example/a/logo.png;'],
		['https://cdn.example:8443/a;b,c.png?v=1', ' img-src https://cdn.example:8443/a%3Bb%2Cc.png;'],
		['data:image/png;base64,AAAA', ' img-src data:;'],
	])('has headers that allow only its own style, its form and the logo %s', (logo, pictures) => {
		for (const { headers, body } of everyPage({ language: 'en', branding: { ...unbranded, logo } })) {
			const style = /<style>([\s\S]*)<\/style>/.exec(String(body))?.[1] ?? '';
			const hash = createHash('sha256').update(style).digest('base64');
			expect(headers).toMatchObject({
				'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${hash}';${pictures} form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
				'Cache-Control': 'no-store',
				'Referrer-Policy': 'no-referrer',
				'X-Frame-Options': 'DENY',
				'X-Content-Type-Options': 'nosniff',
				'X-Robots-Tag': 'noindex, nofollow',
			});
			expect(style).not.toMatch(/url\(|@import/);
		}
	});

	it('shows the logo with the sender’s name as alt text, or only the name', () => {
		const shown = (branding: Partial<Branding>) =>
			/<header>.*<\/header>/.exec(
				String(notFoundPage({ language: 'en', branding: { ...unbranded, ...branding } }).body),
			)?.[0];
		expect(shown({})).toBeUndefined();
		expect(shown({ name: 'Birds & Co' })).toBe('<header>Birds &amp; Co</header>');
		expect(shown({ name: 'Birds & Co', logo: 'https://x.example/l.png?a&b' })).toBe(
			'<header><img src="https://x.example/l.png?a&amp;b" alt="Birds &amp; Co"></header>',
		);
		expect(shown({ logo: 'data:image/png;base64,AAAA' })).toBe(
			'<header><img src="data:image/png;base64,AAAA" alt=""></header>',
		);
	});

	it('has enough contrast with any colour, light and dark (WCAG AA)', () => {
		const color = fc
			.integer({ min: 0, max: 0xffffff })
			.map((value) => `#${value.toString(16).padStart(6, '0')}`);
		const examples = ['#1d4ed8', '#000000', '#ffffff', '#ffee00', '#777777', '#1c1f26'];
		fc.assert(
			fc.property(color, (given) => {
				const [light, dark] = [...styleSheet(given).matchAll(/--paper: ([^}]*)}/g)].map((match) =>
					colors(`--paper: ${match[1]}`),
				);
				expect(light?.['button']).toBe(given);
				for (const theme of [light, { ...light, ...dark }]) {
					for (const [ink, paper] of [
						['ink', 'paper'],
						['ink', 'ground'],
						['faint', 'paper'],
						['accent', 'paper'],
						['on-button', 'button'],
					] as const) {
						expect(contrast(theme?.[ink] ?? '', theme?.[paper] ?? '')).toBeGreaterThanOrEqual(4.5);
					}
				}
			}),
			{ examples: examples.map((one) => [one]) },
		);
	});
});

describe('an address on a page', () => {
	it.each([
		['Ada King <ada@example.org>', 'a…\u2060@example.org'],
		['ada@example.org', 'a…\u2060@example.org'],
		['a@example.org', '…\u2060@example.org'],
		['😀ada@example.org', '😀…\u2060@example.org'],
		['nonsense', '…'],
	])('of a recipient is masked: %j is shown as %j', (mailbox, shown) => {
		expect(maskedAddress(mailbox)).toBe(shown);
	});

	it.each([
		['News <news@example.com>', 'News (news@example.com)'],
		['"Birds, bees" <b@example.com>', 'Birds, bees (b@example.com)'],
		['news@example.com', 'news@example.com'],
	])('of a sender is shown in full: %j becomes %j', (mailbox, shown) => {
		expect(senderName(mailbox)).toBe(shown);
	});
});

function colors(declarations: string): Record<string, string> {
	return Object.fromEntries(
		[...declarations.matchAll(/--([\w-]+): (#[0-9a-f]+);/g)].map((match) => [match[1] ?? '', match[2] ?? '']),
	);
}

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
