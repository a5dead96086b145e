import type { Attachment } from '../api/attachments.js';

export interface Placed {
	inline: readonly PlacedFile[];
	attached: readonly PlacedFile[];
}

export interface PlacedFile extends Attachment {
	id: string | null;
}

export function placeFiles(html: string | null, files: readonly Attachment[]): Placed {
	const links = cidLinks(html);
	const placed = files.map((file) => {
		const link = links.find((one) => isOf(one, file));
		return { isInline: link !== undefined, file: { ...file, id: file.content_id ?? link?.written ?? null } };
	});
	const those = (isInline: boolean) =>
		placed.filter((one) => one.isInline === isInline).map(({ file }) => file);
	return { inline: those(true), attached: those(false) };
}

export function cidFaults(
	html: string | null,
	files: readonly Pick<Attachment, 'name' | 'content_id'>[],
): { unknown: string[]; unclear: string[] } {
	const counted = cidLinks(html).map((link) => ({
		link,
		count: files.filter((file) => isOf(link, file)).length,
	}));
	const written = (isWanted: (count: number) => boolean) =>
		counted.filter(({ count }) => isWanted(count)).map(({ link }) => link.written);
	return { unknown: written((count) => count === 0), unclear: written((count) => count > 1) };
}

export function withImages(
	html: string,
	files: readonly (Pick<Attachment, 'name' | 'type' | 'content_id'> & { bytes: Uint8Array })[],
): string {
	const images = files.filter(({ type }) => type.startsWith('image/'));
	if (images.length === 0) return html;
	return html.replace(cidPattern(), (text, written: string) => {
		const image = images.find((file) => isOf(linkOf(written), file));
		if (image === undefined) return text;
		return `data:${image.type};base64,${Buffer.from(image.bytes).toString('base64')}`;
	});
}

function cidPattern(): RegExp {
	return /(?<=["'(=\s])cid:([^\s"'<>()]{1,800})/gi;
}

function linkOf(text: string): CidLink {
	const written = text.replaceAll('&amp;', '&');
	return { written, name: decoded(written) };
}

interface CidLink {
	written: string;
	name: string;
}

function cidLinks(html: string | null): CidLink[] {
	if (html === null || !/cid:/i.test(html)) return [];
	const written = [...html.matchAll(cidPattern())].map(([, text = '']) => text);
	return [...new Set(written)].map(linkOf);
}

function decoded(text: string): string {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

function isOf({ written, name }: CidLink, file: Pick<Attachment, 'name' | 'content_id'>): boolean {
	const called = file.content_id ?? file.name;
	return called === written || called === name;
}

/** Collapses runs of blanks in the name, as DKIM's relaxed canonicalization of the body would. */
export function fileFields({ name, type, id }: PlacedFile, disposition: 'inline' | 'attachment'): string {
	const { plain, filename } = nameParameters(name.replace(/\s+/g, ' ').trim());
	const contentId = id === null ? '' : `Content-ID: <${headerId(id)}>\r\n`;
	return (
		`Content-Type: ${type};\r\n name="${plain}"\r\n` +
		`Content-Transfer-Encoding: base64\r\n${contentId}` +
		`Content-Disposition: ${disposition}${filename}\r\n`
	);
}

/** A long or non-ASCII name gets RFC 2231 parameters, and a simplified `name` for older mail programs. */
function nameParameters(name: string): { plain: string; filename: string } {
	if (/^[ -~]*$/.test(name) && name.length <= segmentLength && !name.includes('=?')) {
		const quoted = name.replace(/["\\]/g, '\\$&');
		return { plain: quoted, filename: `;\r\n filename="${quoted}"` };
	}
	return { plain: fallbackName(name), filename: extendedName(name) };
}

function fallbackName(name: string): string {
	const plain = name.replace(/[^\w .()-]+/g, '_');
	const end = /\.[A-Za-z0-9]{1,8}$/.exec(plain)?.[0] ?? '';
	return `${plain.slice(0, plain.length - end.length).slice(0, 40)}${end}`;
}

const segmentLength = 60;

/** Writes one RFC 2231 parameter. A long name gets numbered sections (`filename*0*`) that split no character. */
function extendedName(name: string): string {
	const sections: string[] = [''];
	for (const character of name) {
		const escaped = percentEncoded(character);
		const last = sections.at(-1) ?? '';
		if (last.length + escaped.length > segmentLength) sections.push(escaped);
		else sections[sections.length - 1] = last + escaped;
	}
	if (sections.length === 1) return `;\r\n filename*=UTF-8''${sections[0]}`;
	return sections
		.map((section, index) => `;\r\n filename*${index}*=${index === 0 ? "UTF-8''" : ''}${section}`)
		.join('');
}

function percentEncoded(character: string): string {
	return Array.from(Buffer.from(character, 'utf8'), (octet) => {
		const ascii = String.fromCharCode(octet);
		return /[A-Za-z0-9!#$&+.^_`|~-]/.test(ascii)
			? ascii
			: `%${octet.toString(16).toUpperCase().padStart(2, '0')}`;
	}).join('');
}

function headerId(id: string): string {
	return id.replace(/[^!#-;=?-~]/gu, percentEncoded);
}

const lineLength = 76;

/** Writes no CRLF after the last line. */
export function encodeFile(bytes: Uint8Array): Buffer {
	const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
	const lines = Math.ceil(text.length / lineLength);
	const out = Buffer.allocUnsafeSlow(text.length + Math.max(0, lines - 1) * 2);
	let length = 0;
	for (let start = 0; start < text.length; start += lineLength) {
		if (start > 0) length += out.write('\r\n', length, 'latin1');
		length += out.write(text.slice(start, start + lineLength), length, 'latin1');
	}
	return out;
}
