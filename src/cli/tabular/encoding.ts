/** Tells the encoding of a text from its first bytes. Pure; the decision is one of four rules, in this order. */
import { isUtf8 } from 'node:buffer';

export interface EncodingFound {
	/** A name iconv-lite knows: `utf-8`, `utf-16le`, `utf-16be`, `windows-1251`, `windows-1252`. */
	encoding: string;
	/** Length of the byte order mark, 0 without one. */
	bomBytes: number;
}

/**
 * A byte order mark decides. Without one: UTF-16 where every NUL lies on one side of the pairs, UTF-8 where the bytes
 * are valid UTF-8 or nearly so, else a single-byte code page. `isWhole`: nothing follows the prefix.
 */
export function detectEncoding(prefix: Buffer, isWhole: boolean): EncodingFound {
	const marked = byMark(prefix);
	if (marked !== null) return marked;
	const wide = wideWithoutMark(prefix);
	if (wide !== null) return { encoding: wide, bomBytes: 0 };
	const text = isWhole ? prefix : cutPartialCharacter(prefix);
	if (isUtf8(text) || isDamagedUtf8(text)) return { encoding: 'utf-8', bomBytes: 0 };
	return { encoding: codePage(prefix), bomBytes: 0 };
}

/** The byte order mark the bytes begin with, or null. */
export function byMark(prefix: Buffer): EncodingFound | null {
	if (prefix[0] === 0xef && prefix[1] === 0xbb && prefix[2] === 0xbf)
		return { encoding: 'utf-8', bomBytes: 3 };
	if (prefix[0] === 0xff && prefix[1] === 0xfe) return { encoding: 'utf-16le', bomBytes: 2 };
	if (prefix[0] === 0xfe && prefix[1] === 0xff) return { encoding: 'utf-16be', bomBytes: 2 };
	return null;
}

/** Without the bytes of a UTF-8 character that the end of the buffer cuts: at most three. */
export function cutPartialCharacter(bytes: Buffer): Buffer {
	for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
		const byte = bytes[bytes.length - back] ?? 0;
		if (byte < 0x80) return bytes;
		if (byte >= 0xc0) {
			const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
			return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
		}
	}
	return bytes;
}

/**
 * A few broken bytes among many characters of several bytes: in a code page those sequences do not come about by chance,
 * and reading the file as one would garble every name. The rows with the broken bytes are refused one by one.
 */
function isDamagedUtf8(bytes: Buffer): boolean {
	const text = bytes.toString();
	const broken = text.match(/\ufffd/g)?.length ?? 0;
	const whole = text.match(/[^\x00-\x7f\ufffd]/g)?.length ?? 0;
	return whole >= 2 && whole >= broken * 2;
}

/**
 * Addresses, delimiters and line ends are ASCII, so in UTF-16 a fifth of the pairs and more have one zero byte, always
 * on the same side. A stray NUL in 8-bit text never reaches that share.
 */
function wideWithoutMark(prefix: Buffer): 'utf-16le' | 'utf-16be' | null {
	const pairs = Math.floor(prefix.length / 2);
	let even = 0;
	let odd = 0;
	for (let index = 0; index < pairs * 2; index += 2) {
		if (prefix[index] === 0) even += 1;
		if (prefix[index + 1] === 0) odd += 1;
	}
	if (Math.max(even, odd) < Math.max(4, pairs / 5) || !hasWideLine(prefix)) return null;
	if (even === 0) return 'utf-16le';
	return odd === 0 ? 'utf-16be' : null;
}

/** A header has a delimiter or a line end, and both have their zero: NULs that come after it only are a cell's fault. */
function hasWideLine(prefix: Buffer): boolean {
	const feed = prefix.indexOf(10);
	return feed === -1 || prefix.subarray(0, feed).includes(0) || (feed % 2 === 0 && prefix[feed + 1] === 0);
}

/**
 * Cyrillic words are runs of bytes above 0xC0 (and 0xA8, 0xB8 for Ё, ё); accented letters of western languages stand
 * alone between ASCII letters. So: when half of the high bytes touch another one it is Windows-1251, else Windows-1252.
 * Assumption: other code pages (KOI8-R, 1250) cannot be told apart from these two and have to be named.
 */
function codePage(prefix: Buffer): 'windows-1251' | 'windows-1252' {
	let letters = 0;
	let touching = 0;
	for (let index = 0; index < prefix.length; index += 1) {
		if (!isCyrillic(prefix[index])) continue;
		letters += 1;
		if (isCyrillic(prefix[index - 1]) || isCyrillic(prefix[index + 1])) touching += 1;
	}
	return letters > 0 && touching * 2 >= letters ? 'windows-1251' : 'windows-1252';
}

function isCyrillic(byte: number | undefined): boolean {
	return byte !== undefined && (byte >= 0xc0 || byte === 0xa8 || byte === 0xb8);
}
