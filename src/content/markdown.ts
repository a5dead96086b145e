import { Marked } from 'marked';
import { escapeHtml } from '../api/quote.js';
import { referencePattern } from '../api/variables.js';
import { textAlternative } from './text-alternative.js';

interface MarkdownBodies {
	heading: string | null;
	html: string;
	text: string;
}

export function markdownBodies(markdown: string): MarkdownBodies {
	const { hidden, restore } = hideVariables(markdown);
	const marked = new Marked({ gfm: true, async: false });
	const tokens = marked.lexer(hidden);
	const first = tokens.find((token) => token.type === 'heading' && token['depth'] === 1);
	const body = restore(marked.parser(tokens)).replaceAll('<table>\n<thead>', '<table class="rows">\n<thead>');
	const heading = first === undefined ? null : plainText(restore(marked.parser([first])));
	const html = layout(heading ?? '', body);
	return { heading: heading === '' ? null : heading, html, text: textAlternative(html) };
}

function plainText(html: string): string {
	return textAlternative(html).replace(/\s+/g, ' ');
}

/** Replaces each variable by a unique word, because the parser would read some variables as headings or table cells. */
function hideVariables(markdown: string): { hidden: string; restore: (text: string) => string } {
	const references: string[] = [];
	let word = 'qvar';
	while (markdown.includes(word)) word += 'q';
	const hidden = markdown.replace(
		referencePattern(),
		(reference) => `${word}${references.push(reference) - 1}z`,
	);
	const hiding = new RegExp(`${word}(\\d{1,7})z`, 'g');
	return {
		hidden,
		restore: (text) => text.replace(hiding, (written, index) => references[Number(index)] ?? written),
	};
}

const style = `
body { margin: 0; padding: 0; width: 100%; background: #f3f4f6 }
.page { background: #f3f4f6 }
.sheet { background: #ffffff; max-width: 600px }
.words { padding: 32px; color: #1f2937; font-family: -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; font-size: 16px; line-height: 1.5; overflow-wrap: anywhere }
.words h1 { margin: 0 0 16px; font-size: 28px; line-height: 1.2 }
.words h2 { margin: 32px 0 12px; font-size: 22px; line-height: 1.25 }
.words h3, .words h4, .words h5, .words h6 { margin: 24px 0 8px; font-size: 18px; line-height: 1.3 }
.words p, .words ul, .words ol, .words pre { margin: 0 0 16px }
.words ul, .words ol { padding: 0 0 0 24px }
.words a { color: #0b57b7; text-decoration: underline }
.words img { max-width: 100%; height: auto; border: 0 }
.words hr { margin: 24px 0; border: 0; border-top: 1px solid #d1d5db }
.words blockquote { margin: 0 0 16px; padding: 0 0 0 16px; border-left: 4px solid #d1d5db; color: #4b5563 }
.words code { font-family: Consolas, Menlo, monospace; font-size: 14px }
.words pre { padding: 12px; background: #f3f4f6; white-space: pre-wrap }
.words table { margin: 0 0 16px; border-collapse: collapse; text-align: left }
.words th, .words td { padding: 6px 10px; border: 1px solid #d1d5db; vertical-align: top; overflow-wrap: normal }
.words th:not([align]) { text-align: left }
@media (max-width: 480px) {
.words { padding: 20px !important }
.words h1 { font-size: 24px !important }
}
@media (prefers-color-scheme: dark) {
body, .page { background: #111827 !important }
.sheet { background: #1f2937 !important }
.words { color: #e5e7eb !important }
.words a { color: #8ab4f8 !important }
.words blockquote { color: #cbd5e1 !important; border-color: #6b7280 !important }
.words hr, .words th, .words td { border-color: #6b7280 !important }
.words pre { background: #111827 !important }
}
`;

/** Adds a table 600 px wide for Outlook for Windows, which does not support max-width. */
function layout(title: string, body: string): string {
	return `<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${escapeHtml(title)}</title>
<style>${style}</style>
</head>
<body>
<table class="page" role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td align="center">
<!--[if mso]><table role="presentation" width="600" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->
<table class="sheet" role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td class="words" align="left">
${body.trimEnd()}
</td></tr></table>
<!--[if mso]></td></tr></table><![endif]-->
</td></tr></table>
</body>
</html>
`;
}
