import { isUtf8 } from 'node:buffer';

export interface EncodingFound {
	encoding: string;
	bomBytes: number;
}

/** Returns null for text in a code page, even if a program has put a UTF-8 byte order mark before the text. */
export function detectUnicode(prefix: Buffer, isWhole: boolean): EncodingFound | null {
	const marked = byMark(prefix);
	if (marked !== null && isHeld(marked, prefix, isWhole)) return marked;
	if (marked !== null) return null;
	const wide = wideWithoutMark(prefix);
	if (wide !== null) return { encoding: wide, bomBytes: 0 };
	const text = isWhole ? prefix : cutPartialCharacter(prefix);
	if (isUtf8(text) || isDamagedUtf8(text)) return { encoding: 'utf-8', bomBytes: 0 };
	return null;
}

function isHeld({ encoding, bomBytes }: EncodingFound, prefix: Buffer, isWhole: boolean): boolean {
	return encoding !== 'utf-8' || detectUnicode(prefix.subarray(bomBytes), isWhole)?.encoding === 'utf-8';
}

/** Returns why a file is not UTF-8, in words that follow the file's name. */
export function utf8Fault(bytes: Buffer): string | null {
	const wide = utf16Fault(bytes);
	if (wide !== null || isUtf8(bytes)) return wide;
	for (let line = 1, start = 0; ; line += 1) {
		const end = bytes.indexOf(10, start);
		if (end === -1 || !isUtf8(bytes.subarray(start, end))) return `is not UTF-8 text: see line ${line}`;
		start = end + 1;
	}
}

/** `prefix` is the start of a file and may end within a character. */
export function utf16Fault(prefix: Buffer): string | null {
	const encoding = byMark(prefix)?.encoding ?? wideWithoutMark(prefix);
	return encoding?.startsWith('utf-16') === true ? 'is UTF-16: save it as UTF-8' : null;
}

export function byMark(prefix: Buffer): EncodingFound | null {
	if (prefix[0] === 0xef && prefix[1] === 0xbb && prefix[2] === 0xbf)
		return { encoding: 'utf-8', bomBytes: 3 };
	if (prefix[0] === 0xff && prefix[1] === 0xfe) return { encoding: 'utf-16le', bomBytes: 2 };
	if (prefix[0] === 0xfe && prefix[1] === 0xff) return { encoding: 'utf-16be', bomBytes: 2 };
	return null;
}

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

/** Text in a code page rarely contains UTF-8 sequences. Enough sequences therefore mean UTF-8 with broken rows. */
function isDamagedUtf8(bytes: Buffer): boolean {
	const text = bytes.toString();
	const broken = text.match(/\ufffd/g)?.length ?? 0;
	const whole = text.match(/[^\x00-\x7f\ufffd]/g)?.length ?? 0;
	if (whole >= 2 && whole >= broken * 2) return true;
	const lines = text.split('\n').filter((line) => /[^\x00-\x7f]/.test(line));
	return (
		whole > 0 && whole >= broken && lines.filter((line) => line.includes('\ufffd')).length * 2 <= lines.length
	);
}

/** Recognizes UTF-16 if at least a fifth of the byte pairs are ASCII characters: one of their two bytes is zero. */
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

/** True if the header line contains NUL bytes, as in UTF-16. If only later lines do, the NULs belong to cells. */
function hasWideLine(prefix: Buffer): boolean {
	const feed = prefix.indexOf(10);
	return feed === -1 || prefix.subarray(0, feed).includes(0) || (feed % 2 === 0 && prefix[feed + 1] === 0);
}
