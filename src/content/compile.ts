import type { Attachment } from '../api/attachments.js';
import type { Content } from '../api/messages.js';
import { filledSubject, oneLine, usedVariables } from '../api/variables.js';
import { placeFiles } from './attachments.js';
import { ByteSink } from './byte-sink.js';
import {
	type Escape,
	fillSlot,
	htmlValue,
	normalLineEnds,
	parseTemplate,
	renderTemplate,
	type Template,
} from './fill-variables.js';
import { contentSha256 } from './hash.js';
import { notInlined } from './inline-css.js';
import { targetUrl } from './links.js';
import { compileBody, compileSubject, fieldWriter, type MessageBody } from './message.js';
import { contentSize, joinFault, TooLarge } from './message-size.js';
import { compilePart, type Part } from './part.js';
import type { AskHtml, ReadHtml } from './read-html.js';
import { escapedTracking, fillTracked, trackedTemplate } from './rewrite-links.js';
import { noAlternative } from './text-alternative.js';
import type { CompiledContent, Recipient } from './types.js';
import { textGuards } from './value-guards.js';

/** Turns failures into warnings and sends the mail as written. Rejects only if no reader is available. */
export async function compileContent(content: Content, askHtml: AskHtml): Promise<CompiledContent> {
	const { read, warnings } = await readWith(content, askHtml);
	const text = content.text === null ? (read?.alternative ?? null) : normalLineEnds(content.text);
	const isEmpty = text === null && read === null;
	const sources = {
		subject: content.subject,
		text: isEmpty ? '' : text,
		read,
		sha256: contentSha256(content),
		files: content.attachments ?? [],
		written: content.html,
	};
	const bytes = bytesOf({ subject: content.subject, text, html: read?.html ?? null });
	return { variables: usedVariables(content), warnings, read, bytes, ...writers(sources) };
}

/** Asks for less after each failure: first without style sheets, then without the text alternative. */
async function readWith(
	{ html, text, disable_inline }: Content,
	askHtml: AskHtml,
): Promise<{ read: ReadHtml | null; warnings: readonly string[] }> {
	if (html === null) return { read: null, warnings: [] };
	const warnings: string[] = [];
	let inline = !disable_inline && /<style[\s>/]/i.test(html);
	let alternative = text === null;
	for (;;) {
		try {
			const read = await askHtml({ html, inline, alternative });
			return { read, warnings: [...warnings, ...read.warnings] };
		} catch (error) {
			const why = error instanceof Error ? error.message : String(error);
			if (inline) warnings.push(notInlined(why));
			else if (alternative) warnings.push(noAlternative(why));
			else throw error;
			alternative &&= inline;
			inline = false;
		}
	}
}

interface Sources {
	subject: string;
	text: string | null;
	read: ReadHtml | null;
	sha256: string;
	files: readonly Attachment[];
	written: string | null;
}

type Writers = Pick<CompiledContent, 'links' | 'link' | 'join' | 'rest' | 'preview'>;

/** Most messages of one content differ in size by less than this. */
const slack = 512;

function writers(sources: Sources): Writers {
	const { subject, text, read, files } = sources;
	const html = read?.html ?? null;
	const links = read?.links ?? [];
	const size = contentSize({ subject, text, html });
	const writeSubject = compileSubject(parseTemplate(oneLine(subject)));
	// Created on demand, because usually only one is needed.
	const bodies: { plain?: MessageBody; tracked?: MessageBody } = {};
	const bodyFor = (tracking: Recipient['tracking']) => {
		const kind = tracking === null ? 'plain' : 'tracked';
		bodies[kind] ??= bodyOf(sources, kind);
		return bodies[kind];
	};
	const writeFields = fieldWriter();
	let expected = 4096;
	const refuseOversize = (variables: Recipient['variables'], tracking: Recipient['tracking']) => {
		const perLink = tracking === null ? 0 : tracking.clickUrl.length + (tracking.clickEnds[0]?.length ?? 0);
		const fault = joinFault(size, variables, links.length * perLink);
		if (fault !== null) throw new TooLarge(fault);
	};
	return {
		links: links.length,
		link: (position, variables) => {
			const link = links[position];
			return link === undefined ? null : targetUrl(link.target, variables);
		},
		join: (envelope, recipient, memory = Buffer.allocUnsafe(expected)) => {
			const { variables, tracking } = recipient;
			refuseOversize(variables, tracking);
			const out = new ByteSink(memory);
			out.text(writeFields(writeSubject(variables), envelope, recipient));
			bodyFor(tracking).write(out, { variables, tracking: tracking && escapedTracking(tracking) });
			const message = out.take();
			expected = message.length + slack;
			return message;
		},
		rest: (encoded, { tracking }) =>
			files.length === 0
				? []
				: bodyFor(tracking).rest.map((piece) => {
						if (typeof piece === 'string') return Buffer.from(piece, 'latin1');
						const octets = encoded.get(piece.sha256);
						if (octets === undefined) throw new Error(`the attachment ${piece.sha256} is missing`);
						return octets;
					}),
		preview: ({ variables }) => {
			refuseOversize(variables, null);
			return {
				subject: filledSubject(subject, variables),
				text: renderTemplate(textTemplate(text ?? ''), variables, normalLineEnds),
				html: html === null ? null : renderTemplate(parseTemplate(html, read?.guards), variables, htmlValue),
			};
		},
	};
}

function bodyOf({ text, read, sha256, files, written }: Sources, kind: 'plain' | 'tracked'): MessageBody {
	const parts = {
		text: text === null ? null : plainPart(textTemplate(text), 'plain', normalLineEnds),
		html: read === null ? null : kind === 'tracked' ? trackedPart(read) : plainHtml(read),
	};
	return compileBody({ ...parts, sha256, files: placeFiles(written, files) });
}

function textTemplate(text: string): Template {
	return parseTemplate(text, textGuards(text));
}

function plainHtml({ html, guards }: ReadHtml): Part {
	return plainPart(parseTemplate(html, guards), 'html', htmlValue);
}

function plainPart(template: Template, subtype: 'plain' | 'html', write: Escape): Part {
	return compilePart({
		template,
		subtype,
		fill: (slot, { variables }, add) => add(fillSlot(slot, variables, write)),
	});
}

function trackedPart(read: ReadHtml): Part {
	return compilePart({ template: trackedTemplate(read), subtype: 'html', fill: fillTracked });
}

/** Estimates the memory of a compiled content: its texts, their encoded forms, variables and links. */
export function bytesOf({ subject, text, html }: Pick<Content, 'subject' | 'text' | 'html'>): number {
	const all = `${subject}${text ?? ''}${html ?? ''}`;
	const width = /[^\x00-\xff]/.test(all) ? 2 : 1;
	return 6 * 1024 + 4 * width * all.length + 200 * (all.split('#').length + all.split('href').length);
}
