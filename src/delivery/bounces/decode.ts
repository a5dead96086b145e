/** Bytes of a mail as text: transfer encodings (RFC 2045), charsets, encoded words (RFC 2047). Nothing throws. */
import iconv from 'iconv-lite';

/** Bytes held one a character, which is how a mail is cut up before anything of it is decoded. */
export type ByteString = string;

/** Undoes base64 or quoted-printable; any other encoding is left as it is. */
export function decodeTransfer(body: ByteString, encoding: string): Buffer {
	if (encoding === 'base64') return Buffer.from(body, 'base64');
	if (encoding === 'quoted-printable') return Buffer.from(quotedPrintable(body), 'latin1');
	return Buffer.from(body, 'latin1');
}

/** Whether text in this charset has to be translated: anything but ASCII and UTF-8, and what says nothing. */
export function isForeign(charset: string | undefined): boolean {
	return !['', 'us-ascii', 'utf-8', 'utf8'].includes((charset ?? '').trim().toLowerCase());
}

/** Text of these bytes; an unknown charset, or none, is UTF-8 where it can be, else Latin-1. */
export function decodeCharset(bytes: Buffer, charset: string | undefined): string {
	const name = (charset ?? '').trim().toLowerCase();
	if (!isForeign(name)) return utf8OrLatin1(bytes);
	try {
		// It knows ISO-2022-JP, which iconv-lite does not; iconv-lite knows UTF-7 and code pages.
		return new TextDecoder(name).decode(bytes);
	} catch {
		return iconv.encodingExists(name) ? iconv.decode(bytes, name) : utf8OrLatin1(bytes);
	}
}

/** A header value with its encoded words decoded; broken ones stay as they are written. */
export function decodeWords(value: ByteString): string {
	const joined = value.replace(/\?=[ \t]+=\?/g, '?==?');
	return utf8OrLatin1(Buffer.from(joined, 'latin1')).replace(
		/=\?([\w.:-]{1,40})(?:\*[\w-]{1,20})?\?([bq])\?([^?\s]{0,2000})\?=/gi,
		(_, charset: string, kind: string, text: string) => {
			const isBase64 = kind.toLowerCase() === 'b';
			const bytes = isBase64
				? Buffer.from(text, 'base64')
				: Buffer.from(quotedPrintable(text.replaceAll('_', ' ')), 'latin1');
			return decodeCharset(bytes, charset);
		},
	);
}

function quotedPrintable(text: ByteString): ByteString {
	return text
		.replace(/=[ \t]{0,80}\r?\n/g, '')
		.replace(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function utf8OrLatin1(bytes: Buffer): string {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	} catch {
		return bytes.toString('latin1');
	}
}
