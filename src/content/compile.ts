/** Compiles a content once, so that a message for one recipient is a few string joins. */
import type { Content } from '../api/content.js';
import { contentSha256 } from './hash.js';
import { inlineStyles } from './inline-css.js';
import { compileBody, compileSubject, writeFields } from './message.js';
import { compilePart } from './part.js';
import { textAlternative } from './text-alternative.js';
import type { CompiledContent, InlineCss } from './types.js';
import { quoteAttributes, urlGuards } from './urls.js';
import { usedVariables } from './variable-names.js';
import {
	escapeHtml,
	normalLineEnds,
	oneLine,
	parseTemplate,
	renderTemplate,
	type Template,
} from './variables.js';

/**
 * Inlines CSS (unless the author said no), makes the text alternative, encodes what is constant. Never rejects for
 * what is in the content: what could not be done is in `warnings`, and the mail goes out as written.
 */
export async function compileContent(content: Content, inlineCss: InlineCss): Promise<CompiledContent> {
	const inlined = await inlineHtml(content, inlineCss);
	const html = inlined.html === null ? null : quoteAttributes(normalLineEnds(inlined.html));
	const text =
		content.text === null ? alternativeOf(html) : { text: normalLineEnds(content.text), warnings: [] };
	const templates = {
		subject: parseTemplate(oneLine(content.subject)),
		text: text.text === null ? null : parseTemplate(text.text),
		html: html === null ? null : parseTemplate(html, urlGuards(html)),
	};
	return {
		variables: usedVariables(content),
		warnings: [...inlined.warnings, ...text.warnings],
		...writers(templates, contentSha256(content)),
	};
}

interface Templates {
	subject: Template;
	text: Template | null;
	html: Template | null;
}

function writers(templates: Templates, sha256: string): Pick<CompiledContent, 'join' | 'preview'> {
	const { subject, text, html } = templates;
	const writeSubject = compileSubject(subject);
	const writeBody = compileBody({
		text: text && compilePart({ template: text, subtype: 'plain', escape: normalLineEnds }),
		html: html && compilePart({ template: html, subtype: 'html', escape: escapeHtml }),
		sha256,
	});
	return {
		join: (envelope, recipient) => {
			const fields = writeFields(writeSubject(recipient.variables), envelope, recipient);
			// All of it is ASCII by now, and latin1 is the cheapest way to bytes.
			return Buffer.from(fields + writeBody(recipient.variables), 'latin1');
		},
		preview: ({ variables }) => ({
			subject: renderTemplate(subject, variables, oneLine),
			text: text === null ? '' : renderTemplate(text, variables, normalLineEnds),
			html: html === null ? null : renderTemplate(html, variables, escapeHtml),
		}),
	};
}

interface Inlined {
	html: string | null;
	warnings: readonly string[];
}

async function inlineHtml(content: Content, inlineCss: InlineCss): Promise<Inlined> {
	if (content.html === null || content.disable_inline) return { html: content.html, warnings: [] };
	return await inlineStyles(content.html, inlineCss);
}

/** Null for HTML that shows no text: an empty alternative helps nobody and looks like spam. */
function alternativeOf(html: string | null): { text: string | null; warnings: readonly string[] } {
	if (html === null) return { text: '', warnings: [] };
	try {
		const text = textAlternative(html);
		return { text: text === '' ? null : text, warnings: [] };
	} catch (error) {
		const why = error instanceof Error ? error.message : String(error);
		return { text: null, warnings: [`No text alternative could be made from the HTML: ${why}.`] };
	}
}
