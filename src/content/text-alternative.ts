import { compile, type HtmlToTextOptions } from 'html-to-text';
import { oneLine, referencePattern } from '../api/variables.js';

const headings = ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'];
/** Elements that start a new line. The converter alone would join their text with the text around them. */
const blocks =
	'address caption center dd details dl dt fieldset figcaption figure hgroup legend option summary tr'.split(
		' ',
	);

const options: HtmlToTextOptions = {
	wordwrap: 78,
	// Without this option, the converter splits long words at the text "undefined".
	longWordSplit: { wrapCharacters: ['\n'] },
	// The converter would overflow the stack on deeper elements, so it writes an ellipsis for them.
	limits: { maxDepth: 400 },
	formatters: {
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
			// `text` lacks the blanks between words, so compare it with `href` without blanks.
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
		{ selector: '[style*="display:none"i]', format: 'skip' },
		{ selector: '[style*="display: none"i]', format: 'skip' },
	],
};

/** Empty if the document has no visible text. */
export function textAlternative(html: string): string {
	// The converter would drop `href="#link#"` as an anchor, so private-use characters replace variables.
	const names: string[] = [];
	const disguised = html.replace(referencePattern(), (token) => `\ue000${names.push(token) - 1}\ue001`);
	const text = convert(disguised).replace(
		/\ue000(\d{1,7})\ue001/g,
		(written, index) => names[Number(index)] ?? written,
	);
	// Avoids a regular expression, which would take quadratic time on long runs of blanks.
	const lines = text.split('\n').map((line) => line.trimEnd());
	return lines
		.join('\n')
		.replace(/\n{3,}/g, '\n\n')
		.trim();
}

function readableHref(href: string): string {
	const url = href.replace(/[\t\r\n]/g, '').trim();
	const [, address] = /^(?:mailto|tel):([^?]+)/i.exec(url) ?? [];
	if (address !== undefined) return decoded(address);
	return url.startsWith('#') ? '' : url.replace(/\s/g, '%20');
}

function decoded(text: string): string {
	try {
		return oneLine(decodeURIComponent(text)).trim();
	} catch {
		return text;
	}
}

/** If the HTML is not longer than this, the converter wraps its text quickly, even if the text is one long word. */
const smallLength = 64 * 1024;
const endlessLength = 1_000;

/** Does not wrap a large text that has a very long word: copying the word for each line takes minutes for 2 MiB. */
function convert(html: string): string {
	if (html.length > smallLength) {
		const text = compile({ ...options, wordwrap: false })(html);
		if (text.split(/[ \n]/).some((word) => word.length > endlessLength)) return text;
	}
	return compile(options)(html);
}

export function noAlternative(why: string): string {
	return `No text alternative could be made from the HTML: ${why.replace(/\.$/, '')}.`;
}
