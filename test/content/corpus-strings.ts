/** Texts that break things, from the corpora: none where those are missing. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { corpora } from './support.js';

const root = dirname(corpora);

/** The naughty strings, and every JSON file as a text. NUL is refused long before a message is made. */
export function corpusStrings(): string[] {
	return [...naughty(), ...jsonTexts()].map((text) => text.replaceAll('\0', ''));
}

function naughty(): string[] {
	const file = join(root, 'strings/blns.json');
	return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
}

/** Broken UTF-8 becomes U+FFFD, as it does on its way in; the largest file is 100,000 brackets. */
function jsonTexts(): string[] {
	const folder = join(root, 'json');
	if (!existsSync(folder)) return [];
	return readdirSync(folder)
		.filter((name) => name.endsWith('.json'))
		.map((name) => readFileSync(join(folder, name), 'utf8'));
}
