/** Compiles a content once, so that a message for one recipient is a few string joins. */
import type { Content } from '../api/content.js';
import { ByteSink } from './byte-sink.js';
import { contentSha256 } from './hash.js';
import { inlineStyles } from './inline-css.js';
import { findLinks, type Link, targetUrl } from './links.js';
import { compileBody, compileSubject, fieldWriter } from './message.js';
import { compilePart, type Part } from './part.js';
import { textAlternative } from './text-alternative.js';
import { escapedTracking, fillTracked, trackedTemplate } from './tracked.js';
import type { CompiledContent, InlineCss } from './types.js';
import { quoteAttributes, urlGuards } from './urls.js';
import { usedVariables } from './variable-names.js';
import {
	type Escape,
	escapeHtml,
	fillSlot,
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
	return {
		variables: usedVariables(content),
		warnings: [...inlined.warnings, ...text.warnings],
		...writers({ subject: content.subject, text: text.text, html, sha256: contentSha256(content) }),
	};
}

interface Sources {
	subject: string;
	text: string | null;
	html: string | null;
	sha256: string;
}

type Writers = Pick<CompiledContent, 'links' | 'link' | 'join' | 'preview'>;

function writers(sources: Sources): Writers {
	const { sha256 } = sources;
	const guards = sources.html === null ? undefined : urlGuards(sources.html);
	const subject = parseTemplate(oneLine(sources.subject));
	const text = sources.text === null ? null : parseTemplate(sources.text);
	const html = sources.html === null ? null : parseTemplate(sources.html, guards);
	const links = sources.html === null ? [] : findLinks(sources.html);
	const writeSubject = compileSubject(subject);
	const textPart = once(() => text && plainPart(text, 'plain', normalLineEnds));
	// A content is tracked in all its messages or in none, so that only one of the two is ever made.
	const writePlain = once(() =>
		compileBody({ text: textPart(), html: html && plainPart(html, 'html', escapeHtml), sha256 }),
	);
	const writeTracked = once(() =>
		compileBody({ text: textPart(), html: trackedPart(sources.html, links, guards), sha256 }),
	);
	const out = new ByteSink();
	const writeFields = fieldWriter();
	return {
		links: links.length,
		link: (position, variables) => {
			const link = links[position];
			return link === undefined ? null : targetUrl(link.target, variables);
		},
		join: (envelope, recipient) => {
			const { variables, tracking } = recipient;
			const writeBody = tracking === null ? writePlain() : writeTracked();
			// What was left of a message that could not be written.
			out.clear();
			out.text(writeFields(writeSubject(variables), envelope, recipient));
			writeBody(out, { variables, tracking: tracking && escapedTracking(tracking) });
			return out.take();
		},
		preview: ({ variables }) => ({
			subject: renderTemplate(subject, variables, oneLine),
			text: text === null ? '' : renderTemplate(text, variables, normalLineEnds),
			html: html === null ? null : renderTemplate(html, variables, escapeHtml),
		}),
	};
}

function plainPart(template: Template, subtype: 'plain' | 'html', write: Escape): Part {
	return compilePart({
		template,
		subtype,
		fill: (slot, { variables }, add) => add(fillSlot(slot, variables, write)),
	});
}

function trackedPart(html: string | null, links: readonly Link[], guards = urlGuards('')): Part | null {
	if (html === null) return null;
	const template = trackedTemplate(html, links, guards);
	return compilePart({ template, subtype: 'html', fill: fillTracked });
}

function once<T>(make: () => T): () => T {
	let made: { value: T } | null = null;
	return () => {
		made ??= { value: make() };
		return made.value;
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
