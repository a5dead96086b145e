import { createHash } from 'node:crypto';

/** Octets of UTF-8. File systems allow 255, encrypted ones 143. */
const maxBytes = 143;

/** `~` and the first eight digits of the hash. */
const markLength = 9;

const special = /[\u0000-\u001f\u007f-\u009f%~/\\:*?"<>|]/;

/**
 * Maps names to folders. Writes characters that a folder cannot have as `%` and their octets. Names that are empty, too
 * long, or equal except for case get `~` and a part of their hash, so `templateName` cannot restore them.
 */
export function folderNames(names: readonly string[]): ReadonlyMap<string, string> {
	const counts = new Map<string, number>();
	for (const name of names) counts.set(sameFolder(name), (counts.get(sameFolder(name)) ?? 0) + 1);
	return new Map(
		names.map((name) => {
			const escaped = escapedChars(name).join('');
			const isPlain =
				escaped !== '' && Buffer.byteLength(escaped) <= maxBytes && counts.get(sameFolder(name)) === 1;
			return [name, isPlain ? escaped : markedFolder(name)];
		}),
	);
}

export function markedFolder(name: string): string {
	let start = '';
	for (const char of escapedChars(name)) {
		if (Buffer.byteLength(start + char) > maxBytes - markLength) break;
		start += char;
	}
	return `${start}~${createHash('sha256')
		.update(name)
		.digest('hex')
		.slice(0, markLength - 1)}`;
}

export function templateName(folder: string): string {
	return folder.replace(/(?:%[0-9A-F]{2})+/g, (escapes) => {
		try {
			return decodeURIComponent(escapes);
		} catch {
			return escapes;
		}
	});
}

/** Returns the same text for names that some file systems do not distinguish. */
export function sameFolder(name: string): string {
	return name.normalize('NFC').toLowerCase();
}

function escapedChars(name: string): string[] {
	return [...name].map((char, at) =>
		special.test(char) || (at === 0 && char === '.') ? octets(char) : char,
	);
}

function octets(char: string): string {
	return [...Buffer.from(char)]
		.map((octet) => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`)
		.join('');
}
