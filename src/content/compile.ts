import type { Content, Envelope } from '../api/messages.js';
import { filledSubject, oneLine, usedVariables } from '../api/variables.js';
import { placeFiles } from './attachments.js';
import {
	type Escape,
	fillSlot,
	htmlValue,
	normalLineEnds,
	parseTemplate,
	renderTemplate,
	type Slot,
	type Template,
} from './fill-variables.js';
import { contentSha256 } from './hash.js';
import { isTrackable, type Link, targetUrl } from './links.js';
import { compileBody, compileSubject, fieldWriter, type MessageBody } from './message.js';
import { type ContentSize, contentSize, joinFault, TooLarge } from './message-size.js';
import { type BodyValues, ByteSink, compilePart, type Part } from './part.js';
import { type AskHtml, notInlined, type ReadHtml } from './read-html.js';
import { noAlternative } from './text-alternative.js';
import type { Recipient, Tracking } from './types.js';
import { textGuards } from './value-guards.js';

/** A failed inlining or text alternative causes only a warning. Rejects if the HTML itself cannot be read. */
export async function compileContent(content: Content, askHtml: AskHtml): Promise<CompiledContent> {
	const { read, warnings } = await readWith(content, askHtml);
	return new CompiledContent(content, read, warnings);
}

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

/** Bytes added to the size of the last message, so that a buffer rarely proves too small for the next. */
const slack = 512;

export class CompiledContent {
	readonly variables: readonly string[];
	readonly warnings: readonly string[];
	readonly read: ReadHtml | null;
	readonly links: number;
	readonly bytes: number;
	readonly #content: Content;
	readonly #text: string | null;
	readonly #size: ContentSize;
	readonly #writeSubject: ReturnType<typeof compileSubject>;
	readonly #writeFields = fieldWriter();
	/** Created on demand, because usually only one is needed. */
	readonly #bodies: { plain?: MessageBody; tracked?: MessageBody } = {};
	#expected = 4096;

	constructor(content: Content, read: ReadHtml | null, warnings: readonly string[]) {
		const { subject } = content;
		const text = content.text === null ? (read?.alternative ?? null) : normalLineEnds(content.text);
		const html = read?.html ?? null;
		this.variables = usedVariables(content);
		this.warnings = warnings;
		this.read = read;
		this.links = read?.links.length ?? 0;
		this.bytes = bytesOf({ subject, text, html });
		this.#content = content;
		this.#text = text === null && read === null ? '' : text;
		this.#size = contentSize({ subject, text, html });
		this.#writeSubject = compileSubject(parseTemplate(oneLine(subject)));
	}

	/** Returns null for a link that `join` does not track. */
	link(position: number, variables: Recipient['variables']): string | null {
		const link = this.read?.links[position];
		return link === undefined ? null : targetUrl(link.target, variables);
	}

	/** Returns the message without dot-stuffing, in `memory` if it fits. Throws `TooLarge` before it writes anything. */
	join(envelope: Envelope, recipient: Recipient, memory?: Buffer): Buffer {
		const { variables, tracking } = recipient;
		this.#refuseOversize(variables, tracking);
		const out = new ByteSink(memory ?? Buffer.allocUnsafe(this.#expected));
		out.text(this.#writeFields(this.#writeSubject(variables), envelope, recipient));
		this.#bodyFor(tracking).write(out, { variables, tracking: tracking && escapedTracking(tracking) });
		const message = out.take();
		this.#expected = message.length + slack;
		return message;
	}

	/** Returns the files to send after the result of `join`, in DKIM's relaxed form. `encoded` maps SHA-256 to base64. */
	rest(encoded: ReadonlyMap<string, Buffer>, { tracking }: Pick<Recipient, 'tracking'>): readonly Buffer[] {
		if ((this.#content.attachments ?? []).length === 0) return [];
		return this.#bodyFor(tracking).rest.map((piece) => {
			if (typeof piece === 'string') return Buffer.from(piece, 'latin1');
			const octets = encoded.get(piece.sha256);
			if (octets === undefined) throw new Error(`the attachment ${piece.sha256} is missing`);
			return octets;
		});
	}

	/** Returns the message with links as written and without a tracking pixel. Throws like `join`. */
	preview({ variables }: Pick<Recipient, 'variables'>): {
		subject: string;
		text: string;
		html: string | null;
	} {
		this.#refuseOversize(variables, null);
		const { read } = this;
		const text = this.#text ?? '';
		return {
			subject: filledSubject(this.#content.subject, variables),
			text: renderTemplate(textTemplate(text), variables, normalLineEnds),
			html: read && renderTemplate(parseTemplate(read.html, read.guards), variables, htmlValue),
		};
	}

	#refuseOversize(variables: Recipient['variables'], tracking: Recipient['tracking']): void {
		const perLink = tracking === null ? 0 : tracking.clickUrl.length + (tracking.clickEnds[0]?.length ?? 0);
		const fault = joinFault(this.#size, variables, this.links * perLink);
		if (fault !== null) throw new TooLarge(fault);
	}

	#bodyFor(tracking: Recipient['tracking']): MessageBody {
		const kind = tracking === null ? 'plain' : 'tracked';
		this.#bodies[kind] ??= this.#compileBody(kind);
		return this.#bodies[kind];
	}

	#compileBody(kind: 'plain' | 'tracked'): MessageBody {
		const { html, attachments = [] } = this.#content;
		const text = this.#text;
		const { read } = this;
		return compileBody({
			text: text === null ? null : plainPart(textTemplate(text), 'plain', normalLineEnds),
			html: read && (kind === 'tracked' ? trackedPart(read) : plainHtml(read)),
			sha256: contentSha256(this.#content),
			files: placeFiles(html, attachments),
		});
	}
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

type TrackedSlot = Slot | LinkSlot | { readonly kind: 'pixel' };

interface LinkSlot extends Pick<Link, 'depends' | 'target'> {
	readonly kind: 'link';
	readonly position: number;
	readonly written: Template;
}

/** Places the pixel outside the text flow instead of hiding it, because some programs do not load hidden images. */
const pixel = {
	before: '<img src="',
	after: `" width="1" height="1" alt="" style="${[
		'position:absolute',
		'float:left',
		'display:block',
		'width:1px',
		'height:1px',
		'margin:-1px -1px 0 0',
		'padding:0',
		'border:0',
	]
		.map((declaration) => `${declaration}!important`)
		.join(';')}">`,
};

function trackedTemplate({ html, links, guards, bodyEnd }: ReadHtml): Template<TrackedSlot> {
	const literals = [''];
	const slots: TrackedSlot[] = [];
	let from = 0;
	const addText = (end: number) => {
		const text = parseTemplate(html.slice(from, end), guards, from);
		append(literals, text.literals[0] ?? '');
		// Do not spread the list: hundreds of thousands of arguments overflow the stack.
		for (let index = 1; index < text.literals.length; index++) literals.push(text.literals[index] ?? '');
		for (const slot of text.slots) slots.push(slot);
		from = end;
	};
	const addPixel = () => {
		append(literals, pixel.before);
		slots.push({ kind: 'pixel' });
		literals.push(pixel.after);
	};
	let isPixelDue = true;
	for (const [position, { start, end, target, depends }] of links.entries()) {
		if (isPixelDue && start > bodyEnd) {
			addText(bodyEnd);
			addPixel();
			isPixelDue = false;
		}
		addText(start);
		const written = parseTemplate(html.slice(start, end), guards, start);
		slots.push({ kind: 'link', position, target, depends, written });
		literals.push('');
		from = end;
	}
	if (isPixelDue) {
		addText(bodyEnd);
		addPixel();
	}
	addText(html.length);
	return { literals, slots };
}

function escapedTracking({ openUrl, clickUrl, clickEnds }: Tracking): Tracking {
	return { openUrl: htmlValue(openUrl), clickUrl: htmlValue(clickUrl), clickEnds };
}

/** Escapes only `clickEnds`, because `escapedTracking` has escaped the URLs. */
function fillTracked(
	slot: TrackedSlot,
	{ variables, tracking }: BodyValues,
	write: (text: string) => void,
): void {
	if (slot.kind === 'variable') write(fillSlot(slot, variables, htmlValue));
	else if (slot.kind === 'pixel') write(tracking?.openUrl ?? '');
	else if (tracking === null || !isTrackable(slot, variables)) {
		write(renderTemplate(slot.written, variables, htmlValue));
	} else {
		write(tracking.clickUrl);
		write(htmlValue(tracking.clickEnds[slot.position] ?? ''));
	}
}

function append(literals: string[], text: string): void {
	literals[literals.length - 1] += text;
}
