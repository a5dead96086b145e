/** Recognises files of other kinds by their first bytes, with a text for the refusal. */

/** The kind of a binary file ("a zip archive") with the remedy; null when no signature matches. */
export function recognizeBinary(prefix: Buffer): string | null {
	if (startsWith(prefix, 'PK')) return describeZip(prefix);
	return signatures.find(([magic]) => startsWith(prefix, magic))?.[1] ?? null;
}

const signatures: readonly (readonly [magic: string, what: string])[] = [
	['\x1f\x8b', 'gzip-compressed: unpack it with "gzip -dc FILE | mailctl … -"'],
	['BZh', 'bzip2-compressed: unpack it first'],
	['\xfd7zXZ\x00', 'xz-compressed: unpack it first'],
	['\x28\xb5\x2f\xfd', 'zstd-compressed: unpack it first'],
	['7z\xbc\xaf\x27\x1c', 'a 7-Zip archive: unpack it first'],
	['Rar!\x1a\x07', 'a RAR archive: unpack it first'],
	['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'an old Office file (.xls or .doc): save it as CSV'],
	['%PDF-', 'a PDF document'],
	['\x89PNG\r\n\x1a\n', 'a PNG image'],
	['\xff\xd8\xff', 'a JPEG image'],
	['SQLite format 3\x00', 'an SQLite database'],
	['\x7fELF', 'a program'],
	['\x00\x00\xfe\xff', 'UTF-32 text: save it as UTF-8'],
	['\xff\xfe\x00\x00', 'UTF-32 text: save it as UTF-8'],
];

/** Office documents are zip archives; the names of their first entries, stored uncompressed, distinguish them. */
function describeZip(prefix: Buffer): string | null {
	if (!/^PK(?:\x03\x04|\x05\x06|\x07\x08)/.test(prefix.toString('latin1', 0, 4))) return null;
	const names = prefix.toString('latin1', 0, 8192);
	if (names.includes('mimetypeapplication/vnd.oasis')) return 'an OpenDocument file (.ods): save it as CSV';
	if (/\[Content_Types\]\.xml|xl\/|_rels\/|docProps\//.test(names)) {
		return 'an Excel workbook (.xlsx) or another Office file: save it as CSV';
	}
	return 'a zip archive: unpack it first';
}

function startsWith(bytes: Buffer, magic: string): boolean {
	return bytes.toString('latin1', 0, magic.length) === magic;
}
