import { Parser } from 'htmlparser2';
import type { Attachment } from '../api/attachments.js';
import type { Content } from '../api/messages.js';
import { canParseUrl } from '../api/schema/url.js';
import { referencePattern, variableNames, variablesIn } from '../api/variables.js';
import { cidFaults } from './attachments.js';

export interface ContentFinding {
	kind: 'clipped' | 'no_alt' | 'no_file' | 'no_link' | 'no_unsubscribe' | 'no_subject' | 'long_subject';
	count: number;
	first: { text: string; line: number } | null;
}

/** Gmail clips HTML beyond this size. */
export const clippedBytes = 102 * 1024;
const longSubject = 120;

/** Skips `cid:` links in templates: a template has no files. */
export function contentFindings(
	{ subject, text, html, attachments = [] }: Pick<Content, 'subject' | 'text' | 'html' | 'attachments'>,
	{ bulk, isTemplate = false }: { bulk: boolean; isTemplate?: boolean },
): ContentFinding[] {
	const whole = (kind: ContentFinding['kind'], count: number) => ({ kind, count, first: null });
	const length = [...subject].length;
	const octets = Buffer.byteLength(html ?? '');
	const bodies = [text ?? '', html ?? ''];
	return [
		...(subject.trim() === '' ? [whole('no_subject', 1)] : []),
		...(length > longSubject ? [whole('long_subject', length)] : []),
		...(octets > clippedBytes ? [whole('clipped', octets)] : []),
		...(html === null ? [] : markupFindings(html)),
		...(html === null || isTemplate ? [] : fileFindings(html, attachments)),
		...(bulk && !bodies.some(hasUnsubscribeLink) ? [whole('no_unsubscribe', 1)] : []),
	];
}

function hasUnsubscribeLink(body: string): boolean {
	return variableNames(variablesIn(body)).includes('unsubscribe_url');
}

function fileFindings(html: string, files: readonly Attachment[]): ContentFinding[] {
	const { unknown } = cidFaults(html, files);
	const [link] = unknown;
	if (link === undefined) return [];
	const text = `cid:${link.length > shownLength ? `${link.slice(0, shownLength)}…` : link}`;
	return [
		{ kind: 'no_file', count: unknown.length, first: { text, line: lineAt(html, html.indexOf(link)) } },
	];
}

function markupFindings(html: string): ContentFinding[] {
	const found = new Map<ContentFinding['kind'], ContentFinding>();
	const add = (kind: ContentFinding['kind'], text: string, offset: number) => {
		const known = found.get(kind);
		if (known === undefined) found.set(kind, { kind, count: 1, first: { text, line: lineAt(html, offset) } });
		else known.count += 1;
	};
	let hasBase = false;
	for (const { name, offset, attributes } of tagsOf(html)) {
		if (name === 'base' && attributes['href'] !== undefined) hasBase = true;
		if (name === 'img' && attributes['alt'] === undefined) add('no_alt', shown('src', attributes), offset);
		const href = name === 'a' || name === 'area' ? attributes['href'] : undefined;
		if (href !== undefined && !isLink(href, hasBase)) add('no_link', shown('href', attributes), offset);
	}
	return (['no_alt', 'no_link'] as const).flatMap((kind) => found.get(kind) ?? []);
}

function tagsOf(html: string): Tag[] {
	const tags: Tag[] = [];
	const parser = new Parser({
		onopentag(name, attributes) {
			if (looked.has(name)) tags.push({ name, offset: parser.startIndex, attributes });
		},
	});
	parser.end(html);
	return tags;
}

interface Tag {
	name: string;
	offset: number;
	attributes: Readonly<Record<string, string>>;
}

const looked = new Set(['a', 'area', 'base', 'img']);

/** URL schemes that need no `//`. */
const otherSchemes = new Set(
	'mailto tel sms smsto webcal geo facetime skype whatsapp xmpp sip sips callto maps cid'.split(' '),
);

function isLink(href: string, hasBase: boolean): boolean {
	const text = href.replace(/[\t\r\n]/g, '').trim();
	if (text === '' || text === '#') return false;
	if (text.startsWith('#')) return true;
	const filled = text.replace(referencePattern(), 'x');
	const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(filled)?.[1]?.toLowerCase();
	if (scheme === undefined) return hasBase;
	if (scheme === 'http' || scheme === 'https') return /^https?:\/\/[^/]/i.test(filled) && canParseUrl(filled);
	if (otherSchemes.has(scheme)) return true;
	return filled.startsWith('//', scheme.length + 1) && scheme !== 'file';
}

const shownLength = 60;

function shown(name: string, attributes: Tag['attributes']): string {
	const value = attributes[name] ?? '';
	return `${name}="${value.length > shownLength ? `${value.slice(0, shownLength)}…` : value}"`;
}

function lineAt(text: string, offset: number): number {
	let line = 1;
	for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
	return line;
}
