/** Recognises files of other kinds by how they begin, with a text for the refusal. */

/** The kind of a binary file ("a zip archive") with the remedy; null when no signature matches. `name`: of the file. */
export function recognizeBinary(prefix: Buffer, name: string): string | null {
	if (startsWith(prefix, 'PK')) return describeZip(prefix, name);
	if (startsWith(prefix, '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1')) return describeContainer(prefix);
	return signatures.find(([magic]) => startsWith(prefix, magic))?.[1] ?? null;
}

const signatures: readonly (readonly [magic: string, what: string])[] = [
	['\x1f\x8b', 'gzip-compressed: unpack it with "gzip -dc FILE | mailctl … -"'],
	['BZh', 'bzip2-compressed: unpack it first'],
	['\xfd7zXZ\x00', 'xz-compressed: unpack it first'],
	['\x28\xb5\x2f\xfd', 'zstd-compressed: unpack it first'],
	['7z\xbc\xaf\x27\x1c', 'a 7-Zip archive: unpack it first'],
	['Rar!\x1a\x07', 'a RAR archive: unpack it first'],
	['%PDF-', 'a PDF document, which holds no rows: export the table as CSV from the program that has it'],
	['{\\rtf', 'an RTF document: save its table as CSV'],
	['\x89PNG\r\n\x1a\n', 'a PNG image'],
	['\xff\xd8\xff', 'a JPEG image'],
	['SQLite format 3\x00', 'an SQLite database'],
	['\x7fELF', 'a program'],
	['\x00\x00\xfe\xff', 'UTF-32 text: save it as UTF-8'],
	['\xff\xfe\x00\x00', 'UTF-32 text: save it as UTF-8'],
];

/** The kind of a text that is no table ("an HTML page") with the remedy; null for other texts. */
export function recognizeMarkup(text: string): string | null {
	return markup.find(([start]) => start.test(text))?.[1] ?? null;
}

const markup: readonly (readonly [start: RegExp, what: string])[] = [
	[
		/^\s*<(?:!doctype html|html|head|meta|style|table)[\s>]/i,
		`an HTML page, which some programs write as .xls: open it in a spreadsheet and save it as CSV`,
	],
	[
		/^\s*<\?xml[\s\S]{0,2000}<(?:\w+:)?Workbook\b/,
		'an Excel workbook in XML: open it in a spreadsheet and save it as CSV',
	],
	[/^\s*<\?xml\s/, 'an XML document: export its table as CSV'],
	[/^\s*BEGIN:VCARD\s/i, 'a file of contacts (vCard): export the contacts as CSV'],
];

/**
 * An OLE container, [MS-CFB]: old Office files, and new ones with a password ([MS-OFFCRYPTO] s.2.3.4.4). Its streams are
 * named in UTF-16, in a directory that may stand behind the first bytes.
 */
function describeContainer(prefix: Buffer): string {
	const has = (stream: string) => prefix.includes(stream, 0, 'utf16le');
	if (has('EncryptedPackage'))
		return 'an Office file with a password (.xlsx): open it with the password and save it as CSV';
	if (has('Workbook') || has('Book')) return 'an old Excel workbook (.xls): save it as CSV';
	return 'an old Office file (.xls or .doc), or one with a password: open it and save it as CSV';
}

/** Office documents are zip archives; the names of their first entries, stored uncompressed, distinguish them. */
function describeZip(prefix: Buffer, name: string): string | null {
	if (!/^PK(?:\x03\x04|\x05\x06|\x07\x08)/.test(prefix.toString('latin1', 0, 4))) return null;
	const names = prefix.toString('latin1', 0, 8192);
	if (names.includes('mimetypeapplication/vnd.oasis')) return 'an OpenDocument file (.ods): save it as CSV';
	if (/\[Content_Types\]\.xml|xl\/|_rels\/|docProps\//.test(names)) {
		return 'an Excel workbook (.xlsx) or another Office file: save it as CSV';
	}
	if (/Index\/[^\0]{1,80}\.iwa|Index\.zip/.test(names))
		return 'an Apple iWork file (.numbers): in Numbers, File > Export To > CSV';
	if (/\.(?:xls[xmb]?|ods|numbers)$/i.test(name))
		return 'a zip archive, which its name calls a spreadsheet: save it as CSV in the spreadsheet program';
	return 'a zip archive: unpack it first';
}

function startsWith(bytes: Buffer, magic: string): boolean {
	return bytes.toString('latin1', 0, magic.length) === magic;
}
