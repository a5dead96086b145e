/** One text part: its transfer encoding is chosen once, its constant pieces are encoded once. */
import type { ByteSink } from './byte-sink.js';
import { encodeFragment, type Fragment, QuotedPrintableLine } from './quoted-printable.js';
import type { Recipient } from './types.js';
import { renderSlots, type Template } from './variables.js';

/** What of a recipient stands in a body. */
export type BodyValues = Pick<Recipient, 'variables' | 'tracking'>;

/** A part ready to be written: CRLF line ends, pure ASCII, the last line ended or not. */
export interface Part {
	/** Content-Type and Content-Transfer-Encoding, with CRLF. */
	readonly fields: string;
	write(out: ByteSink, values: BodyValues): void;
	/** False only where the body could hold a boundary by chance (7bit, which is constant). */
	isFreeOf(boundary: string): boolean;
}

export interface PartSource<S> {
	/** Line ends are LF, in the literals and in what `fill` gives. */
	template: Template<S>;
	subtype: 'plain' | 'html';
	/** Writes what stands in a slot for a recipient, already escaped, in pieces or at once. */
	fill: (slot: S, values: BodyValues, write: (text: string) => void) => void;
}

/** Encodes what is constant. 7bit for short-lined ASCII without variables, else the smaller by far of the two. */
export function compilePart<S>(source: PartSource<S>): Part {
	const { template, fill, subtype } = source;
	const written = template.literals.join('');
	if (template.slots.length === 0 && isSevenBit(written)) {
		const constant = crlf(written);
		return part(subtype, '7bit', {
			write: writeConstant(constant),
			isFreeOf: (boundary) => !constant.includes(boundary),
		});
	}
	const fragments = template.literals.map(encodeFragment);
	const isFreeOf = (boundary: string) => boundary.startsWith('=_');
	if (isMuchSmallerInBase64(written, fragments)) {
		const write =
			template.slots.length === 0
				? writeConstant(base64(written))
				: (out: ByteSink, values: BodyValues) =>
						out.text(base64(renderSlots(template, (slot) => filledText(slot, values, fill))));
		return part(subtype, 'base64', { write, isFreeOf });
	}
	return part(subtype, 'quoted-printable', {
		write: quotedPrintable(template, fragments, fill),
		isFreeOf,
	});
}

function part(subtype: string, encoding: string, rest: Pick<Part, 'write' | 'isFreeOf'>): Part {
	const charset = encoding === '7bit' ? 'us-ascii' : 'utf-8';
	const type = `Content-Type: text/${subtype}; charset=${charset}\r\n`;
	return { fields: `${type}Content-Transfer-Encoding: ${encoding}\r\n`, ...rest };
}

function writeConstant(text: string): Part['write'] {
	const octets = Buffer.from(text, 'latin1');
	return (out) => out.octets(octets);
}

/** Every recipient gets a new line counter; pieces and values are laid one after the other. */
function quotedPrintable<S>(
	template: Template<S>,
	fragments: readonly Fragment[],
	fill: PartSource<S>['fill'],
): Part['write'] {
	return (out, values) => {
		const line = new QuotedPrintableLine(out);
		const write = (text: string) => line.appendValue(text);
		for (let index = 0; index < fragments.length; index++) {
			const slot = template.slots[index - 1];
			const fragment = fragments[index];
			if (slot !== undefined) fill(slot, values, write);
			if (fragment !== undefined) line.append(fragment);
		}
	};
}

function filledText<S>(slot: S, values: BodyValues, fill: PartSource<S>['fill']): string {
	let text = '';
	fill(slot, values, (piece) => {
		text += piece;
	});
	return text;
}

/** Printable ASCII, tabs and line ends; lines ≤ 998; no line that begins `From ` or with a dot, or ends in a blank. */
function isSevenBit(text: string): boolean {
	if (!/^[\t\n -~]*$/.test(text)) return false;
	return text.split('\n').every((line) => line.length <= 998 && !/^(From |\.)|[ \t]$/.test(line));
}

/** By a fifth and more: quoted-printable is readable in the source, and cheaper to join. */
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

/** RFC 2046 s.4.1.1: line ends of text parts are CRLF. */
function crlf(text: string): string {
	return text.replaceAll('\n', '\r\n');
}
