import type { ByteSink } from './byte-sink.js';
import { renderSlots, type Template } from './fill-variables.js';
import { encodeFragment, type Fragment, keepFragments, QuotedPrintableLine } from './quoted-printable.js';
import type { Recipient } from './types.js';

export type BodyValues = Pick<Recipient, 'variables' | 'tracking'>;

export interface Part {
	readonly fields: string;
	write(out: ByteSink, values: BodyValues): void;
	/** Always true for a boundary with `=_` at its start, unless a 7bit body contains it. */
	isFreeOf(boundary: string): boolean;
}

interface PartSource<S> {
	template: Template<S>;
	subtype: 'plain' | 'html';
	fill: (slot: S, values: BodyValues, write: (text: string) => void) => void;
}

/** Uses 7bit for ASCII with short lines and no variables, otherwise quoted-printable unless base64 is clearly smaller. */
export function compilePart<S>({ template, subtype, fill }: PartSource<S>): Part {
	const { literals, slots } = template;
	const written = literals.join('');
	if (slots.length === 0 && isSevenBit(written)) {
		const octets = ownOctets(crlf(written));
		return part(subtype, '7bit', { ...constantBody(octets), isFreeOf: (text) => !octets.includes(text) });
	}
	const fragments = encodeAll(literals);
	if (!isMuchSmallerInBase64(written, fragments))
		return part(
			subtype,
			'quoted-printable',
			quotedPrintable({ fragments: keepFragments(fragments), slots }, fill),
		);
	if (slots.length === 0) return part(subtype, 'base64', constantBody(ownOctets(base64(written))));
	return part(subtype, 'base64', base64Body(template, fill));
}

interface Body {
	write: Part['write'];
	isFreeOf?: Part['isFreeOf'];
}

function part(subtype: string, encoding: string, body: Body): Part {
	const charset = encoding === '7bit' ? 'us-ascii' : 'utf-8';
	const type = `Content-Type: text/${subtype}; charset=${charset}\r\n`;
	const fields = `${type}Content-Transfer-Encoding: ${encoding}\r\n`;
	// Lines of quoted-printable and base64 never start like these boundaries.
	return { fields, isFreeOf: (boundary) => boundary.startsWith('=_'), ...body };
}

/** Allocates separately, because a pooled buffer would keep its whole slab in memory. */
function ownOctets(text: string): Buffer {
	const octets = Buffer.allocUnsafeSlow(text.length);
	octets.write(text, 'latin1');
	return octets;
}

function constantBody(octets: Buffer): Body {
	return { write: (out) => out.octets(octets) };
}

function base64Body<S>(template: Template<S>, fill: PartSource<S>['fill']): Body {
	return {
		write: (out, values) => out.text(base64(renderSlots(template, (slot) => filledText(slot, values, fill)))),
	};
}

/** Encodes equal literals once: most between variables are empty, and those between links are equal. */
function encodeAll(literals: readonly string[]): Fragment[] {
	const known = new Map<string, Fragment>();
	return literals.map((literal) => {
		if (literal.length > shortLiteral) return encodeFragment(literal);
		const fragment = known.get(literal) ?? encodeFragment(literal);
		known.set(literal, fragment);
		return fragment;
	});
}

const shortLiteral = 64;

function quotedPrintable<S>(
	{ fragments, slots }: { fragments: readonly Fragment[]; slots: readonly S[] },
	fill: PartSource<S>['fill'],
): Body {
	return {
		write: (out, values) => {
			const line = new QuotedPrintableLine(out);
			const write = (text: string) => line.appendValue(text);
			for (let index = 0; index < fragments.length; index++) {
				const slot = slots[index - 1];
				const fragment = fragments[index];
				if (slot !== undefined) fill(slot, values, write);
				if (fragment !== undefined) line.append(fragment);
			}
		},
	};
}

function filledText<S>(slot: S, values: BodyValues, fill: PartSource<S>['fill']): string {
	let text = '';
	fill(slot, values, (piece) => {
		text += piece;
	});
	return text;
}

/** RFC 2045 s.2.7. Also rejects lines that begin with `From ` or a dot, or end in a blank. */
function isSevenBit(text: string): boolean {
	if (!/^[\t\n -~]*$/.test(text)) return false;
	return text.split('\n').every((line) => line.length <= 998 && !/^(From |\.)|[ \t]$/.test(line));
}

/** True if base64 is a fifth smaller. Otherwise quoted-printable is better: readable in the source and cheaper to join. */
function isMuchSmallerInBase64(written: string, fragments: readonly Fragment[]): boolean {
	const quoted = fragments.reduce((sum, fragment) => sum + fragment.octets.length, 0);
	const plain = Math.ceil(Buffer.byteLength(written) / 3) * 4;
	return plain * (78 / 76) * 1.25 < quoted;
}

function base64(text: string): string {
	return (
		Buffer.from(crlf(text), 'utf8')
			.toString('base64')
			.match(/.{1,76}/g) ?? []
	).join('\r\n');
}

/** Line ends must be CRLF (RFC 2046 s.4.1.1). */
function crlf(text: string): string {
	return text.replaceAll('\n', '\r\n');
}
