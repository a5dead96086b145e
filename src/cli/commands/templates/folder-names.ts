import { createHash } from 'node:crypto';

/** In octets of UTF-8; file systems take 255, encrypted ones 143. */
const maxBytes = 143;

/** `~` and the first eight digits of the hash. */
const markLength = 9;

const special = /[\u0000-\u001f\u007f-\u009f%~/\\:*?"<>|]/;

/**
 * The folder of each of these names. A character that a folder cannot have is `%` and its octets. Names that are too
 * long, those that are equal but for case, and the empty one get `~` and a part of their hash: `templateName` does not give them back.
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

/** Equal for names that some file systems take for one. */
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
