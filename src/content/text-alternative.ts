/** The text part of a message whose author wrote only HTML. */
import { compile, type HtmlToTextOptions } from 'html-to-text';
import { oneLine, referencePattern } from '../api/variables.js';

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'];
/** Without an entry here the converter runs their text together with what stands beside them. */
const blocks =
	'address caption center dd details dl dt fieldset figcaption figure hgroup legend option summary tr'.split(
		' ',
	);

const options: HtmlToTextOptions = {
	wordwrap: 78,
	// Without it the converter cuts long words at the text "undefined". No word holds a line end.
	longWordSplit: { wrapCharacters: ['\n'] },
	// Recursion in the converter: below this depth it writes an ellipsis instead of running out of stack.
	limits: { maxDepth: 400 },
	formatters: {
		// The text of an image, separated from its neighbours; its address is useless to a reader of plain text.
		alternative: (element, _walk, builder) => {
			const alt: unknown = element.attribs?.['alt'];
			builder.addInline(typeof alt === 'string' ? ` ${alt} ` : ' ');
		},
		cell: (element, walk, builder) => {
			walk(element.children, builder);
			builder.addInline(' ');
		},
		link: (element, walk, builder) => {
			const href = readableHref(String(element.attribs?.['href'] ?? ''));
			let text = '';
			builder.pushWordTransform((word) => {
				text += word;
				return word;
			});
			walk(element.children, builder);
			builder.popWordTransform();
			// Words come without the blanks between them.
			if (href === '' || text === href.replaceAll(' ', '')) return;
			builder.addInline(text === '' ? href : ` [${href}]`, { noWordTransform: true });
		},
	},
	selectors: [
		...headings.map((selector) => ({ selector, options: { uppercase: false } })),
		...blocks.map((selector) => ({
			selector,
			format: 'block',
			options: { leadingLineBreaks: 1, trailingLineBreaks: 1 },
		})),
		...['td', 'th'].map((selector) => ({ selector, format: 'cell' })),
		{ selector: 'a', format: 'link' },
		{ selector: 'img', format: 'alternative' },
		{
			selector: 'table.rows',
			format: 'dataTable',
			options: { uppercaseHeaderCells: false, maxColumnWidth: 40 },
		},
		// Hidden in the HTML (mostly preview lines), so hidden in the text too.
		{ selector: '[style*="display:none"i]', format: 'skip' },
		{ selector: '[style*="display: none"i]', format: 'skip' },
	],
};

/** A noncharacter in place of a hash that the HTML has as an entity: no variable begins or ends there. */
export const literalHash = '\ufdd0';

/**
 * Text of an HTML document: headings as written, links in brackets after their text, lines of ≤ 78 characters where
 * there is a blank, or not wrapped at all where a word is endless. Variables are kept, in links too, and
 * `literalHash` stands for the hash of an entity. Empty when the document has no visible text.
 */
export function textAlternative(html: string): string {
	// `href="#link#"` looks like an anchor of the page, which the converter drops. So variables are replaced by
	// private-use characters that no entity and no white-space rule touches.
	const names: string[] = [];
	const disguised = html.replace(referencePattern(), (token) => `\ue000${names.push(token) - 1}\ue001`);
	const literal = disguised.replace(/&(?:#0{0,9}35(?!\d)|#x0{0,9}23(?![\da-f])|num(?=;));?/gi, literalHash);
	const text = convert(literal).replace(
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

/** A target as a reader of plain text can use it: an address or a number alone, else a link without blanks. */
function readableHref(href: string): string {
	const url = href.replace(/[\t\r\n]/g, '').trim();
	const [, address] = /^(?:mailto|tel):([^?]+)/i.exec(url) ?? [];
	if (address !== undefined) return decoded(address);
	return url.startsWith('#') || url.startsWith(literalHash) ? '' : url.replace(/\s/g, '%20');
}

function decoded(text: string): string {
	try {
		return oneLine(decodeURIComponent(text)).trim();
	} catch {
		return text;
	}
}

/** A document up to this size has no word that is expensive to wrap. */
const smallLength = 64 * 1024;
const endlessLength = 1_000;

/** To wrap, the converter copies a long word for each piece appended to it: a word of 2 MiB took minutes. */
function convert(html: string): string {
	if (html.length > smallLength) {
		const text = compile({ ...options, wordwrap: false })(html);
		if (text.split(/[ \n]/).some((word) => word.length > endlessLength)) return text;
	}
	return compile(options)(html);
}

/** The warning for a message without a text. */
export function noAlternative(why: string): string {
	return `No text alternative could be made from the HTML: ${why.replace(/\.$/, '')}.`;
}
