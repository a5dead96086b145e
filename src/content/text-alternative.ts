/** The text part of a message whose author wrote only HTML. */
import { compile, type HtmlToTextOptions } from 'html-to-text';
import { variablePattern } from './variable-names.js';

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'];

const options: HtmlToTextOptions = {
	wordwrap: 78,
	// Recursion in the converter: past this depth it writes an ellipsis instead of running out of stack.
	limits: { maxDepth: 400 },
	formatters: {
		// What an image shows; its address says nothing to a reader of plain text.
		alternative: (element, _walk, builder) => {
			const alt: unknown = element.attribs?.['alt'];
			if (typeof alt === 'string' && alt !== '') builder.addInline(alt);
		},
	},
	selectors: [
		...headings.map((selector) => ({ selector, options: { uppercase: false } })),
		{ selector: 'a', options: { hideLinkHrefIfSameAsText: true, noAnchorUrl: true } },
		{ selector: 'img', format: 'alternative' },
		// Hidden from people who see the HTML (preview lines, mostly), so not for people who read the text.
		{ selector: '[style*="display:none"i]', format: 'skip' },
		{ selector: '[style*="display: none"i]', format: 'skip' },
	],
};

/**
 * Text of an HTML document: headings as written, links after their words in brackets, lines of ≤ 78 characters
 * where there is a blank. Variables survive, in links too. Empty when the document shows no text.
 */
export function textAlternative(html: string): string {
	// `href="#link#"` looks like an anchor of the page, which the converter drops, so variables travel in disguise:
	// private-use characters that no entity and no white-space rule touches.
	const names: string[] = [];
	const disguised = html.replace(variablePattern(), (token) => `\ue000${names.push(token) - 1}\ue001`);
	const text = compile(options)(disguised).replace(
		/\ue000(\d{1,7})\ue001/g,
		(written, index) => names[Number(index)] ?? written,
	);
	// By lines: a regular expression for blanks before a line end is quadratic on long runs of them.
	const lines = text.split('\n').map((line) => line.trimEnd());
	return lines
		.join('\n')
		.replace(/\n{3,}/g, '\n\n')
		.trim();
}
