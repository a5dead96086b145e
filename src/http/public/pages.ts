/** The pages that mails link to: plain HTML that works without script, on a telephone, in the dark and read aloud. */
import { createHash } from 'node:crypto';
import type { HttpResponse } from '../messages.js';
import { escapeHtml } from './escape.js';
import { language, texts } from './texts.js';

export interface Reader {
	/** Masked: whoever has the link need not learn the address. */
	address: string;
	sender: string;
	list: string | null;
}

/** Asks; changes nothing. */
export function unsubscribePage({ address, sender, list }: Reader): HttpResponse {
	const { title, question, list: listed, button, note } = texts.unsubscribe;
	const about = list === null ? '' : paragraph(listed(list));
	return page(200, title, paragraph(question(address, sender)) + about + form(button) + small(note));
}

/** Once it is durable. Says the same to somebody who had unsubscribed before. */
export function unsubscribedPage({ address, sender }: Reader): HttpResponse {
	const { title, done, note } = texts.unsubscribed;
	return page(200, title, paragraph(done(address, sender)) + small(note));
}

/** For anything that leads nowhere; says the same whatever was wrong with it. */
export function notFoundPage(): HttpResponse {
	const { title, why, what } = texts.notFound;
	return page(404, title, paragraph(why) + paragraph(what));
}

/** A 503, to be asked again in a minute. On that of `unsubscribe` is its button once more. */
export function failedPage(what: 'look' | 'unsubscribe'): HttpResponse {
	const { title, why, notUnsubscribed, button } = texts.failed;
	const body = what === 'look' ? paragraph(why) : paragraph(notUnsubscribed) + form(button);
	return page(503, title, body, { 'Retry-After': '60' });
}

/** A message that has no HTML, readable: its lines are kept, its addresses can be followed. */
export function textMessagePage(message: { subject: string; text: string }): HttpResponse {
	const subject = message.subject.trim() === '' ? texts.noSubject : message.subject;
	return page(200, subject, `<div class="text">${withLinks(message.text)}</div>`);
}

/** Of every answer here: nothing is kept, framed, indexed, guessed, or told to the next site. */
export const commonHeaders = {
	'Cache-Control': 'no-store',
	'Referrer-Policy': 'no-referrer',
	'X-Content-Type-Options': 'nosniff',
	'X-Frame-Options': 'DENY',
	'X-Robots-Tag': 'noindex, nofollow',
} as const;

function page(
	status: number,
	title: string,
	main: string,
	headers: Readonly<Record<string, string>> = {},
): HttpResponse {
	const heading = escapeHtml(title);
	return {
		status,
		headers: {
			'Content-Type': 'text/html; charset=utf-8',
			'Content-Security-Policy': policy(),
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
<main>
<h1>${heading}</h1>
${main}
</main>
</body>
</html>
`,
	};
}

/** The action is the page's own address, whatever path a proxy in front has put before it. */
function form(button: string): string {
	return `<form method="post"><button type="submit">${escapeHtml(button)}</button></form>\n`;
}

function paragraph(text: string): string {
	return `<p>${escapeHtml(text)}</p>\n`;
}

function small(text: string): string {
	return `<p class="note">${escapeHtml(text)}</p>\n`;
}

function withLinks(text: string): string {
	// Every other piece is an address; the punctuation of the sentence around it is not.
	return text
		.split(/(https?:\/\/[^\s<>"]{0,2000}[^\s<>"'.,;:!?)\]])/)
		.map((piece, index) => {
			const shown = escapeHtml(piece);
			return index % 2 === 1 ? `<a href="${shown}" rel="noreferrer nofollow">${shown}</a>` : shown;
		})
		.join('');
}

function policy(): string {
	const hash = createHash('sha256').update(style).digest('base64');
	return `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
}

const style = `
:root { color-scheme: light dark; --paper: #fff; --ground: #f3f4f6; --ink: #1a1d23; --faint: #555b66; --line: #d9dce1; --accent: #1d4ed8; --on-accent: #fff; }
@media (prefers-color-scheme: dark) {
:root { --paper: #1c1f26; --ground: #111318; --ink: #eceef2; --faint: #a9b0bc; --line: #333843; --accent: #93b4ff; --on-accent: #0b1220; }
}
* { box-sizing: border-box; }
body { margin: 0; padding: clamp(1rem, 6vh, 5rem) 1rem; background: var(--ground); color: var(--ink); font: 1.0625rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 36rem; margin: 0 auto; padding: clamp(1.25rem, 5vw, 2.5rem); background: var(--paper); border: 1px solid var(--line); border-radius: 12px; overflow-wrap: anywhere; }
h1 { margin: 0 0 1rem; font-size: 1.6rem; line-height: 1.25; text-wrap: balance; }
p { margin: 0 0 1rem; }
main > :last-child { margin-bottom: 0; }
.note { color: var(--faint); font-size: 0.9375rem; }
.text { white-space: pre-wrap; }
a { color: var(--accent); }
form { margin: 1.5rem 0; }
button { min-height: 44px; padding: 0.6rem 1.5rem; border: 0; border-radius: 8px; background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; cursor: pointer; }
button:hover { filter: brightness(1.1); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; }
@media (max-width: 30rem) { button { width: 100%; } }
`;
