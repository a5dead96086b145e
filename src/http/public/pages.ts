import { createHash } from 'node:crypto';
import { parseMailbox } from '../../api/address.js';
import { escapeHtml } from '../../api/quote.js';
import { type Branding, type TrackingPorts, unbranded } from '../../delivery/tracking/lookup.js';
import type { HttpResponse, PublicRequest } from '../wire.js';
import { styleSheet } from './style.js';
import { type Language, languages, texts } from './texts.js';

interface Reader {
	/** Masked, because a forwarded mail must not show the address to its new reader. */
	address: string;
	sender: string;
	list: string | null;
}

export type Scope = 'list' | 'all';

export function unsubscribePage(presentation: Presentation, { address, sender, list }: Reader): HttpResponse {
	const { unsubscribe, question, choice, ofList, ofAll, unchanged } = texts[presentation.language];
	const choices =
		list === null ? '' : fieldset(choice, [radio('list', ofList(list)), radio('all', ofAll(sender))]);
	const main = paragraph(question(address, sender)) + form(unsubscribe, choices) + small(unchanged);
	return page({ presentation, title: unsubscribe, main });
}

export function unsubscribedPage(
	presentation: Presentation,
	{ address, sender, list }: Reader,
): HttpResponse {
	const { unsubscribed, doneOfList, doneOfAll, underWay } = texts[presentation.language];
	const done = list === null ? doneOfAll(address, sender) : doneOfList(address, list);
	return page({ presentation, title: unsubscribed, main: paragraph(done) + small(underWay) });
}

export function notFoundPage(presentation: Presentation): HttpResponse {
	const { broken, brokenWhy, brokenAdvice } = texts[presentation.language];
	const main = paragraph(brokenWhy) + paragraph(brokenAdvice);
	return page({ presentation, title: broken, main, status: 404 });
}

export function failedPage(presentation: Presentation, unsubscribing: Scope | null): HttpResponse {
	const { failed, failedWhy, notUnsubscribed, tryAgain } = texts[presentation.language];
	const again = `<input type="hidden" name="scope" value="${unsubscribing}">`;
	const main =
		unsubscribing === null ? paragraph(failedWhy) : paragraph(notUnsubscribed) + form(tryAgain, again);
	return page({ presentation, title: failed, main, status: 503, headers: { 'Retry-After': '60' } });
}

export function textMessagePage(
	presentation: Presentation,
	message: { subject: string; text: string },
): HttpResponse {
	const subject = message.subject.trim() === '' ? texts[presentation.language].noSubject : message.subject;
	const main = `<div class="text">${withLinks(message.text)}</div>`;
	return page({ presentation, title: subject, main, isOfMail: true });
}

export const commonHeaders = {
	'Cache-Control': 'no-store',
	'Referrer-Policy': 'no-referrer',
	'X-Content-Type-Options': 'nosniff',
	'X-Frame-Options': 'DENY',
	'X-Robots-Tag': 'noindex, nofollow',
} as const;

interface Page {
	presentation: Presentation;
	title: string;
	main: string;
	isOfMail?: boolean;
	status?: number;
	headers?: Readonly<Record<string, string>>;
}

function page({
	presentation,
	title,
	main,
	isOfMail = false,
	status = 200,
	headers = {},
}: Page): HttpResponse {
	const { language, branding } = presentation;
	const heading = htmlText(title);
	const style = styleSheet(branding.color);
	return {
		status,
		headers: {
			'Content-Type': 'text/html; charset=utf-8',
			'Content-Language': language,
			Vary: 'Accept-Language',
			'Content-Security-Policy': policy(style, branding),
			...commonHeaders,
			...headers,
		},
		body: `<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="color-scheme" content="light dark">
<title>${heading}</title>
<style>${style}</style>
</head>
<body>
${banner(branding)}<main${isOfMail ? ' lang=""' : ''}>
<h1>${heading}</h1>
${main}
</main>
</body>
</html>
`,
	};
}

function banner({ name, logo }: Branding): string {
	if (name === null && logo === null) return '';
	const shown = htmlText(name ?? '');
	const picture = logo === null ? null : `<img src="${htmlText(logo)}" alt="${shown}">`;
	return `<header>${picture ?? shown}</header>\n`;
}

/** Without `action`, the browser posts to the page's own URL, including any path prefix of a proxy. */
function form(button: string, fields: string): string {
	return `<form method="post">${fields}<button type="submit">${htmlText(button)}</button></form>\n`;
}

function fieldset(legend: string, fields: readonly string[]): string {
	return `<fieldset><legend>${htmlText(legend)}</legend>${fields.join('')}</fieldset>`;
}

function radio(scope: Scope, label: string): string {
	const chosen = scope === 'list' ? ' checked' : '';
	return `<label><input type="radio" name="scope" value="${scope}"${chosen}><span>${htmlText(label)}</span></label>`;
}

function paragraph(text: string): string {
	return `<p>${htmlText(text)}</p>\n`;
}

function small(text: string): string {
	return `<p class="note">${htmlText(text)}</p>\n`;
}

function htmlText(text: string): string {
	return escapeHtml(text.replace(/[^\P{Cc}\t\n]/gu, ''));
}

function withLinks(text: string): string {
	// `split` puts the captured URLs at odd indexes.
	return text
		.split(/(https?:\/\/[^\s<>"]{0,2000}[^\s<>"'.,;:!?)\]])/)
		.map((piece, index) => {
			const shown = htmlText(piece);
			return index % 2 === 1 ? `<a href="${shown}" rel="noreferrer nofollow">${shown}</a>` : shown;
		})
		.join('');
}

function policy(style: string, { logo }: Branding): string {
	const hash = createHash('sha256').update(style).digest('base64');
	const pictures = logo === null ? '' : ` img-src ${imageSource(logo)};`;
	return `default-src 'none'; style-src 'sha256-${hash}';${pictures} form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
}

/** A source expression has no query (CSP 3 s.2.3.1). It can allow all data URIs, but not a particular one. */
function imageSource(logo: string): string {
	if (logo.startsWith('data:')) return 'data:';
	const { origin, pathname } = new URL(logo);
	return `${origin}${pathname.replaceAll(';', '%3B').replaceAll(',', '%2C')}`;
}

export function maskedAddress(mailbox: string): string {
	const address = parseMailbox(mailbox)?.address ?? mailbox;
	const at = address.lastIndexOf('@');
	if (at === -1) return '…';
	const [first = ''] = address.slice(0, at);
	// The word joiner prevents a line break after the dots.
	return `${at < 2 ? '' : first}…\u2060${address.slice(at)}`;
}

export function senderName(mailbox: string): string {
	const parsed = parseMailbox(mailbox);
	if (parsed === null) return mailbox;
	return parsed.name === '' ? parsed.address : `${parsed.name} (${parsed.address})`;
}

export interface Presentation {
	language: Language;
	branding: Branding;
}

export async function presentationOf(
	ports: Pick<TrackingPorts, 'branding'>,
	{ headers }: Pick<PublicRequest, 'headers'>,
): Promise<Presentation> {
	const branding = await ports.branding().catch(() => unbranded);
	return { language: chooseLanguage(headers['accept-language']), branding };
}

const maxRanges = 50;
const maxRangeLength = 64;

/** Reads Accept-Language (RFC 9110 s.12.5.4). `de-CH` matches `de` (RFC 4647 s.3.4). */
export function chooseLanguage(acceptLanguage: string | undefined): Language {
	const ranges = (acceptLanguage ?? '').split(',', maxRanges).map(parseRange);
	const wanted = ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality);
	for (const { name } of wanted) {
		const found = languages.find((language) => language === name);
		if (found !== undefined) return found;
	}
	return languages[0];
}

function parseRange(text: string): { name: string; quality: number } {
	if (text.length > maxRangeLength) return { name: '', quality: 0 };
	const [tag = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
	const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1';
	const isWeight = /^(?:0(?:\.\d*)?|1(?:\.0*)?)$/.test(weight);
	return { name: tag.split('-', 1)[0] ?? tag, quality: isWeight ? Number(weight) : 0 };
}
