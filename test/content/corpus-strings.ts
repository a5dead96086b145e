/** Strings from the corpora that often break parsers; empty if the corpora are missing. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { corpora } from './support.js';

const root = dirname(corpora);

export function corpusStrings(): string[] {
	return [...naughty(), ...jsonTexts()].map((text) => text.replaceAll('\0', ''));
}

function naughty(): string[] {
	const file = join(root, 'strings/blns.json');
	return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : [];
}

function jsonTexts(): string[] {
	const folder = join(root, 'json');
	if (!existsSync(folder)) return [];
	return readdirSync(folder)
		.filter((name) => name.endsWith('.json'))
		.map((name) => readFileSync(join(folder, name), 'utf8'));
}
